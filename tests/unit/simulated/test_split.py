"""Values of several operations on machines whose instructions do one each."""

from __future__ import annotations

import numpy as np
import pytest

import dovetail
from dovetail.ir.evaluate import evaluate
from dovetail.ir.fill import fill
from dovetail.ir.program import Program
from dovetail.simulated.split import split_values

CHAIN = "in a: f32[4,8] in b: f32[4,8] out y: f32[4,8] for i<4, j<8: y[i,j] = max(a[i,j] * b[i,j] + 2, 0)"


def anything(program: Program, number: int) -> bool:
    return True


def test_every_operation_becomes_a_statement() -> None:
    split = split_values(dovetail.program(CHAIN), frozenset({0}), anything)
    assert [str(s) for s in split.statements] == [
        "for i<4, j<8: y_2[i, j] = a[i, j] * b[i, j]",
        "for i<4, j<8: y_1[i, j] = y_2[i, j] + 2",
        "for i<4, j<8: y[i, j] = max(y_1[i, j], 0)",
    ]


def test_a_number_that_no_instruction_knows_becomes_a_row_of_it() -> None:
    def no_numbers(program: Program, number: int) -> bool:
        return " 2" not in str(program.statements[number])

    split = split_values(dovetail.program(CHAIN), frozenset({0}), no_numbers)
    assert str(split.statements[0]) == "for j<8: number_1[j] = 2"
    assert "for i<4, j<8: y_1[i, j] = y_2[i, j] + number_1[j]" in map(str, split.statements)


def test_a_value_stays_whole_where_one_operation_does_not_fit() -> None:
    def no_maximum(program: Program, number: int) -> bool:
        return "max" not in str(program.statements[number])

    program = dovetail.program(CHAIN)
    assert split_values(program, frozenset({0}), no_maximum) == program


def test_temporaries_are_as_wide_as_the_operation_is_computed() -> None:
    text = CHAIN.replace("f32", "f16")
    split = split_values(dovetail.program(text), frozenset({0}), anything)
    assert {str(t.dtype) for t in split.temps} == {"f32"}


def test_sums_stay_as_they_are() -> None:
    program = dovetail.program("in a: f32[4,8] out y: f32[4] for i<4, j<8: y[i] += a[i,j] * a[i,j] + 1")
    assert split_values(program, frozenset({0}), anything) == program


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ("npu-mv", CHAIN.replace("f32", "f16")),
        ("sw26010", CHAIN.replace("f32", "f64")),
        ("npu-mv", "in a: f16[3,70] out y: f16[3,70] for i<3, j<70: y[i,j] = a[i,j] * 0.5 + a[i,j]"),
    ],
)
def test_a_split_value_runs_on_the_machine_and_is_exact(target: str, text: str) -> None:
    program = dovetail.program(text)
    kernel = dovetail.compile(program, target=target)
    arrays = fill(program, 0, {})
    found = kernel(*(arrays[t.name] for t in program.inputs))
    np.testing.assert_array_equal(found, evaluate(program, arrays, {})["y"])
    assert len({leaf.instruction for leaf in kernel.plan.leaves()}) > 1
