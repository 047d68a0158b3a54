"""A proof must fail where a fit is wrong."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dovetail.ir.certificate import Check
from dovetail.ir.fit import Fit, LoopBinding, OperandBinding
from dovetail.mapping.find import find_mappings
from dovetail.mapping.prove import prove
from tests.unit.mapping import programs
from tests.unit.mapping.needles import DOT, FMA, MATRIX, find, instruction, machine
from tests.unit.mapping.programs import program

SOURCE = program(programs.MATMUL)


def _matrix_fit() -> Fit:
    fit = find(find_mappings(SOURCE, machine(MATRIX)), {"i": "m", "j": "n", "k": "c"}, a="x", w="w")
    assert fit is not None
    return fit


def _failures(checks: tuple[Check, ...]) -> list[str]:
    return [check.claim for check in checks if not check.passed]


def test_a_sound_fit_is_proven_by_four_claims_in_milliseconds() -> None:
    checks = prove(SOURCE, _matrix_fit(), MATRIX)
    assert _failures(checks) == []
    assert len(checks) == 4
    assert sum(check.seconds for check in prove(SOURCE, _matrix_fit(), MATRIX)) < 0.05


def test_swapped_operands_are_caught() -> None:
    fit = _matrix_fit()
    held = {operand.needle: operand.value for operand in fit.operands}
    swapped = replace(
        fit,
        operands=(
            OperandBinding("acc", held["acc"]),
            OperandBinding("a", held["w"]),
            OperandBinding("w", held["a"]),
        ),
    )
    assert _failures(prove(SOURCE, swapped, MATRIX)) == ["elements of a call are those of the program"]


def test_another_tensor_in_the_result_is_caught() -> None:
    other = program(programs.MATMUL.replace("y[m,n]", "y[n,m]").replace("A[64,80]", "A[80,64]"))
    assert "the instruction computes the program's value" in _failures(prove(other, _matrix_fit(), MATRIX))


def test_an_output_loop_over_a_reduction_is_caught() -> None:
    fit = find(find_mappings(SOURCE, machine(FMA)), {"l": "n"}, a="x")
    assert fit is not None
    wrong = replace(fit, loops=(LoopBinding("l", ("c",)),))
    assert "elements of a call are those of the program" in _failures(prove(SOURCE, wrong, FMA))


def test_a_reduction_loop_over_an_output_is_caught() -> None:
    fit = find(find_mappings(SOURCE, machine(DOT)), {"l": "c"}, a="x")
    assert fit is not None
    wrong = replace(fit, loops=(LoopBinding("l", ("n",)),))
    assert "elements of a call are those of the program" in _failures(prove(SOURCE, wrong, DOT))


def test_a_loop_bound_twice_is_caught() -> None:
    fit = _matrix_fit()
    wrong = replace(fit, loops=(LoopBinding("i", ("m",)), LoopBinding("j", ("n",)), LoopBinding("k", ("c", "c"))))
    assert _failures(prove(SOURCE, wrong, MATRIX)) == ["the instruction has a place in the program"]


@pytest.mark.parametrize("kind", ["pad", "zero-fill"])
def test_a_forgotten_adapter_is_caught(kind: str) -> None:
    source = program(programs.PADDED.replace("q<56", "q<54"))
    fit = find(find_mappings(source, machine(FMA)), {"l": "q"}, a="x")
    assert fit is not None
    assert _failures(prove(source, fit, FMA)) == []
    bare = replace(fit, adapters=tuple(a for a in fit.adapters if a.kind != kind))
    assert bare != fit
    assert _failures(prove(source, bare, FMA)) == ["points that are not there change nothing"]


def test_an_instruction_that_slides_over_its_input_is_proven_where_the_program_slides_alike() -> None:
    slide = instruction("slide", "inout acc: i32[8] in x: i32[10] in w: i32[3] for p<8, r<3: acc[p] += x[p+r] * w[r]")
    source = program(programs.CONV2D, "i32", "i32")
    result = find_mappings(source, machine(slide))
    alike = find(result, {"p": "q", "r": "s"}, x="x")
    assert alike is not None
    assert _failures(prove(source, alike, slide)) == []
    crossed = replace(alike, loops=(LoopBinding("p", ("p",)), LoopBinding("r", ("s",))))
    assert find(result, {"p": "p", "r": "s"}, x="x") is None
    assert _failures(prove(source, crossed, slide)) == ["elements of a call are those of the program"]
    assert find(find_mappings(program(programs.DILATED, "i32", "i32"), machine(slide)), {"p": "q", "r": "s"}) is None
