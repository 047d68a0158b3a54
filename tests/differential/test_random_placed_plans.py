"""Any plan for a simulated machine computes the program exactly, or is refused in words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import numpy as np
import pytest

import dovetail
from dovetail.base.errors import PlanError, SimulationError
from dovetail.ir.evaluate import evaluate
from dovetail.ir.fill import fill
from dovetail.ir.plan import Leaf, Plan, PlanNode
from dovetail.ir.program import Program
from dovetail.schedule.placed.space import Cut, Work, block_choices, plan_node, works
from dovetail.sim.functional import simulate
from dovetail.simulated.lowered import all_fits, lowered
from dovetail.targets.load import load_target
from dovetail.targets.model import Target
from tests.differential.random_machines import machine
from tests.differential.small_programs import text_for

SINGLE = (
    "product",
    "product, a transposed",
    "product, c transposed",
    "product of many",
    "product added",
    "matrix and vector",
    "convolution",
    "convolution with a stride",
    "padded convolution",
    "channels last",
    "sum of two",
)
"""Programs of one statement."""
TARGETS = {
    "systolic16": ("i8", "i32"),
    "npu-mv": ("f8e4m3fn", "f32"),
    "sw26010": ("f64", "f64"),
    "random 16": ("", ""),
    "random 23": ("", ""),
}
PLANS = 4
"""Of each program."""


@pytest.mark.parametrize("name", TARGETS)
def test_every_plan_that_is_built_is_exact(name: str, tmp_path: Path) -> None:
    target, operand, total = _machine(name, tmp_path)
    draw = Random(name)
    exact = 0
    for program in (dovetail.program(text_for(text, operand, total)) for text in SINGLE):
        for plan in _plans(program, target, draw):
            exact += _is_exact(program, plan, target)
    assert exact >= 2 * len(SINGLE), f"{exact} plans could be built"


def _machine(name: str, tmp_path: Path) -> tuple[Target, str, str]:
    if name.startswith("random "):
        made = machine(int(name.removeprefix("random ")))
        file = tmp_path / f"{made.name}.toml"
        file.write_text(made.text)
        return load_target(str(file)), made.operand, made.total
    return load_target(name), *TARGETS[name]


def _plans(program: Program, target: Target, draw: Random) -> Iterator[Plan]:
    """Random cuts of random works; the statement on the host once, where there is one."""
    ready: list[Work] = []
    for work in works(program, target, all_fits(program, target), 0):
        if all(block_choices(work, loop) for loop in work.extents):
            ready.append(work)
    for _ in range(PLANS if ready else 0):
        yield Plan((_cut(draw.choice(ready), draw),))
    if target.host is not None:
        yield Plan((Leaf(0),))


def _cut(work: Work, draw: Random) -> PlanNode:
    blocks = {loop: draw.choice(block_choices(work, loop)) for loop in work.extents}
    order = [loop for loop in work.kept if blocks[loop] < work.extents[loop]]
    draw.shuffle(order)
    inside = [loop for loop in work.reduced if blocks[loop] < work.extents[loop]]
    draw.shuffle(inside)
    twice = frozenset(tensor for _, tensor in work.operands if draw.random() < 0.6)
    return plan_node(work, Cut(tuple(blocks.items()), (*order, *inside), twice), "s")


def _is_exact(program: Program, plan: Plan, target: Target) -> bool:
    """False where the plan is refused: no way to move its data, or too much of it."""
    arrays = fill(program, 11)
    try:
        built, nest = lowered(program, plan, target)
        found = simulate(nest, built, arrays).arrays
    except PlanError as refused:
        assert refused.what
        return False
    except SimulationError as refused:
        assert "is full" in refused.what, f"{refused}\n{plan}"
        return False
    for tensor in program.outputs:
        wanted = evaluate(program, arrays)[tensor.name]
        np.testing.assert_array_equal(found[tensor.name], wanted, err_msg=f"{program}\n{plan}")
    return True
