"""Rules that target files imply: they match what instructions compute, and change no value."""

from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest

from dovetail.base.dtypes import DTYPES
from dovetail.ir.expr import Apply
from dovetail.ir.functional.evaluate import evaluate
from dovetail.ir.functional.term import Definition, Param, Pattern
from dovetail.ir.functional.types import Scalar, array, shape
from dovetail.ir.index import constant
from dovetail.ir.program import Combine, Role
from dovetail.rewrite.apply import rewrite
from dovetail.rewrite.calls import without_calls
from dovetail.rewrite.rule import Rule
from dovetail.rewrite.tables.hardware import Shape, Spelling, hardware_rules, refusals, spelled, spellings
from dovetail.rewrite.tables.instruction_sizes import allowed, are_allowed
from dovetail.rewrite.tables.tiling import pad_rule, tile_rule, widen_rule
from dovetail.targets.load import load_target
from dovetail.targets.model import Instruction, Target

TARGETS = Path(__file__).parents[2] / "targets"
MACHINES = ("npu-mv", "sw26010", "systolic16", "hopper", "engine", "four-cores", "toy16", "sme")


def machine(name: str) -> Target:
    path = TARGETS / f"{name}.toml"
    return load_target(path if path.exists() else name)


def small_sizes(spelling: Spelling) -> dict[str, int]:
    """The least size of each loop of a spelling."""
    return {loop: allowed(spelling.instruction, loop)[0] for loop in spelling.shape.loops}


def definition_of(shape: Shape, dtypes: tuple[str, ...], sizes: dict[str, int]) -> Definition:
    """The computation of a shape, by itself."""
    params = tuple(
        Param(Role.IN, name, array(tuple(constant(sizes[x]) for x in loops), Scalar(DTYPES[dtype])))
        for (name, loops), dtype in zip(shape.operands, dtypes, strict=True)
    )
    return Definition("operation", params, ("result",), shape.body)


def same_values(one: Definition, other: Definition, seed: int = 0) -> bool:
    """Whether both compute the same from small whole numbers."""
    random = np.random.default_rng(seed)
    data = {}
    for param in one.params:
        extents, kind = shape(param.type)
        assert isinstance(kind, Scalar)
        data[param.name] = random.integers(1, 4, [size.const for size in extents]).astype(kind.dtype.numpy)
    first, second = (evaluate(without_calls(d), data)["result"] for d in (one, other))
    return np.array_equal(np.asarray(first, np.float64), np.asarray(second, np.float64))


def all_spellings(instruction: Instruction) -> tuple[Spelling, ...]:
    found = spelled(instruction)
    return found if isinstance(found, tuple) else ()


def fires(definition: Definition, rule: Rule, **choose: int) -> Definition:
    found = rewrite(definition, rule, (), choose or None)
    assert found is not None, f"{rule} does not fire on {definition}"
    return found


@pytest.mark.parametrize("name", MACHINES)
def test_every_rule_of_a_target_calls_its_instruction_and_keeps_the_value(name: str) -> None:
    seen = set()
    for spelling in spellings(machine(name)):
        sizes = small_sizes(spelling)
        once = {loop: allowed(spelling.instruction, loop)[0] for loop in spelling.once}
        kind = tuple(d.name for d in spelling.operands)
        if not are_allowed(spelling.instruction, {**sizes, **once}) or (spelling.shape.key, kind) in seen:
            continue
        seen.add((spelling.shape.key, kind))
        before = definition_of(spelling.shape, kind, sizes)
        after = fires(before, spelling.rule)
        assert spelling.instruction.name in str(after)
        assert same_values(before, after)
    assert seen


def test_a_matrix_vector_product_has_the_rule_that_its_computes_says() -> None:
    found = next(s for s in spellings(machine("npu-mv")) if s.instruction.name == "MVMul64.f16.f16")
    assert str(found.rule.before) == r"map(\w0 -> reduce(add, 0, map(mul, zip(w0, ?x))), ?w)"
    assert isinstance(found.rule.after, Pattern)
    assert found.rule.after.settings == ("MVMul64.f16.f16",)
    assert found.rule.types == ("w: f16[?n_i, ?n_k]", "x: f16[?n_k]")
    assert found.rule.when == ("?n_i == 64", "?n_k == 64")
    assert found.rule.level == "hardware"


def test_parameters_and_constraints_become_conditions() -> None:
    found = next(s for s in spellings(machine("sw26010")) if s.instruction.name == "gemm")
    assert {"?n_i >= 128", "?n_i <= 4096", "?n_i % 128 == 0", "?n_j % 32 == 0"} <= set(found.rule.when)


def test_sizes_that_an_instruction_does_not_have_are_not_matched() -> None:
    found = next(s for s in spellings(machine("npu-mv")) if s.instruction.name == "MVMul64.f16.f16")
    wrong = definition_of(found.shape, ("f16", "f16"), {"i": 64, "k": 128})
    assert rewrite(wrong, found.rule, ()) is None


def test_a_rule_follows_the_target_file_and_not_a_table_here() -> None:
    found = next(i for i in machine("npu-mv").instructions if i.name == "VVAdd64.f32")
    statement = found.program.statements[0]
    assert isinstance(statement.value, Apply)
    value = replace(statement.value, function="sub")
    other = replace(found, program=replace(found.program, statements=(replace(statement, value=value),)))
    (spelling,) = all_spellings(other)
    assert str(spelling.rule.before) == "map(sub, zip(?a, ?b))"


def test_copies_and_what_reads_nothing_have_no_rule_and_say_why() -> None:
    reasons = {found.instruction: found.reason for found in refusals(machine("npu-mv"))}
    assert reasons["toOutput.f16.f16"] == "it moves data"
    assert reasons["VVZero.f32"] == "it reads nothing"
    named = {rule.name for rule in hardware_rules(machine("npu-mv"))}
    assert named.isdisjoint(reasons)
    assert named | set(reasons) == {i.name for i in machine("npu-mv").instructions}


def test_vector_instructions_of_a_processor_have_rules_too() -> None:
    target = machine("x86-64-v3")
    found = [i for i in target.instructions_for({"add", "max", "mul"}, {"f32"}) if not i.is_copy and i.lanes == 8]
    rules = [s.rule for i in found for s in all_spellings(i)]
    assert any(str(rule.before) == "map(add, zip(?a, ?b))" and "?n_l == 8" in rule.when for rule in rules)


def shapes_of(name: str) -> list[Spelling]:
    found: dict[object, Spelling] = {}
    for spelling in spellings(machine(name)):
        found.setdefault(spelling.shape.key, spelling)
    return list(found.values())


@pytest.mark.parametrize("name", ["npu-mv", "sw26010", "systolic16", "hopper"])
def test_tiles_and_padding_along_every_loop_keep_the_value(name: str) -> None:
    random = Random(1)
    for spelling in shapes_of(name):
        shape = spelling.shape
        kinds = tuple(d.name for d in spelling.operands)
        sizes = {loop: random.choice((4, 6)) for loop in shape.loops}
        before = definition_of(shape, kinds, sizes)
        for loop in shape.loops:
            tiled = fires(before, tile_rule(shape, loop), n=2)
            assert same_values(before, tiled), (spelling.rule.name, loop)
            padded = fires(before, pad_rule(shape, loop), n=sizes[loop] + 3)
            assert same_values(before, padded), (spelling.rule.name, loop)


def test_sums_in_parts_are_reassociating_and_results_in_parts_are_exact() -> None:
    spelling = next(s for s in spellings(machine("npu-mv")) if s.instruction.name == "MVMul64.f16.f16")
    assert tile_rule(spelling.shape, "k").kind == "reassociating"
    assert tile_rule(spelling.shape, "i").kind == "bit-exact"
    assert spelling.instruction.program.statements[0].combine is Combine.ADD


def test_a_narrow_operand_is_widened_before_it_is_computed_with() -> None:
    spelling = next(s for s in spellings(machine("npu-mv")) if s.instruction.name == "VVAdd64.f32")
    before = definition_of(spelling.shape, ("f32", "f16"), {"l": 8})
    after = fires(before, widen_rule(spelling.shape, "b", "f16", "f32"))
    assert str(after.body) == "map(add, zip(a, map(f32, b)))"
    assert same_values(before, after)
