"""Which sizes the loops of an instruction may have: one, or those that a parameter's range and constraints allow."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from dovetail.ir.index import variable
from dovetail.targets.model import Instruction

MOST_TRIED = 4096
"""How many sizes are tried against the constraints on a parameter."""


def parameter(instruction: Instruction, loop: str) -> str | None:
    """The parameter that is the extent of a loop; None where the extent is fixed."""
    extent = next(x.extent for x in instruction.program.statements[0].loops if x.name == loop)
    return next((size.name for size in instruction.program.sizes if extent == variable(size.name)), None)


@lru_cache(4096)
def allowed(instruction: Instruction, loop: str) -> tuple[int, ...]:
    """The sizes that a loop may have by itself, in order; the first of them where there are very many."""
    name = parameter(instruction, loop)
    if name is None:
        return (next(x.extent.const for x in instruction.program.statements[0].loops if x.name == loop),)
    size = next(s for s in instruction.program.sizes if s.name == name)
    own = [c for c in instruction.constraints if c.names() == {name}]
    low = max(1, size.low)
    step = next((v for v in range(low, low + MOST_TRIED) if all(c.holds({name: v}) for c in own)), low)
    stride = next((d for d in range(1, MOST_TRIED) if all(c.holds({name: step + d}) for c in own)), 1)
    tried = range(step, size.high + 1, stride)
    return tuple(v for v in tried[:MOST_TRIED] if all(c.holds({name: v}) for c in own))


def are_allowed(instruction: Instruction, sizes: Mapping[str, int]) -> bool:
    """Whether the sizes of all loops are, together."""
    values = {name: sizes[loop] for loop in sizes if (name := parameter(instruction, loop)) is not None}
    return all(condition.holds(values) for condition in instruction.constraints)


def largest(instruction: Instruction, loop: str, size: int) -> int:
    """The largest allowed size up to ``size``; the least of all where there is none."""
    sizes = allowed(instruction, loop)
    return max((v for v in sizes if v <= size), default=sizes[0])


def least_above(instruction: Instruction, loop: str, size: int) -> int | None:
    """The least allowed size that is ``size`` or more."""
    return next((v for v in allowed(instruction, loop) if v >= size), None)
