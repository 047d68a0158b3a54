"""Which plans keep the meaning of their program; every other one is refused before any code is made.

A statement runs once, after what it depends on. A tile over several statements must walk the same elements in all of
them; units may share only loops whose iterations touch different elements; steps stay outermost, one by one, in order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dovetail.base.errors import PlanError
from dovetail.ir.index import Access, Index, variable
from dovetail.ir.interval import interval
from dovetail.ir.plan import Hold, Leaf, Plan, PlanNode, Tile
from dovetail.ir.program import Combine, Program, Role, Statement, Tensor
from dovetail.ir.steps import steps_apart
from dovetail.schedule.tile_shape import operand_accesses, tile_shape
from dovetail.targets.model import MemoryKind, Target


def check_plan(program: Program, plan: Plan, target: Target) -> None:
    """Raise a PlanError unless ``plan`` computes what ``program`` says."""
    check = _Check(program, target, {s.name: (s.low, s.high) for s in program.sizes})
    order = [leaf.statement for leaf in plan.leaves()]
    if sorted(order) != list(range(len(program.statements))):
        raise PlanError(f"the plan runs statements {order}", why=f"each of {len(program.statements)} runs once")
    for first, second in check.dependent(order):
        if first > second:
            raise PlanError(f"statement {first} runs before statement {second}", why="one needs what the other wrote")
    for leaf in plan.leaves():
        check.leaf(leaf)
    for hold in plan.holds:
        check.hold(hold, plan.body[after_writers(program, plan.body, hold.tensor) :], parallel=False)
    check.nodes(plan.body, (), False)


@dataclass(frozen=True)
class _Check:
    program: Program
    target: Target
    sizes: dict[str, tuple[int, int]]

    def dependent(self, order: list[int]) -> Iterator[tuple[int, int]]:
        """Pairs of statements, in the order they run, of which one touches what the other writes."""
        for at, second in enumerate(order):
            for first in order[:at]:
                if any(True for _ in self.meetings(first, second)):
                    yield first, second

    def meetings(self, first: int, second: int) -> Iterator[tuple[Access, Access]]:
        """An access of each, to the same tensor, at least one of them a write."""
        one, other = self.program.statements[first], self.program.statements[second]
        apart = one.combine is other.combine is Combine.SET and not one.seq  # no element is set twice
        for access in other.reads() if apart else (other.out, *other.reads()):
            if access.tensor == one.out.tensor:
                yield one.out, access
        for access in one.reads():
            if access.tensor == other.out.tensor:
                yield access, other.out

    # -- nodes

    def nodes(self, nodes: tuple[PlanNode, ...], around: tuple[Tile, ...], parallel: bool) -> None:
        for node in nodes:
            if isinstance(node, Leaf):
                self.steps(node.statement, around)
                continue
            self.tile(node, around)
            spread = parallel or bool(node.unit)
            for hold in node.holds:
                self.hold(hold, node.body, parallel=spread or not _has_parallel(node.body))
            self.nodes(node.body, (*around, node), spread)

    def leaf(self, leaf: Leaf) -> None:
        loops = [loop.name for loop in self.program.statements[leaf.statement].loops]
        if leaf.width < 1 or (leaf.width > 1 and leaf.lanes not in loops):
            raise PlanError(f"'{leaf}': no such lanes", hint=f"one of the loops {', '.join(loops)}")
        if leaf.instruction:
            self.tile_leaf(leaf)

    def tile_leaf(self, leaf: Leaf) -> None:
        """The instruction computes the statement over the loops it is bound to."""
        if leaf.instruction not in self.target.by_name:
            raise PlanError(f"'{leaf}': target '{self.target.name}' has no instruction '{leaf.instruction}'")
        instruction = self.target.instruction(leaf.instruction)
        shape = tile_shape(instruction)
        statement = self.program.statements[leaf.statement]
        if shape is None or any(o.memory != self.target.main.name for o in instruction.operands):
            raise PlanError(f"'{leaf}': '{leaf.instruction}' does not work on tiles in main memory")
        if operand_accesses(shape, statement, dict(leaf.bound), self.program.dtypes) is None:
            raise PlanError(f"'{leaf}': '{leaf.instruction}' does not compute {statement}", why=str(shape.statement))

    def tile(self, tile: Tile, around: tuple[Tile, ...]) -> None:
        inside = [leaf.statement for leaf in leaves(tile.body)]
        covered = dict(tile.loops)
        if tile.step < 1 or not tile.loops or len(covered) != len(tile.loops):
            raise PlanError(f"'{tile}' is no tile", why="one loop of each statement, a step of at least 1")
        for number, loop in tile.loops:
            if number not in inside:
                raise PlanError(f"'{tile}' covers statement {number}, which does not run inside it")
            if loop not in [x.name for x in self.program.statements[number].all_loops]:
                raise PlanError(f"'{tile}': statement {number} has no loop '{loop}'")
        if any(self.is_step(n, loop) for n, loop in tile.loops):
            self.step_tile(tile, around, covered, inside)
            return
        if tile.unit:
            self.unit_tile(tile, covered, inside)
        steps = [self.program.statements[n].seq for n in inside]
        if tile.alternating and not (tile.unit and all(len(seq) == 1 for seq in steps)):
            raise PlanError(f"'{tile}' alternates", hint="only what units share, inside the steps of one sequence")
        self.together(tile, covered, inside)

    def is_step(self, number: int, loop: str) -> bool:
        return any(loop == s.name for s in self.program.statements[number].seq)

    def step_tile(self, tile: Tile, around: tuple[Tile, ...], covered: dict[int, str], inside: list[int]) -> None:
        """All statements of a group, one step after the other."""
        depth = len(around)
        seq = self.program.statements[tile.loops[0][0]].seq
        group = next(g for g in self.program.groups() if tile.loops[0][0] in g)
        plain = tile.step == 1 and not tile.unit and not tile.downward
        if not plain or depth >= len(seq) or set(inside) != set(group) or set(covered) != set(group):
            raise PlanError(
                f"'{tile}' does not take steps in order", hint="all statements of the group, by 1, outermost"
            )
        if any(loop != seq[depth].name for loop in covered.values()):
            raise PlanError(f"'{tile}' takes steps in another order than seq {', '.join(map(str, seq))}")

    def steps(self, number: int, around: tuple[Tile, ...]) -> None:
        seq = self.program.statements[number].seq
        taken = [loop for tile in around[: len(seq)] for n, loop in tile.loops if n == number]
        if taken != [s.name for s in seq]:
            raise PlanError(f"statement {number} runs without its steps", hint="tiles over its seq loops outermost")

    def unit_tile(self, tile: Tile, covered: dict[int, str], inside: list[int]) -> None:
        """Units share iterations: each element belongs to one."""
        if tile.unit not in {unit.name for unit in self.target.units}:
            raise PlanError(f"'{tile}': target '{self.target.name}' has no unit '{tile.unit}'")
        for number in inside:
            statement = self.program.statements[number]
            if number not in covered:
                raise PlanError(f"'{tile}' is shared by units and does not cover statement {number} inside it")
            loop = covered[number]
            if statement.combine is not Combine.SET and not _apart(statement, loop):
                raise PlanError(f"'{tile}': units would meet in one element of '{statement.out}'")

    def together(self, tile: Tile, covered: dict[int, str], inside: list[int]) -> None:
        """Statements that need each other walk the same elements, or the later one waits for the last round."""
        extents = {n: self.extent(n, loop) for n, loop in tile.loops}
        late = [n for n in inside if n not in covered]
        if late and any(low < 1 for low, _ in extents.values()):
            raise PlanError(f"'{tile}' may have no round, and statement {late[0]} waits for its last one")
        for first, second in self.dependent(inside):
            if first in covered and second in covered:
                for one, other in self.meetings(first, second):
                    if self.in_other_steps(first, one, other):
                        continue
                    if not _aligned(one, covered[first], other, covered[second]):
                        why = f"{one} and {other} do not walk the same elements"
                        raise PlanError(f"'{tile}' joins statements {first} and {second}", why=why)
            elif second in covered:
                raise PlanError(f"'{tile}' runs statement {second} before the last round of statement {first}")

    def in_other_steps(self, number: int, one: Access, other: Access) -> bool:
        """Whether the two never reach the same element in one step; all of a step is done before the next."""
        steps = [loop.name for loop in self.program.statements[number].seq]
        pairs = list(zip(one.indices, other.indices, strict=True))
        return any(steps_apart(a, b, step) for step in steps for a, b in pairs)

    def extent(self, number: int, loop: str) -> tuple[int, int]:
        loops = {x.name: x.extent for x in self.program.statements[number].all_loops}
        return interval(loops[loop], self.sizes) or (0, 0)

    # -- holds

    def hold(self, hold: Hold, body: tuple[PlanNode, ...], parallel: bool) -> None:
        tensor = next((t for t in self.program.tensors if t.name == hold.tensor), None)
        memory = next((m for m in self.target.memories if m.name == hold.memory), None)
        if tensor is None or memory is None:
            raise PlanError(f"'{hold}' names no tensor or memory")
        numbers = [leaf.statement for leaf in leaves(body)]
        statements = [self.program.statements[n] for n in numbers]
        if any(a.tensor == hold.tensor for s in statements for used in (s.out, *s.reads()) for a in used.reads()):
            raise PlanError(f"'{hold}': it is used as an index inside")
        if any(a.tensor == hold.tensor for s in statements for c in s.where for a in c.index.reads()):
            raise PlanError(f"'{hold}': it is used in a condition inside")
        writers = [s for s in statements if s.out.tensor == hold.tensor]
        if memory.kind is not MemoryKind.REGISTERS:
            if not writers or hold.digits:
                self.layout(hold, len(tensor.shape))
            if hold.ahead and (tensor.role is not Role.CONST or not all(e.is_constant for e in tensor.shape)):
                raise PlanError(f"'{hold}': it is not a constant of fixed shape")
            if writers:
                self.scratch(hold, tensor, numbers, parallel, body)
            return
        if not parallel:
            raise PlanError(f"'{hold}' outside of the tiles that units share", hint="hold it further inside")
        if len(writers) != 1:
            raise PlanError(f"'{hold}': {len(writers)} statements inside write it")
        if writers[0].combine is Combine.SET and writers[0].where:
            raise PlanError(f"'{hold}': some of its elements are not written", why=f"where in {writers[0]}")

    def scratch(
        self, hold: Hold, tensor: Tensor, numbers: list[int], parallel: bool, body: tuple[PlanNode, ...]
    ) -> None:
        """Written and read by the same statements, on one unit, and by nobody else."""
        others = [s for n, s in enumerate(self.program.statements) if n not in numbers]
        if (
            not parallel
            or tensor.role is not Role.TEMP
            or any(a.tensor == tensor.name for s in others for a in s.reads())
        ):
            raise PlanError(f"'{hold}': it is written inside and read outside", hint="hold it in registers")
        writers = [self.program.statements[n] for n in numbers if self.program.statements[n].out.tensor == tensor.name]
        drained = any(h.tensor == tensor.name and self.is_register(h) for h in holds_in(body))
        if any((s.combine is not Combine.SET and not drained) or s.where for s in writers):
            raise PlanError(f"'{hold}': plain statements must write it", hint="hold it in registers")

    def is_register(self, hold: Hold) -> bool:
        return any(m.name == hold.memory and m.kind is MemoryKind.REGISTERS for m in self.target.memories)

    def layout(self, hold: Hold, rank: int) -> None:
        """Digits that give each element a place of its own."""
        if not hold.digits and not hold.ahead:
            raise PlanError(f"'{hold}' has no layout")
        for dimension in range(rank):
            digits = sorted((d for d in hold.digits if d.dimension == dimension), key=lambda d: d.divisor)
            reach = 1
            for digit in digits:
                if digit.divisor != reach or (digit.modulus < 1 and digit is not digits[-1]):
                    raise PlanError(f"'{hold}' does not tell all elements of dimension {dimension} apart")
                reach *= digit.modulus
            if not digits or digits[-1].modulus:
                raise PlanError(f"'{hold}' does not tell all elements of dimension {dimension} apart")
        if any(d.dimension >= rank or d.dimension < 0 for d in hold.digits):
            raise PlanError(f"'{hold}' has more dimensions than its tensor")


def after_writers(program: Program, body: tuple[PlanNode, ...], tensor: str) -> int:
    """The first node of a whole plan from which on nothing writes ``tensor``: there a hold around it all begins."""
    writing = [
        n
        for n, node in enumerate(body)
        if any(program.statements[x.statement].out.tensor == tensor for x in leaves((node,)))
    ]
    return max(writing, default=-1) + 1


def leaves(nodes: tuple[PlanNode, ...]) -> Iterator[Leaf]:
    """All leaves below, in order."""
    for node in nodes:
        if isinstance(node, Leaf):
            yield node
        else:
            yield from leaves(node.body)


def holds_in(nodes: tuple[PlanNode, ...]) -> Iterator[Hold]:
    """All holds of the tiles in ``nodes`` and below."""
    for node in nodes:
        if isinstance(node, Tile):
            yield from node.holds
            yield from holds_in(node.body)


def _has_parallel(nodes: tuple[PlanNode, ...]) -> bool:
    return any(isinstance(n, Tile) and (bool(n.unit) or _has_parallel(n.body)) for n in nodes)


def _apart(statement: Statement, loop: str) -> bool:
    """Different iterations of ``loop`` reach different elements."""
    extents = {x.name: x.extent for x in statement.loops}
    sums = [i for i in statement.out.indices if i.is_affine and loop in i.names()]
    return any(i.names() & extents.keys() == {loop} or digits_of(i, extents) for i in sums)


def digits_of(index: Index, extents: Mapping[str, Index]) -> int:
    """How many values ``index`` takes when its loops count in it as the digits of a number do; 0 when they do not."""
    reach = 1
    for c, name in sorted((index.coefficient(n), n) for n in index.names() & extents.keys()):
        if c < reach or not extents[name].is_constant:
            return 0
        reach = c * extents[name].const
    return reach


def _aligned(one: Access, loop: str, other: Access, same: str) -> bool:
    """Both walk some dimension with these loops alone, in step."""
    pairs = zip(one.indices, other.indices, strict=True)
    return any(a == variable(loop) and b == variable(same) for a, b in pairs)
