"""What nearly matched, and which operand parted."""

import pytest

from dovetail.rewrite.patterns.near import near_misses
from dovetail.rewrite.patterns.pattern import Pattern
from tests.unit.rewrite.patterns.graphs import bound

SWISH = Pattern("swish", "mul(?x, sigmoid(?x))", "silu(?x)")
GELU = Pattern("dense", "gelu(add(matmul(?x, ?w), ?b))", "?x", types=("b: f32[?n]",))
BODIES = (
    (SWISH, "k = tanh(x)\nz = mul(x, k)", "1 of 2 operators up from z; k parted: sigmoid is wanted, it is tanh"),
    (SWISH, "k = sigmoid(y)\nz = mul(x, k)", "2 of 2 operators up from z; y parted: ?x is x elsewhere in the pattern"),
    (
        SWISH,
        "k = sigmoid(x)\nm = mul(x, k)\nz = add(m, k)",
        "1 of 2 operators up from m; k parted: it is read in 2 places, the pattern reads it in 1",
    ),
    (
        GELU,
        "a = matmul(x, x) {transpose_b = 1}\nb = add(a, a)\nz = gelu(b)",
        "2 of 3 operators up from z; a parted: it is read in 2 places, the pattern reads it in 1",
    ),
    (
        GELU,
        "a = matmul(x, y) {transpose_b = 1}\nb = add(a, w)\nz = gelu(b)",
        "2 of 3 operators up from z; a parted: its transpose_b is 1, not 0",
    ),
    (
        GELU,
        "a = matmul(w, w)\nb = add(a, w)\nz = gelu(b)",
        "3 of 3 operators up from z; z parted: ?b, w, is f32[4, 4], not f32[?n]",
    ),
)


@pytest.mark.parametrize(("pattern", "body", "words"), BODIES)
def test_the_operand_that_parted_is_named(pattern: Pattern, body: str, words: str) -> None:
    (found,) = near_misses(bound(body, "x: f32[4, 6], y: f32[4, 6], w: f32[4, 4]"), [pattern])
    assert str(found) == f"{pattern.name}: {words}"


def test_what_matches_is_no_miss() -> None:
    assert near_misses(bound("k = sigmoid(x)\nz = mul(x, k)"), [SWISH]) == ()


def test_the_nearest_come_first_and_there_are_few() -> None:
    body = "\n".join(f"t{k} = tanh(x)\nm{k} = mul(t{k}, y)" for k in range(5)) + "\ns = sigmoid(y)\nz = mul(s, x)"
    found = near_misses(bound(body), [SWISH])
    assert len(found) == 3
    assert found[0].sink == "z"
