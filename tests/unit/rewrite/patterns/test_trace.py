"""Patterns as Python functions, traced: the same forms as from text."""

from collections.abc import Callable

import pytest

import dovetail
from dovetail import op
from dovetail.base.errors import PatternError
from dovetail.rewrite.patterns.pattern import Pattern, read_pattern
from dovetail.rewrite.patterns.show import show_form
from dovetail.rewrite.patterns.text import parse_form


def shown(function: Callable[..., object]) -> str:
    return show_form(read_pattern(Pattern.traced(function, function)).before)


def test_a_function_is_the_form_that_its_text_is() -> None:
    def swish(x):  # type: ignore[no-untyped-def]
        return x * op.sigmoid(x)

    assert shown(swish) == "mul(?x, sigmoid(?x))"


def test_arithmetic_numbers_and_attributes_are_traced() -> None:
    def layer(x, w, b):  # type: ignore[no-untyped-def]
        return 0.5 * (op.matmul(x, w, transpose_b="?t") + b) - 1

    wanted = "sub(mul(0.5, add(matmul(?x, ?w){transpose_b = ?t}, ?b)), 1)"
    assert shown(layer) == show_form(parse_form(wanted))


def test_annotations_are_types() -> None:
    @dovetail.pattern(replacement="silu(?x)", when=("?k % 2 == 0",))
    def swish(x: "f32[?n, ?k]"):  # type: ignore  # noqa
        """Swish, as a model spells it."""
        return x * op.sigmoid(x)

    assert swish.types == ("x: f32[?n, ?k]",)
    assert swish.name == "swish"
    assert read_pattern(swish).conditions


def test_repetition_is_traced_with_values_of_its_own_and_shared_ones() -> None:
    def steps(x, w):  # type: ignore[no-untyped-def]
        return op.repeat(lambda h: op.tanh(op.matmul(h, w) + op.each("b")), x)

    wanted = "repeat(?n, ?previous = ?x, tanh(add(matmul(?previous, ?w), each(?b))))"
    assert shown(steps) == show_form(parse_form(wanted))


def test_several_results_and_several_sinks_are_tuples() -> None:
    def glu(x):  # type: ignore[no-untyped-def]
        a, b = op.several("split", 2, x, sizes="?s", axis=1)
        return a * op.sigmoid(b), op.neg(b)

    wanted = "a, b = split(?x){sizes = ?s, axis = 1}  mul(a, sigmoid(b)), neg(b)"
    assert shown(glu) == show_form(parse_form(wanted))


def test_an_operator_that_is_not_there_is_an_error() -> None:
    with pytest.raises(PatternError, match="did you mean 'sigmoid'"):
        op.sigmoidd(1)


def test_a_condition_in_python_is_an_error() -> None:
    with pytest.raises(PatternError, match="asks whether a value is true"):
        Pattern.traced(lambda x: op.relu(x) if x else x, "?x", name="p")


def test_a_function_that_returns_no_value_is_an_error() -> None:
    with pytest.raises(PatternError, match="returns int"):
        Pattern.traced(lambda x: 1, "?x", name="p")


def test_a_step_that_reads_what_is_made_outside_is_an_error() -> None:
    with pytest.raises(PatternError, match="reads, in a step, what is made outside"):
        Pattern.traced(lambda x, y: _sums(op.relu(y), x), "?x", name="p")


def _sums(made: object, x: object) -> object:
    return op.repeat(lambda h: h + made, x)  # type: ignore[operator, arg-type]
