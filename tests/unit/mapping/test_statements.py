"""Everything that is not a contraction: pooling, reductions, pointwise chains, normalisation, gather and scatter."""

from __future__ import annotations

import pytest

from dovetail.ir.fit import Fit, MappingResult
from dovetail.ir.program import Program
from dovetail.mapping.find import find_mappings
from dovetail.mapping.prove import prove
from dovetail.targets.load import load_target
from dovetail.targets.model import Target
from tests.unit.mapping import programs
from tests.unit.mapping.needles import FMA, adapters, bound, find, holds, instruction, machine
from tests.unit.mapping.programs import program

MAX = instruction("max", "out r: f32[8] in a: f32[8] in b: f32[8] for l<8: r[l] = max(a[l], b[l])")
ADD = instruction("add", "out r: f32[8] in a: f32[8] in b: f32[8] for l<8: r[l] = a[l] + b[l]")
MUL = instruction("mul", "out r: f32[8] in a: f32[8] in b: f32[8] for l<8: r[l] = a[l] * b[l]")
LOAD = instruction("load", "out r: f32[8] in m: f32[8] for l<8: r[l] = m[l]")
SPLAT = instruction("splat", "out r: f32[8] in m: f32[] for l<8: r[l] = m[]")
TOTAL = instruction("total", "inout acc: f32[] in x: f32[8] for l<8: acc[] += x[l]")
LARGEST = instruction("largest", "inout acc: f32[] in x: f32[8] for l<8: acc[] max= x[l]")


def test_pooling_fits_a_plain_maximum_that_takes_what_was_reached_so_far() -> None:
    result = find_mappings(program(programs.MAX_POOL), machine(MAX))
    fit = find(result, {"l": "q"}, a="y", b="x", r="y")
    assert fit is not None
    assert fit.node is None
    assert adapters(fit) == {"pack b"}
    assert all("r" not in bound(f)["l"] for f in result.fits), "a plain maximum reduces nothing by itself"


def test_pooling_fits_a_reduction_of_lanes() -> None:
    result = find_mappings(program(programs.MAX_POOL), machine(LARGEST))
    fit = find(result, {"l": "r*s"})
    assert fit is not None
    assert any(a.kind == "pad" and "-inf" in a.detail for a in fit.adapters)


def test_a_sum_runs_over_lanes_or_along_them() -> None:
    source = program(programs.ROW_SUM)
    result = find_mappings(source, machine(TOTAL, ADD))
    along = find(result, {"l": "j"}, x="x")
    across = find(result, {"l": "i"}, r="y")
    assert along is not None
    assert along.instruction == "total"
    assert across is not None
    assert across.instruction == "add"
    assert find(find_mappings(program(programs.SUM), machine(ADD)), {"l": "i"}) is None


def test_a_sum_fits_a_multiply_add_once_identities_are_allowed() -> None:
    source = program(programs.ROW_SUM)
    assert not find_mappings(source, machine(FMA)).fits
    result = find_mappings(source, machine(FMA), allow=frozenset({"identity"}))
    fit = find(result, {"l": "i"}, a="x", b="1.0")
    assert fit is not None
    assert "insert identity" in fit.transformations
    assert all(check.passed for check in prove(source, fit, FMA))


def test_a_product_is_one_step_of_an_accumulation_from_zero() -> None:
    source = program("in x: f32[64] in z: f32[64] out y: f32[64] for i<64: y[i] = x[i] * z[i]")
    fit = find(find_mappings(source, machine(FMA)), {"l": "i"}, a="x", b="z")
    assert fit is not None
    assert [str(o) for o in fit.operands] == ["acc = y[i]", "acc = 0.0", "a = x[i]", "b = z[i]"]
    assert "insert identity" in fit.transformations
    assert all(check.passed for check in prove(source, fit, FMA))


def test_a_multiply_add_starts_from_what_is_added() -> None:
    source = program(programs.POINTWISE)
    fit = find(find_mappings(source, machine(FMA)), {"l": "j"}, a="x", b="z", acc="b")
    assert fit is not None
    assert fit.node == (0,)
    assert all(check.passed for check in prove(source, fit, FMA))


def test_every_node_of_a_pointwise_chain_has_a_fit() -> None:
    source = program(programs.POINTWISE)
    target = machine(MAX, ADD, MUL)
    result = find_mappings(source, target)
    lanes = [fit for fit in result.fits if bound(fit) == {"l": "j"}]
    assert {(fit.node, fit.instruction) for fit in lanes} == {(None, "max"), ((0,), "add"), ((0, 0), "mul")}
    whole = next(fit for fit in lanes if fit.node is None and holds(fit)["b"] == "0")
    assert "insert temporary" in whole.transformations
    assert adapters(whole) == {"broadcast b"}
    assert all(check.passed for fit in result.fits for check in prove(source, fit, target.instruction(fit.instruction)))


def test_a_literal_in_an_instruction_fits_only_itself() -> None:
    relu = instruction("relu", "out r: f32[8] in a: f32[8] for l<8: r[l] = max(a[l], 0.0)")
    assert find_mappings(program(programs.POINTWISE), machine(relu)).fits
    clamp = program("in x: f32[8] out y: f32[8] for i<8: y[i] = max(x[i], 1)")
    assert not find_mappings(clamp, machine(relu)).fits


@pytest.mark.parametrize("text", [programs.SOFTMAX, programs.LAYER_NORM])
def test_every_statement_of_a_normalisation_is_covered_by_vectors(text: str) -> None:
    source, target = program(text), load_target("x86-64-v3")
    result = find_mappings(source, target, misfits=False)
    assert result.stopped_by == ""
    for number, statement in enumerate(source.statements):
        whole = [fit for fit in result.fits if fit.statement == number and fit.node is None and fit.loops[0].loops]
        assert whole, f"no vector instruction for: {statement}"
    assert _unproven(result, source, target) == []


def test_a_gather_is_a_copy_whose_rows_move_as_they_are() -> None:
    result = find_mappings(program(programs.GATHER), machine(LOAD, SPLAT))
    along = find(result, {"l": "j"})
    across = find(result, {"l": "i"})
    assert along is not None
    assert adapters(along) == set()
    assert across is not None
    assert adapters(across) == {"pack r", "pack m"}
    assert {bound(f)["l"] for f in result.fits if f.instruction == "splat"} == {""}, "each element is read once"


def test_a_scatter_keeps_its_index_outside_the_lanes() -> None:
    result = find_mappings(program(programs.SCATTER), machine(ADD))
    assert {bound(fit)["l"] for fit in result.fits} == {"j", ""}, "two rows may be the same row"


def test_a_copy_that_repeats_a_row_is_a_splat() -> None:
    source = program("in x: f32[64] out y: f32[64,16] for i<64, j<16: y[i,j] = x[i]")
    result = find_mappings(source, machine(SPLAT))
    assert {bound(fit)["l"] for fit in result.fits} == {"j", ""}


def test_steps_of_a_recurrence_stay_outside() -> None:
    source = program(
        "in x: f32[9,32] in w: f32[32,32] temp a: f32[9,32] out h: f32[10,32] "
        "for i<32: h[0,i] = x[0,i] "
        "seq t<9: for i<32, j<32: a[t,i] += w[i,j] * h[t,j] "
        "seq t<9: for i<32: h[t+1,i] = a[t,i] + x[t,i]"
    )
    result = find_mappings(source, machine(FMA, ADD))
    loops = {name for fit in result.fits for name in bound(fit)["l"].split("*")}
    assert "t" not in loops
    assert find(result, {"l": "i"}, acc="a") is not None


def test_a_guard_on_elements_masks_the_result() -> None:
    source = program("in x: f32[64,64] out y: f32[64,64] for i<64, j<64 where j <= i: y[i,j] = x[i,j]")
    fit = find(find_mappings(source, machine(LOAD)), {"l": "j"})
    assert fit is not None
    assert adapters(fit) == {"mask r", "zero-fill m"}


def test_a_narrow_input_is_converted_and_a_wide_one_refused() -> None:
    narrow = program("in x: f16[64] in z: f16[64] out y: f32[64] for i<64: y[i] += x[i] * z[i]")
    fit = find(find_mappings(narrow, machine(FMA)), {"l": "i"}, a="x")
    assert fit is not None
    assert adapters(fit) == {"convert a", "convert b"}
    wide = program("in x: f64[64] in z: f32[64] out y: f64[64] for i<64: y[i] += x[i] * z[i]")
    assert not find_mappings(wide, machine(FMA)).fits


def _unproven(result: MappingResult, source: Program, target: Target) -> list[Fit]:
    """Fits, of a sample, of which some claim does not hold."""
    sample = result.fits[:: max(1, len(result.fits) // 40)]
    return [f for f in sample if not all(c.passed for c in prove(source, f, target.instruction(f.instruction)))]
