"""The plan space of one statement on placed memories: a fit, blocks of its loops, their order, what is held twice.

    kept loops by blocks, in some order        tile i by 256: tile j by 64:
      reduced loops by blocks, in some order     tile k by 512:
        the rest by what a call does               tile j by 16: tile k by 16: do 0 by matmul16 ...

Operands are held for a block in the first memory on their way to the instruction, and for a call in the last one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from math import prod

from dovetail.ir.expr import Cast, Expr, Read
from dovetail.ir.fit import Fit
from dovetail.ir.index import Access, constant
from dovetail.ir.plan import Hold, Leaf, PlanNode, Tile
from dovetail.ir.program import Combine, Program, Statement
from dovetail.schedule.placed.copying import bounds_of, copies_into, moved_access, touches_main
from dovetail.schedule.placed.padding import edges_of
from dovetail.schedule.placed.paths import path
from dovetail.schedule.placed.shape import accesses_of
from dovetail.schedule.tile_shape import TileLoop, TileShape, tile_shape
from dovetail.targets.model import Target

MOST_EQUAL = 10
"""Equal parts into which a loop may be cut, besides blocks of doubled sizes."""
MOST_PERMUTED = 3
"""Loops of which every order is tried; of more, each is innermost once."""


@dataclass(frozen=True)
class Work:
    """A statement and a fit of a whole-statement instruction, ready to be cut into tiles."""

    program: Program
    target: Target
    number: int
    shape: TileShape
    bound: tuple[tuple[str, tuple[str, ...]], ...]
    operands: tuple[tuple[str, str], ...]
    """Operand -> tensor."""
    moved: Access | None = None
    """What the statement only moves: then a call is a fill of the whole block."""

    @cached_property
    def extents(self) -> dict[str, int]:
        return {x.name: x.extent.const for x in self.program.statements[self.number].loops}

    @cached_property
    def all_extents(self) -> dict[str, int]:
        """Those of steps too."""
        return {x.name: x.extent.const for x in self.program.statements[self.number].all_loops}

    @cached_property
    def kept(self) -> tuple[str, ...]:
        used = self.program.statements[self.number].out.names()
        return tuple(name for name in self.extents if name in used)

    @cached_property
    def reduced(self) -> tuple[str, ...]:
        return tuple(name for name in self.extents if name not in self.kept)

    @cached_property
    def needle(self) -> dict[str, TileLoop]:
        """Loop of the statement -> loop of the instruction that runs over it (the outermost of a fused group only)."""
        loops = {x.name: x for x in self.shape.loops if self.moved is None}
        return {group[0]: loops[name] for name, group in self.bound if group and name in loops}

    @cached_property
    def inner(self) -> dict[str, int]:
        """Of a fused group, how many iterations of the loops inside belong to one of the outermost."""
        return {group[0]: prod(self.extents[x] for x in group[1:]) for _, group in self.bound if group}

    @cached_property
    def fused(self) -> frozenset[str]:
        """Loops that a call always does whole."""
        return frozenset(loop for _, group in self.bound for loop in group[1:] if self.moved is None)

    @cached_property
    def walked(self) -> frozenset[str]:
        """Loops that a call runs over."""
        return frozenset(loop for _, group in self.bound for loop in group)

    @cached_property
    def unit(self) -> str:
        """The unit that the work is spread over: the one that has memories of its own among the operands, if any."""
        spread = {layout.name for layout in self.target.layouts if layout.units}
        for operand in self.shape.instruction.operands:
            owner = self.target.memory(operand.memory).per
            if unit_count(self.target, owner) > 1 and operand.layout not in spread:
                return owner
        return ""

    def leaf(self) -> Leaf:
        return Leaf(self.number, instruction=self.shape.instruction.name, bound=self.bound, operands=self.operands)

    @cached_property
    def steps(self) -> dict[tuple[str, int], int]:
        """What ``call_step`` has found."""
        return {}

    def call_step(self, loop: str, block: int) -> int:
        """What a call does of a loop inside a block; 0 where it cannot."""
        found = self.steps.get((loop, block))
        if found is None:
            found = self.steps[loop, block] = self._call_step(loop, block)
        return found

    def _call_step(self, loop: str, block: int) -> int:
        if self.moved is not None:
            return block
        if loop in self.fused:
            return self.extents[loop]
        needle = self.needle.get(loop)
        if needle is None:
            return 1
        if needle.size is None:
            step, rest = divmod(needle.most, self.inner[loop])
            return step if not rest else 0
        most = needle.largest(block * self.inner[loop])
        return most // self.inner[loop] if most and most % self.inner[loop] == 0 else 0

    @cached_property
    def routes(self) -> dict[str, tuple[str, ...]] | None:
        """Tensor -> memories between main memory and the instruction, in order; None where no copies lead there."""
        found: dict[str, tuple[str, ...]] = {}
        written = self.program.statements[self.number].out.tensor
        main = self.target.main.name
        for operand, tensor in self.operands:
            memory = self.shape.instruction.operand(operand).memory
            way = path(self.target, memory, main) if tensor == written else path(self.target, main, memory)
            if memory != main and way is None:
                return None
            route = tuple(m for m in (way or ()) if m != main)
            found[tensor] = (*reversed(route), memory) if tensor == written and memory != main else route
        return found


def works(program: Program, target: Target, fits: tuple[Fit, ...], number: int) -> Iterator[Work]:
    """The fits of a statement that plans can be made of: whole statements, every operand an element of a tensor."""
    statement = program.statements[number]
    moved = moved_access(program, number)
    yield from _copying(program, target, number, moved)
    for fit in fits:
        if fit.statement != number or fit.node is not None:
            continue
        if moved is not None and touches_main(target.instruction(fit.instruction), target):
            continue
        shape = tile_shape(target.instruction(fit.instruction))
        accesses = {o.needle: _access(o.value) for o in fit.operands}
        if shape is None or any(access is None for access in accesses.values()):
            continue
        tensors = tuple((name, access.tensor) for name, access in accesses.items() if access is not None)
        if len({t for _, t in tensors}) < len(tensors) or not all(_is_plain(program, number, t) for _, t in tensors):
            continue
        bound = _with_units(statement, shape, tuple((b.needle, b.loops) for b in fit.loops))
        if bound is None:
            continue
        if any(x.extent.const < 1 for x in statement.all_loops):
            continue
        walked = {loop for _, group in bound for loop in group}
        if statement.combine is Combine.SET:
            walked = {loop for c in statement.where for loop in c.names()}
        if any(edges_of(program, statement, c) is None for c in statement.where if walked & c.names()):
            continue
        work = Work(program, target, number, shape, bound, tensors)
        if work.routes is not None:
            yield work


def _copying(program: Program, target: Target, number: int, moved: Access | None) -> Iterator[Work]:
    """The statement as a fill and a drain of what is held of its result."""
    statement = program.statements[number]
    if moved is None or any(x.extent.const < 1 for x in statement.all_loops):
        return
    dtype = program.tensor(statement.out.tensor).dtype
    for instruction in copies_into(target):
        shape, sink = tile_shape(instruction), instruction.program.statements[0].out.tensor
        if shape is None or instruction.operand(sink).dtype != dtype:
            continue
        tensors = tuple(
            (o.name, statement.out.tensor if o.name == sink else moved.tensor) for o in instruction.operands
        )
        for bound in bounds_of(instruction, statement):
            work = Work(program, target, number, shape, bound, tensors, moved)
            if work.routes is not None:
                yield work


def _with_units(
    statement: Statement, shape: TileShape, bound: tuple[tuple[str, tuple[str, ...]], ...]
) -> tuple[tuple[str, tuple[str, ...]], ...] | None:
    """Loops of the instruction that run over nothing and cannot run once bound to loops of one iteration.

    None where there are not enough of them."""
    taken = {loop for _, group in bound for loop in group}
    free = [x.name for x in statement.loops if x.extent == constant(1) and x.name not in taken]
    kept, used = statement.out.names(), statement.names()
    sizes = {loop.name: loop for loop in shape.loops}
    found = []
    for name, group in bound:
        if group or sizes[name].allows(constant(1), 1):
            found.append((name, group))
            continue
        suits = [x for x in free if x not in used or (x in kept and name in shape.kept)]
        if not suits:
            return None
        free.remove(suits[0])
        found.append((name, (suits[0],)))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Cut:
    """One point of the space: ``blocks`` of every loop, outer loops in their order, what is held twice."""

    blocks: tuple[tuple[str, int], ...]
    order: tuple[str, ...]
    twice: frozenset[str]


def plan_node(work: Work, cut: Cut, name: str) -> PlanNode:
    """The tree of a cut."""
    blocks = dict(cut.blocks)
    steps = {loop: work.call_step(loop, blocks[loop]) for loop in work.extents}
    outer, inner = _holds(work, cut)
    node: PlanNode = work.leaf()
    held = inner
    pair = work.number
    for loop in reversed(inner_order(work)):
        if steps[loop] < blocks[loop] or steps[loop] > work.extents[loop]:
            node = Tile(f"{name}{loop}_in", ((pair, loop),), steps[loop], (node,), holds=held)
            held = ()
    padded = tuple(loop for loop in work.extents if blocks[loop] > work.extents[loop])
    around = padded + cut.order or tuple(work.extents)[:1]
    spread = _spread_loop(work, cut, around)
    for loop in reversed(around if spread in (*around, "") else (spread, *around)):
        unit = work.unit if loop == spread else ""
        step = max(blocks[loop], work.extents[loop]) if loop not in around else blocks[loop]
        node = Tile(f"{name}{loop}", ((pair, loop),), step, (node,), unit, holds=outer + held)
        outer, held = (), ()
    return node


def _spread_loop(work: Work, cut: Cut, around: tuple[str, ...]) -> str:
    """The loop whose tiles are spread over the units; one that runs once where no other does."""
    if not work.unit:
        return ""
    kept = [x for x in (*cut.order, *around, *work.kept) if x in work.kept]
    return kept[0] if kept else around[0]


def unit_count(target: Target, name: str) -> int:
    """How many of a unit the whole machine has; one of the machine itself."""
    total = 1
    for unit in target.units if name else ():
        total *= prod(unit.count)
        if unit.name == name:
            return total
    return 1


def inner_order(work: Work) -> tuple[str, ...]:
    """Loops inside a block, outermost first: those of what is held for a call, then reduced ones.

    What is held for a call then stays longest, and sums do not wait for each other."""
    statement = work.program.statements[work.number]
    assert work.routes is not None
    near = {t for t, route in work.routes.items() if len(route) > 1}
    held = {name for t in near for access in accesses_of(statement, t) for name in access.names()}
    return tuple(sorted(work.extents, key=lambda x: (x not in held, x in work.kept)))


def _holds(work: Work, cut: Cut) -> tuple[tuple[Hold, ...], tuple[Hold, ...]]:
    """For a block, and for a call."""
    outer: list[Hold] = []
    inner: list[Hold] = []
    assert work.routes is not None
    for tensor, route in work.routes.items():
        for n, memory in enumerate(route):
            hold = Hold(tensor, memory, twice=tensor in cut.twice or n > 0, statement=work.number)
            (outer if n == 0 else inner).append(hold)
    return tuple(outer), tuple(inner)


def orders(loops: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Orders of the outer loops worth trying."""
    if len(loops) <= MOST_PERMUTED:
        yield from permutations(loops)
        return
    for last in loops:
        yield (*(x for x in loops if x != last), last)


def block_choices(work: Work, loop: str) -> tuple[int, ...]:
    """Blocks of a loop, from what one call does to all of it."""
    extent = work.extents[loop]
    if loop in work.fused:
        return (extent,)
    needle, inner = work.needle.get(loop), work.inner.get(loop, 1)
    if needle is not None and needle.size is None:
        least = work.call_step(loop, extent)
        most = -(-extent // least) * least if least else 0
        return _doubled(least, most) if least else ()
    if needle is None:
        return _doubled(1, extent)
    assert needle.size is not None
    low = next(
        (
            n
            for n in range(max(1, needle.size.low // inner), needle.most // inner + 1)
            if needle.largest(n * inner) == n * inner
        ),
        0,
    )
    if not low:
        return ()
    top = min(needle.most // inner, -(-extent // low) * low)
    found = [n for n in _doubled(low, top) if needle.largest(n * inner) == n * inner]
    return tuple(found)


def _doubled(least: int, most: int) -> tuple[int, ...]:
    """Multiples of ``least``: doubled, and those that make up to ``MOST_EQUAL`` equal parts of ``most``."""
    found = {most}
    units = -(-most // least)
    found |= {min(most, -(-units // parts) * least) for parts in range(2, MOST_EQUAL + 1)}
    step = least
    while step < most:
        found.add(step)
        step *= 2
    return tuple(sorted(found))


def _access(value: Expr | Access) -> Access | None:
    """The element that an operand is, through a cast of it."""
    if isinstance(value, Access):
        return value
    while isinstance(value, Cast):
        value = value.arg
    return value.access if isinstance(value, Read) else None


def _is_plain(program: Program, number: int, tensor: str) -> bool:
    """One access, each index a sum of loops, none backwards but steps, which are taken one at a time."""
    statement = program.statements[number]
    accesses = accesses_of(statement, tensor)
    steps = {x.name for x in statement.seq}
    return len(accesses) == 1 and all(
        i.is_affine and all(c > 0 or x in steps for x, c in i.terms) for i in accesses[0].indices
    )
