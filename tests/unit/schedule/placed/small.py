"""A machine that is small enough to read its nests, programs for it, and how they are built."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

from dovetail.ir.evaluate import evaluate
from dovetail.ir.fill import fill
from dovetail.ir.nest import Nest
from dovetail.ir.parse import parse
from dovetail.ir.plan import Hold, Leaf, Plan, PlanNode, Tile
from dovetail.ir.program import Program
from dovetail.sim.functional import simulate
from dovetail.simulated.lowered import lowered
from dovetail.targets.load import load_target
from dovetail.targets.model import Target

PRODUCT = "in a: i8[10,12]  in b: i8[12,8]  out c: i32[10,8]\nfor i<10, j<8, k<12: c[i,j] += a[i,k] * b[k,j]"
"""Whose rows do not divide into eights."""
BY_PRODUCT = Leaf(
    0,
    instruction="product",
    bound=(("i", ("i",)), ("j", ("j",)), ("k", ("k",))),
    operands=(("acc", "c"), ("a", "a"), ("w", "b")),
)


@cache
def machine() -> Target:
    return load_target(str(Path(__file__).parent / "small.toml"))


def variant(directory: Path, *changes: tuple[str, str]) -> Target:
    """The machine with pieces of its file replaced, each of which is there."""
    text = (Path(__file__).parent / "small.toml").read_text()
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    file = directory / "variant.toml"
    file.write_text(text)
    return load_target(str(file))


def tiles(steps: str, *body: PlanNode, holds: tuple[Hold, ...] = (), inside: tuple[Hold, ...] = ()) -> Tile:
    """``"i 8, k 4"``: tiles of statement 0, one in the other; ``holds`` on the outermost, ``inside`` on the last."""
    pairs = [step.split() for step in steps.split(", ")]
    found: tuple[PlanNode, ...] = body
    for number, (loop, step) in reversed(list(enumerate(pairs))):
        mine = (inside if number == len(pairs) - 1 else ()) + (holds if number == 0 else ())
        found = (Tile(f"{loop}{step}", ((0, loop),), int(step), found, holds=mine),)
    node = found[0]
    assert isinstance(node, Tile)
    return node


def product_plan(outer: str, *, twice: bool = False, sums_twice: bool = False) -> Plan:
    """Blocks of the product by ``outer``, calls of 8 by 4 by 4 inside, weights one call ahead."""
    holds = (Hold("c", "sums", twice=sums_twice), Hold("a", "pad", twice=twice), Hold("b", "pad", twice=twice))
    steps = [step for step in ("i 8", "k 4", "j 4") if step not in outer.split(", ")]
    weights = (Hold("b", "weights", twice=True),)
    if not steps:
        return Plan((tiles(outer, BY_PRODUCT, inside=holds + weights),))
    return Plan((tiles(outer, tiles(", ".join(steps), BY_PRODUCT, inside=weights), inside=holds),))


def built(program: Program, plan: Plan, target: Target | None = None) -> Nest:
    return lowered(program, plan, target or machine())[1]


def is_exact(program: Program, plan: Plan, target: Target | None = None) -> bool:
    """Whether the nest computes what the program says, in every element."""
    made, nest = lowered(program, plan, target or machine())
    arrays = fill(program, 3)
    found, wanted = simulate(nest, made, arrays).arrays, evaluate(program, arrays)
    return all(np.array_equal(found[t.name], wanted[t.name]) for t in program.outputs)


def product() -> Program:
    return parse(PRODUCT)
