"""The ways to collapse a program, and which of them a plan is of.

What a statement reads in strides, and often, is gathered first or read as it lies: programs of two statements and of
one. A plan speaks of statements by number, of loops and tensors by name; so it is found which of them it is of.
"""

from __future__ import annotations

from collections.abc import Iterator

from dovetail.ir.plan import Leaf, Plan, PlanNode, Tile
from dovetail.ir.program import Program
from dovetail.schedule.collapse import collapse


def flats(program: Program) -> tuple[Program, ...]:
    """The ways to collapse ``program``: what it reads in strides gathered first; or as it lies, where there is such."""
    gathered = collapse(program)
    if {t.name for t in gathered.temps} <= {t.name for t in program.temps}:
        return (gathered,)
    lying = collapse(program, gathers=False)
    return (gathered, lying) if len(lying.statements) < len(gathered.statements) else (gathered,)


def flat_of(ways: tuple[Program, ...], plan: Plan) -> Program:
    """Of the ways to collapse a program the one that ``plan`` is of; the first where it is of none."""
    return next((flat for flat in ways if is_of(plan, flat)), ways[0])


def is_of(plan: Plan, flat: Program) -> bool:
    """Whether ``plan`` does every statement of ``flat`` once, and all loops and tensors that it names are there."""
    loops = [{loop.name for loop in statement.all_loops} for statement in flat.statements]
    if sorted(leaf.statement for leaf in plan.leaves()) != list(range(len(loops))):
        return False
    named = all(0 <= number < len(loops) and name in loops[number] for number, name in _named(plan.body))
    return named and {hold.tensor for hold in plan.all_holds()} <= {t.name for t in flat.tensors}


def _named(nodes: tuple[PlanNode, ...]) -> Iterator[tuple[int, str]]:
    """The loops that a plan names, each with its statement."""
    for node in nodes:
        if isinstance(node, Tile):
            yield from node.loops
            yield from _named(node.body)
            continue
        assert isinstance(node, Leaf)
        yield from ((node.statement, name) for name in (node.lanes, *_bound(node)) if name)


def _bound(leaf: Leaf) -> Iterator[str]:
    for _, names in leaf.bound:
        yield from names
