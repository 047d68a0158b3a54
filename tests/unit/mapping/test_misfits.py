"""Reasons that need an instruction made for the purpose."""

from __future__ import annotations

from dovetail.mapping.find import find_mappings
from dovetail.targets.load import load_target
from tests.unit.mapping import programs
from tests.unit.mapping.needles import FMA, instruction, machine
from tests.unit.mapping.programs import program

SCALED = instruction("scaled", "inout acc: f32[8] in a: f32[8] in b: f32[8,4] for l<8, k<4: acc[l] += a[l] * b[l,k]")


def test_padding_that_no_filling_makes_neutral_names_the_operand_that_must_be_finite() -> None:
    source = program("in x: f32[64] in w: f32[64,6] out y: f32[64] for i<64, c<6: y[i] += x[i] * w[i,c]")
    result = find_mappings(source, machine(SCALED))
    assert result.fits == ()
    (misfit,) = result.misfits
    assert misfit.reason == "padding of k: no filling is neutral while 'a' may hold infinity or NaN"
    assert misfit.repair == "promise that 'a' is finite (dovetail map --allow finite)"
    assert misfit.target_field == "test.toml: [[instruction]] 'scaled', computes"
    assert find_mappings(source, machine(SCALED), allow=frozenset({"finite"})).fits


def test_a_loop_that_divides_needs_no_promise() -> None:
    source = program("in x: f32[64] in w: f32[64,8] out y: f32[64] for i<64, c<8: y[i] += x[i] * w[i,c]")
    assert {fit.loops[1].loops for fit in find_mappings(source, machine(SCALED)).fits} == {("c",)}


def test_an_instruction_that_mapping_cannot_bind_says_so() -> None:
    iota = instruction("iota", "out r: i64[8] for l<8: r[l] = l")
    guarded = instruction("guarded", "inout acc: f32[8] in a: f32[8] for l<8 where l >= 1: acc[l] += a[l]")
    twice = instruction("twice", "out r: f32[4] in a: f32[8] for l<4: r[l] = a[2*l] + a[2*l+1]")
    result = find_mappings(program(programs.SUM), machine(iota, guarded, twice))
    assert result.fits == ()
    assert [(misfit.instruction, misfit.reason) for misfit in result.misfits] == [
        ("iota", "computes with its own loop counters, mapping binds elements"),
        ("guarded", "has a guard or a sequence of its own, mapping binds plain loops"),
        ("twice", "reads one operand in two places, mapping binds one element for each operand"),
    ]


def test_an_instruction_that_fits_has_no_misfit() -> None:
    assert find_mappings(program(programs.MATMUL), machine(FMA)).misfits == ()


def test_siblings_give_one_misfit_together_and_the_nearest_comes_first() -> None:
    result = find_mappings(program(programs.MATMUL, "i16", "i64"), load_target("x86-64-v3"))
    names = [misfit.instruction for misfit in result.misfits]
    assert len(names) == len(set(names))
    fma = next(misfit for misfit in result.misfits if misfit.instruction == "fma")
    assert fma.reason == "computes in f32, the program in i64"
    assert names.index("fma") < names.index("load")
