"""Emissions against their own meaning: shipped targets agree, and wrong ones are caught."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dovetail.codegen.instruction_check import Checked, check_instruction, check_instructions
from dovetail.ir.parse import parse
from dovetail.runtime.jit import LoadedCode, load_object
from dovetail.targets.load import load_target
from dovetail.targets.model import Instruction, Operand, Target


def load(code: bytes) -> LoadedCode:
    return load_object(code, {})


def checked(name: str, **changes: object) -> Checked:
    """Instruction ``name`` of the AVX2 target with some fields changed, checked."""
    target = load_target("x86-64-v3")
    changed: Instruction = replace(target.instruction(name), **changes)  # type: ignore[arg-type]
    return check_instruction(changed, _only(target, changed), load)


def _only(target: Target, instruction: Instruction) -> Target:
    return replace(target, by_name={instruction.name: instruction})


@pytest.mark.parametrize("dtypes", [{"f32"}, {"i32", "i64"}, {"bool", "i8", "f32"}, {"f16", "f32"}])
def test_instructions_of_a_shipped_target_do_what_they_say(dtypes: set[str]) -> None:
    target = load_target("x86-64-v3")
    chosen = [i for i in target.instructions if {o.dtype.name for o in i.operands} <= dtypes][::3]
    assert len(chosen) > 20
    faults = {c.instruction.name: c.fault for c in check_instructions(chosen, target, load) if c.fault or c.skipped}
    assert faults == {}


def test_a_wrong_operation_is_caught() -> None:
    found = checked("add.i32x8", emit="%y = sub <8 x i32> %a, %b\nret <8 x i32> %y\n")
    assert "y: element" in found.fault and "expected" in found.fault


def test_a_wrong_treatment_of_nan_is_caught() -> None:
    emit = "%y = call <8 x float> @llvm.maxnum.v8f32(<8 x float> %a, <8 x float> %b)\nret <8 x float> %y\n"
    assert "nan expected" in checked("max.f32x8", emit=emit, declares=()).fault


def test_a_write_beyond_the_operand_is_caught() -> None:
    emit = "store <8 x float> %r, ptr %m, align 4\nret void\n"
    assert "outside of it" in checked("store_masked.f32x8", emit=emit, declares=()).fault


def test_an_emission_that_does_not_parse_is_reported_not_raised() -> None:
    assert "LLVM does not accept" in checked("add.i32x8", emit="nonsense").fault


def test_one_bad_emission_does_not_hide_the_others() -> None:
    target = load_target("x86-64-v3")
    bad = replace(target.instruction("add.i32x8"), emit="nonsense")
    good = target.instruction("sub.i32x8")
    both = replace(target, by_name={bad.name: bad, good.name: good})
    assert [bool(c.fault) for c in check_instructions((bad, good), both, load)] == [True, False]


def test_run_time_strides_are_passed_in_elements() -> None:
    program = parse("in a: i32[3, 2] out c: i32[3] for i<3, j<2: c[i] += a[i, j]")
    load_sum = "\n".join(
        f"%o{i} = mul i64 %lda, {i}\n%p{i} = getelementptr i32, ptr %a, i64 %o{i}\n%x{i} = load i32, ptr %p{i}\n"
        f"%q{i} = getelementptr i32, ptr %p{i}, i64 1\n%y{i} = load i32, ptr %q{i}\n%s{i} = add i32 %x{i}, %y{i}\n"
        f"%r{i} = getelementptr i32, ptr %c, i64 {i}\nstore i32 %s{i}, ptr %r{i}"
        for i in range(3)
    )
    i32 = program.tensor("a").dtype
    operands = (Operand("a", i32, "memory", strides=("lda", 1)), Operand("c", i32, "memory"))
    instruction = Instruction("rows", program, operands, emit=f"{load_sum}\nret void")
    assert check_instruction(instruction, _only(load_target("generic"), instruction), load) == Checked(instruction)


def test_an_instruction_without_emission_is_skipped_with_a_reason() -> None:
    assert checked("add.i32x8", emit="").skipped == "nothing is emitted for it"
