"""Do an instruction's operands have a place, and does data come there and back?

Only scratchpads are looked at: registers are filled by whatever the code generator emits, caches by themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod

from dovetail.base.errors import TargetError
from dovetail.ir.index import Index
from dovetail.ir.program import Role
from dovetail.targets.model import Instruction, Layout, Memory, MemoryKind, Operand, Unit
from dovetail.targets.parameters import least_values
from dovetail.targets.tables import Entry


def check_places(
    instructions: Callable[[], Iterable[Instruction]],
    units: Sequence[Unit],
    memories: Sequence[Memory],
    layouts: Sequence[Layout],
    entries: Mapping[str, Entry],
) -> None:
    """Raise a TargetError for a scratchpad that data cannot get into or out of, or that one call would overfill.

    ``instructions`` builds them all, which is done only for a machine that has scratchpads. ``entries`` are the
    tables of the memories, for messages.
    """
    placed = {memory.name: memory for memory in memories if memory.kind is MemoryKind.SCRATCHPAD}
    if not placed:
        return
    found = tuple(instructions())
    main = next(memory.name for memory in memories if memory.kind is MemoryKind.MAIN)
    others = {memory.name for memory in memories} - set(placed)
    _check_reach(found, placed, others, main, entries)
    counts = {unit.name: prod(unit.count) for unit in units}
    spread = {layout.name for layout in layouts if layout.units}
    for instruction in found:
        _check_capacity(instruction, placed, counts, spread)


def _check_reach(
    instructions: Sequence[Instruction],
    placed: Mapping[str, Memory],
    others: set[str],
    main: str,
    entries: Mapping[str, Entry],
) -> None:
    flows = [_flow(instruction) for instruction in instructions]
    filled, drained = set(others), set(others)
    for _ in placed:  # the longest way from memory to memory has as many steps as there are scratchpads
        filled |= {target for sources, target in flows if sources <= filled}
        drained |= {source for sources, target in flows if target in drained for source in sources}
    empty = [name for name in placed if name not in filled]
    stuck = [name for name in placed if name not in drained]
    if empty:
        name = _first_cause(empty, {(t, s) for sources, t in flows for s in sources})
        what, move = f"nothing brings data into the memory '{name}'", f"s @ {name} and x @ {main}"
        if any(target == name and name in sources for sources, target in flows):
            move += ', or one that sets sums to zero: "for i<n: s[i] = 0"'
    elif stuck:
        name = _first_cause(stuck, {(s, t) for sources, t in flows for s in sources})
        what, move = f"nothing brings data from the memory '{name}' back to '{main}'", f"s @ {main} and x @ {name}"
    else:
        return
    hint = f'an [[instruction]] with computes = "for i<n: s[i] = x[i]", {move}'
    raise TargetError(what, where=entries[name].where("kind"), hint=hint)


def _first_cause(faulty: Sequence[str], needs: Iterable[tuple[str, str]]) -> str:
    """Of several faulty memories one that needs no other of them."""
    waiting = {name for name, other in needs if other in faulty and other != name}
    return next((name for name in faulty if name not in waiting), faulty[0])


def _flow(instruction: Instruction) -> tuple[frozenset[str], str]:
    """The memories an instruction reads, and the one it writes; an accumulator has to hold something before."""
    program = instruction.program
    reads = frozenset(o.memory for o in instruction.operands if program.tensor(o.name).role is not Role.OUT)
    return reads, instruction.operand(program.statements[0].out.tensor).memory


def _check_capacity(
    instruction: Instruction, placed: Mapping[str, Memory], counts: Mapping[str, int], spread: set[str]
) -> None:
    """Raise when the operands of one call, at the smallest values of its parameters, exceed a memory."""
    least = least_values(instruction.program.sizes, instruction.constraints)
    for name, memory in placed.items():
        operands = [operand for operand in instruction.operands if operand.memory == name]
        share = {o.name: counts[memory.per] if o.layout in spread and memory.per else 1 for o in operands}
        wanted = sum(-(-_bytes(o, instruction, least) // share[o.name]) for o in operands)
        if wanted > memory.bytes:
            at = ", ".join(f"{parameter} = {value}" for parameter, value in least.items())
            raise TargetError(
                f"one call of '{instruction.name}' needs {wanted} bytes of '{name}', which has {memory.bytes}",
                where=f"{instruction.source}, key 'operands'",
                why=f"that is with {at}" if at else None,
                hint=f"smaller extents in 'computes' or 'params', or more 'bytes' in the [[memory]] '{name}'",
            )


def _bytes(operand: Operand, instruction: Instruction, least: Mapping[str, int]) -> int:
    shape: tuple[Index, ...] = instruction.program.tensor(operand.name).shape
    return operand.dtype.bytes * prod(max(0, extent.evaluate(least)) for extent in shape)
