"""Properties of random well-typed terms: text, types, simplification, meaning."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.ir.functional.evaluate import evaluate
from dovetail.ir.functional.infer import check, typing_of
from dovetail.ir.functional.show import show
from dovetail.ir.functional.simplify import same, simplify
from dovetail.ir.functional.term import Definition, nameless
from dovetail.ir.functional.text import parse_definition, parse_term
from dovetail.ir.functional.types import shape
from tests.property.term_interpreter import Cell, interpret
from tests.property.terms import definitions, inputs


@settings(max_examples=60, deadline=None)
@given(definitions(), st.integers(10, 100))
def test_a_printed_definition_reads_back_as_itself(definition: Definition, width: int) -> None:
    assert parse_definition(str(definition)) == definition
    assert parse_term(show(definition.body, width)) == definition.body


@settings(max_examples=50, deadline=None)
@given(definitions())
def test_every_part_of_a_term_has_a_type(definition: Definition) -> None:
    typing = typing_of(definition)
    assert typing.at[()] == typing.type
    assert all("?" not in str(kind) for kind in typing.at.values() if shape(kind)[0])


@settings(max_examples=50, deadline=None)
@given(definitions(), st.integers(0, 5))
def test_the_evaluator_agrees_with_one_element_at_a_time(definition: Definition, seed: int) -> None:
    arrays = inputs(definition, seed)
    found = evaluate(definition, arrays)["y"]
    expected = interpret(definition, arrays)
    assert_equal(found, expected)
    assert_equal(evaluate(definition, arrays, ordered=True)["y"], expected)


@settings(max_examples=50, deadline=None)
@given(definitions(), st.integers(0, 5))
def test_a_simplified_term_has_the_same_type_and_value(definition: Definition, seed: int) -> None:
    simple = Definition("f", definition.params, ("y",), simplify(definition.body))
    assert check(simple) == check(definition)
    arrays = inputs(definition, seed)
    np.testing.assert_array_equal(evaluate(simple, arrays)["y"], evaluate(definition, arrays)["y"])


@settings(max_examples=50, deadline=None)
@given(definitions())
def test_a_simple_term_stays_and_bound_names_do_not_matter(definition: Definition) -> None:
    simple = simplify(definition.body)
    assert simplify(simple) == simple
    assert same(simplify(nameless(definition.body)), simple)


def assert_equal(found: np.ndarray[tuple[int, ...], np.dtype[np.generic]], expected: object) -> None:
    """Nested lists and an array hold the same numbers; none is zero."""
    if isinstance(expected, list):
        assert len(found) == len(expected)
        for part, other in zip(found, expected, strict=True):
            assert_equal(part, other)
        return
    number = expected.value if isinstance(expected, Cell) else 0
    np.testing.assert_array_equal(found, np.asarray(number).astype(found.dtype))
