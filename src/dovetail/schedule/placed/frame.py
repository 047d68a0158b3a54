"""Where a nest under construction stands: loops around, what is held, which tiles exist."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod

from dovetail.base.dtypes import DType
from dovetail.base.errors import PlanError
from dovetail.ir.index import Access, Condition, Index, constant, variable
from dovetail.ir.plan import Hold, Leaf, Plan
from dovetail.ir.program import Program
from dovetail.schedule.placed.fills import Held, Whole
from dovetail.schedule.placed.moves import Side
from dovetail.schedule.placed.shape import accesses_of, lefts, tiles_of
from dovetail.schedule.placed.standing import Spot
from dovetail.schedule.placed.storage import Axis, Store, Wanted, coordinate, wanted_operands
from dovetail.targets.model import Instruction, Target


@dataclass(frozen=True, slots=True)
class Ring:
    """A loop of the nest that counts tiles."""

    var: str
    count: int


def number_of(rings: tuple[Ring, ...]) -> Index:
    """The iterations of all loops together, counted through."""
    total, step = constant(0), 1
    for ring in reversed(rings):
        total += variable(ring.var) * step
        step *= ring.count
    return total


def following(rings: tuple[Ring, ...]) -> dict[str, Index]:
    """Every loop's value in the next iteration of all of them together."""
    found: dict[str, Index] = {}
    after, step = number_of(rings) + 1, 1
    for ring in reversed(rings):
        found[ring.var] = after // step % ring.count
        step *= ring.count
    return found


def is_not_last(rings: tuple[Ring, ...]) -> Condition:
    return Condition(constant(prod(ring.count for ring in rings) - 2) - number_of(rings))


@dataclass(frozen=True, slots=True)
class Kept:
    """What is kept of a dimension that steps go through: ``size`` places in turn; ``lows``: where the others begin."""

    dimension: int
    size: int
    lows: tuple[Index, ...]


@dataclass(frozen=True, slots=True)
class Live:
    """A hold in force since level ``depth``; ``kept`` where it outlives steps, and every statement in them uses it."""

    hold: Hold
    store: Store
    wanted: Wanted
    statement: int
    spot: Spot
    copy: Index
    depth: int
    kept: Kept | None = None

    @property
    def held(self) -> Held:
        return Held(self.store, self.wanted.access, self.spot, self.copy)

    def copy_of(self, access: Access, there: Spot) -> Index:
        """Which of the copies an access finds itself in."""
        if self.kept is None:
            return self.copy
        place = access.indices[self.kept.dimension].substitute({name: s.base for name, s in there.items()})
        return place % self.kept.size

    def coordinate(self, axis: Axis, access: Access, there: Spot) -> Index:
        """Where an access lies along an axis of the store."""
        if self.kept is None:
            return coordinate(axis, access, self.spot, there)
        return coordinate(axis, access, None, there) - self.kept.lows[axis.dimension]


@dataclass(frozen=True, slots=True)
class Frame:
    """``spots``: the loops of each statement; ``exists``: what must hold for the tiles around to be there."""

    spots: Mapping[int, Spot]
    rings: tuple[Ring, ...] = ()
    live: tuple[Live, ...] = ()
    exists: tuple[Condition, ...] = ()
    unit: tuple[str, str] = ("", "")
    """The units that a parallel loop around is spread over, and its variable."""

    @property
    def ranges(self) -> dict[str, tuple[int, int]]:
        return {ring.var: (0, ring.count - 1) for ring in self.rings}

    def spot(self, number: int, values: Mapping[str, Index]) -> Spot:
        """The loops of a statement where loops of the nest have these values."""
        return {name: replace(s, base=s.base.substitute(values)) for name, s in self.spots[number].items()}


class Site:
    """What is being built: program, plan, target; names and operands."""

    def __init__(self, program: Program, plan: Plan, target: Target) -> None:
        self.program, self.plan, self.target = program, plan, target
        self.main = target.main.name
        self.lefts = {n: lefts(program, plan, n) for n in range(len(program.statements))}
        self.count = 0
        self.zeros: dict[str, Whole] = {}
        self.taken = {t.name for t in program.tensors} | {tile.name for tile in tiles_of(plan.body)}

    def fresh(self, prefix: str) -> str:
        """A name that nothing has: no tensor, no tile, nothing else that asked."""
        while True:
            self.count += 1
            name = f"{prefix}_{self.count}"
            if name not in self.taken:
                return name

    def instruction(self, leaf: Leaf) -> Instruction:
        if leaf.instruction not in self.target.by_name:
            raise PlanError(f"'{leaf}': '{self.target.name}' has no such instruction")
        return self.target.instruction(leaf.instruction)

    def operands(self, leaf: Leaf) -> tuple[Wanted, ...]:
        """What the instruction of a leaf wants."""
        statement = self.program.statements[leaf.statement]
        accesses: dict[str, Access] = {}
        for operand, tensor in leaf.operands:
            found = accesses_of(statement, tensor)
            if len(found) != 1:
                raise PlanError(f"'{leaf}': '{tensor}' is used in {len(found)} ways", hint="run it on the host")
            accesses[operand] = found[0]
        instruction = self.instruction(leaf)
        missing = [o.name for o in instruction.operands if o.name not in accesses]
        if missing:
            raise PlanError(f"'{leaf}' does not say what operand '{missing[0]}' is")
        return wanted_operands(instruction, self.target, dict(leaf.bound), accesses)

    def sizes(self, tensor: str) -> tuple[int, ...]:
        return tuple(e.const for e in self.program.tensor(tensor).shape)

    def zero(self, dtype: DType) -> Whole:
        """One element of 0 in main memory, for machines that copy their zeros."""
        return self.zeros.setdefault(str(dtype), Whole(f"zero_{dtype}", Side(self.main, dtype), (1,)))

    def whole(self, tensor: str) -> Whole:
        return Whole(tensor, Side(self.main, self.program.tensor(tensor).dtype), self.sizes(tensor))
