"""The ways to collapse a program: what is read in strides is gathered first, or read as it lies."""

from __future__ import annotations

import numpy as np
import pytest

from dovetail.ir.fill import fill
from dovetail.ir.parse import parse
from dovetail.ir.program import Program
from dovetail.pipeline import compile, verify
from dovetail.schedule.ahead import flat_part, planned_part, split_ahead
from dovetail.schedule.collapse import collapse
from dovetail.schedule.default import default_plan
from dovetail.schedule.estimate import estimate_cycles, fastest_flat
from dovetail.schedule.flats import flat_of, flats, is_of
from dovetail.targets.load import load_target

V4 = load_target("x86-64-v4")


def strided(outputs: int, size: int, channels: int, step: int = 2) -> Program:
    """A 1x1 convolution of every other row and column."""
    return parse(f"""
in x: f32[{channels}, {step * size}, {step * size}]  const w: f32[{outputs}, {channels}]
out y: f32[{outputs}, {size}, {size}]
for k<{outputs}, p<{size}, q<{size}, c<{channels}: y[k, p, q] += x[c, {step}*p, {step}*q] * w[k, c]""")


def test_what_is_read_in_strides_is_gathered_or_read_as_it_lies() -> None:
    gathered, lying = flats(strided(64, 14, 32))
    assert [len(flat.statements) for flat in (gathered, lying)] == [2, 1]
    assert gathered.temps and not lying.temps


@pytest.mark.parametrize("program", [strided(64, 14, 32, step=1), strided(16, 14, 32)], ids=["side by side", "seldom"])
def test_what_gains_nothing_from_a_copy_has_one_way(program: Program) -> None:
    assert flats(program) == (collapse(program),)


def test_a_plan_says_which_way_it_is_of() -> None:
    program = strided(64, 14, 32)
    for flat in flats(program):
        plan = default_plan(flat, V4, 2)
        assert flat_of(flats(program), plan) == flat == flat_part(program, plan)
        assert planned_part(program, plan) is program


def test_the_way_that_is_estimated_to_be_faster_is_taken() -> None:
    few, many = strided(128, 28, 256), strided(2048, 7, 1024)
    gathered, lying = flats(few)
    assert fastest_flat((gathered, lying), V4, 2) is lying
    assert estimate_cycles(few, V4, 2) < estimate_cycles(gathered, V4, 2)
    assert len(fastest_flat(flats(many), V4, 2).statements) == 2


@pytest.mark.parametrize("outputs", [128, 1024])
def test_both_ways_are_exact(outputs: int) -> None:
    assert verify(strided(outputs, 14, 64), threads=2).is_exact


@pytest.mark.parametrize(("outputs", "size", "channels"), [(1024, 14, 512), (128, 28, 256)], ids=["gathered", "lying"])
def test_a_plan_is_of_what_is_left_where_weights_are_made_ahead(outputs: int, size: int, channels: int) -> None:
    """What is left for each call, gathered, has as many statements as the whole program as it lies."""
    plain = str(strided(outputs, size, channels)).replace("* w[k, c]", "* u[k, c]")
    squares = f"for k<{outputs}, c<{channels}: u[k, c] = w[k, c] * w[k, c]"
    head, body = plain.rsplit("\n", 1)
    program = parse(f"{head}\ntemp u: f32[{outputs}, {channels}]\n{squares}\n{body}")
    kernel = compile(program, threads=2, cache=False)
    main = split_ahead(program).main
    assert planned_part(program, kernel.plan) == main
    assert flat_part(program, kernel.plan) in flats(main)
    again = compile(program, threads=2, plan=kernel.plan, cache=False)
    arrays = fill(program, 1, {})
    assert np.array_equal(kernel(arrays["x"], arrays["w"]), again(arrays["x"], arrays["w"]))


def test_a_plan_is_of_a_program_whose_loops_and_tensors_it_names() -> None:
    gathered, lying = flats(strided(64, 14, 32))
    plan = default_plan(gathered, V4, 2)
    assert is_of(plan, gathered) and not is_of(plan, lying)
    assert not is_of(plan, strided(64, 14, 32, step=1))
    other = parse("in x: f32[9]  out y: f32[9]  temp t: f32[9]  for i<9: t[i] = x[i]  for i<9: y[i] = t[i] * 2")
    assert not is_of(plan, other)
