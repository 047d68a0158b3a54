"""Forms are read and written: the text of what was read is read as the same."""

import random

import pytest

from dovetail.rewrite.patterns.show import show_form
from dovetail.rewrite.patterns.text import parse_form
from tests.property.random_patterns import random_form, random_graph

TEXTS = (
    "mul(?x, sigmoid(?x))",
    "v0 = sigmoid(?x)  mul(v0, add(v0, 1.0))",
    "repeat(?n, ?h = ?x, add(?h, each(?b)))",
    "repeat(?n >= 2, ?h = relu(?x), v0 = tanh(?h)  mul(v0, v0))",
    "v0_0, v0_1 = split(?x){sizes = ?s, axis = 1}  mul(v0_0, sigmoid(v0_1))",
    "concat(each(unsqueeze(?b){axes = (0)}), ?x){axis = 0}",
    "transpose(transpose(?x){perm = ?p}){perm = compose(?p, ?q)}",
    "matmul(?x, ?a), matmul(?x, ?b)",
    'cast(?x){dtype = "f16"}',
    "mul(?x, -0.5)",
)


@pytest.mark.parametrize("text", TEXTS)
def test_a_form_is_written_as_it_was_read(text: str) -> None:
    assert show_form(parse_form(text)) == text


def test_any_form_is_read_back() -> None:
    rng = random.Random(3)
    for _ in range(200):
        form = random_form(rng, random_graph(rng, 9))
        assert show_form(parse_form(show_form(form))) == show_form(form)
