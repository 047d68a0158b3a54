"""A program and its plan made small: a couple of whole tiles and a rest of every loop, tensors cut to match.

    for i<1024, j<1000, k<4096: c[i, j] += a[i, k] * b[k, j]    in tiles of 4, 48/24/8, 256/1
 -> for i<8, j<88, k<5: ...                                     in tiles of 4, 48/24/8, 2/1

What comes out need not be a smaller case of the same computation, only a valid program of the same structure: both
the reference and the nest are asked what it means. Loops that walk one dimension shrink together. A dimension loses
what its indices lose, and data is made to point inside what is left; a condition that bounds a loop from above moves
with it. A loop whose dimensions cannot follow keeps its extent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from dovetail.base.errors import IndexRangeError, LimitError, VerifyError
from dovetail.certify.losses import Dim, Losses, Pair, accesses, decides, digit_loops, indices, loss, slopes
from dovetail.ir.evaluate import evaluate
from dovetail.ir.expr import Expr, Position, Read, rebuild, walk
from dovetail.ir.fill import fill
from dovetail.ir.index import Access, Condition, Index, affine, constant, variable
from dovetail.ir.plan import Leaf, Plan, PlanNode, Tile
from dovetail.ir.program import Loop, Program, Statement, Tensor
from dovetail.ir.verify import verify

VECTORS = 64
"""An innermost tile of up to this many vectors stays as it is: it is held in registers."""
FEW_VECTORS = 2
"""The same, where nothing is held and little is left of everything else."""
PLACES = 8
"""A dimension up to this long that is read at fixed places stays as it is."""
LADDER = ((2, 16, 4), (2, 3, 3), (1, 8, 4), (1, 3, 3), (1, 1, 1), (1, 1, 32), (1, 1, 128))
"""Rounds of a tile, the extent up to which a loop that shares an index with another (a window) stays as it is, and what
is left of longer ones: more where everything would lie in a wide border."""


@dataclass(frozen=True, slots=True)
class Instance:
    """A program with its plan, and about how many instructions its nest calls."""

    program: Program
    plan: Plan
    calls: int


def reduced(
    program: Program, plan: Plan, sizes: dict[str, int], budget: int, longest: int = VECTORS
) -> Instance | None:
    """An instance of at most ``budget`` calls, or the smallest there is; None when nothing gets smaller.

    Tiles of up to ``longest`` that one instruction does stay as they are.
    """
    found = _reduced(program, plan, sizes, budget, longest, pinned=False)
    if found is None and any(index.is_indirect for s in program.statements for index in indices(s)):
        found = _reduced(program, plan, sizes, budget, longest, pinned=True)
    return found


def _reduced(
    program: Program, plan: Plan, sizes: dict[str, int], budget: int, longest: int, pinned: bool
) -> Instance | None:
    """The same; ``pinned``: dimensions of which data says the place stay as they are."""
    too_large: list[tuple[int, int, dict[Pair, int], Plan]] = []
    fixed = _fixed_extents(program)
    tiles = _Tiles(fixed, LADDER[0][0], longest)
    tiles.nodes(plan.body)
    losses = Losses(program, fixed, tiles.together, pinned)
    for number, (whole, window, few) in enumerate(LADDER):
        lost, smaller = _shrunk(losses, plan, whole, window, few, longest)
        if not any(lost.values()):
            continue
        calls = calls_estimated(program, plan, sizes, lost)
        if calls > budget:
            too_large.append((calls, number, lost, smaller))
            continue
        found = _Rewrite(program, lost, pinned).rewritten()
        if _is_valid(found, sizes):
            return Instance(found, smaller, calls)
    for calls, _, lost, smaller in sorted(too_large, key=lambda row: row[:2]):
        found = _Rewrite(program, lost, pinned).rewritten()
        if _is_valid(found, sizes):
            return Instance(found, smaller, calls)
    return None


def _shrunk(
    losses: Losses, plan: Plan, whole: int, window: int, few: int, longest: int
) -> tuple[dict[Pair, int], Plan]:
    """How many iterations each loop can lose, and the plan with the steps of its tiles shortened in the same way."""
    fixed = losses.extents
    tiles = _Tiles(fixed, whole, longest)
    body = tiles.nodes(plan.body)
    least = _windows(losses.program, fixed, window, few)
    wanted = {pair: max(tiles.extent(pair), min(extent, least.get(pair, 1))) for pair, extent in fixed.items()}
    return losses.solve(wanted), Plan(body, plan.holds, plan.note)


def _fixed_extents(program: Program) -> dict[Pair, int]:
    loops = {(n, x.name): x.extent for n, s in enumerate(program.statements) for x in s.all_loops}
    return {pair: extent.const for pair, extent in loops.items() if extent.is_constant}


def _windows(program: Program, extents: dict[Pair, int], window: int, few: int) -> dict[Pair, int]:
    """Loops that share an index with others: short ones stay, long ones keep a few iterations of every kind."""
    found: dict[Pair, int] = {}
    for number, statement in enumerate(program.statements):
        for index in indices(statement):
            shared = [(number, name) for name in index.names() if (number, name) in extents]
            if len(shared) > 1:
                found |= {p: extents[p] if extents[p] <= window else few for p in shared}
    return found | _told_apart(program, extents)


def _told_apart(program: Program, extents: dict[Pair, int]) -> dict[Pair, int]:
    """Short loops along dimensions of which others read fixed places beyond the first."""
    fixed = {
        (access.tensor, d)
        for statement in program.statements
        for access in statement.reads()
        for d, index in enumerate(access.indices)
        if index.is_constant and index.const > 0
    }
    found: dict[Pair, int] = {}
    for number, statement in enumerate(program.statements):
        for d, index in enumerate(statement.out.indices):
            pairs = [(number, name) for name in index.names() if (statement.out.tensor, d) in fixed]
            found |= {p: extents[p] for p in pairs if extents.get(p, PLACES + 1) <= PLACES}
    return found


def _is_valid(program: Program, sizes: dict[str, int]) -> bool:
    """Whether it means anything; where data says where elements are, whether they still are there."""
    try:
        verify(program)
        if any(True for s in program.statements for access in accesses(s) for _ in access.reads()):
            evaluate(program, fill(program, 1, sizes), sizes)
    except (VerifyError, LimitError, IndexRangeError):
        return False
    return True


def calls_estimated(program: Program, plan: Plan, sizes: dict[str, int], lost: Mapping[Pair, int] | None = None) -> int:
    """About how many instructions the nest of ``plan`` calls: operations and moves of every point or vector.

    ``lost``: by how much loops are shorter than in ``program``.
    """
    total = 0
    for leaf in plan.leaves():
        statement = program.statements[leaf.statement]
        points = 1
        for loop in statement.all_loops:
            extent = max(0, loop.extent.evaluate(sizes) - (lost or {}).get((leaf.statement, loop.name), 0))
            points *= -(-extent // (leaf.width if loop.name == leaf.lanes else 1))
        total += points * (1 + sum(1 for _ in walk(statement.value)) // 2)
    return total


# -- tiles


class _Tiles:
    """Shorter steps for the tiles of a plan, from the inside out."""

    def __init__(self, extents: dict[Pair, int], whole: int, longest: int) -> None:
        self.extents, self.whole, self.longest = extents, whole, longest
        self.cuts: dict[Pair, list[tuple[int, int]]] = {}
        """Old and new step of the tiles of each loop, innermost first."""
        self.tiled: set[Pair] = set()
        self.called: set[Pair] = set()
        """Loops that one instruction runs over."""
        self.together: list[tuple[Pair, ...]] = []
        """Loops that one tile covers."""

    def nodes(self, nodes: tuple[PlanNode, ...]) -> tuple[PlanNode, ...]:
        return tuple(self.leaf(node) if isinstance(node, Leaf) else self.tile(node) for node in nodes)

    def leaf(self, leaf: Leaf) -> Leaf:
        if leaf.width > 1:
            self.cuts[leaf.statement, leaf.lanes] = [(leaf.width, leaf.width)]
        self.called |= {(leaf.statement, loop) for _, loops in leaf.bound for loop in loops}
        return leaf

    def tile(self, tile: Tile) -> Tile:
        body = self.nodes(tile.body)
        step = self.step(tile)
        for pair in tile.loops:
            self.cuts.setdefault(pair, []).append((tile.step, step))
            self.tiled.add(pair)
        self.together.append(tile.loops)
        return replace(tile, body=body, step=step)

    def step(self, tile: Tile) -> int:
        if any(tile.step >= self.extents.get(pair, tile.step + 1) for pair in tile.loops):
            return tile.step
        old, new = max(self.cuts.get(pair, [(1, 1)])[-1] for pair in tile.loops)
        longest = VECTORS * old if self.called.isdisjoint(tile.loops) else max(VECTORS * old, self.longest)
        if self.tiled.isdisjoint(tile.loops) and tile.step <= longest:
            return tile.step if self.whole > 1 or _holds(tile) else min(tile.step, FEW_VECTORS * old)
        return self.cut(tile.step, [(old, new)])

    def extent(self, pair: Pair) -> int:
        """A couple of the outermost tile, and what the rest becomes by the same rule."""
        extent = self.extents[pair]
        if pair in self.called and pair not in self.tiled and extent <= self.longest:
            return extent
        return min(extent, self.cut(extent, self.cuts.get(pair, [(1, 1)])[::-1]))

    def cut(self, extent: int, cuts: list[tuple[int, int]]) -> int:
        (old, new), *inner = cuts
        rounds, rest = divmod(extent, old)
        if inner:
            rest = self.cut(rest, inner)
        return min(rounds, self.whole) * new + (rest if rest < new else new - 1)


def _holds(node: PlanNode) -> bool:
    """Whether registers, or anything else, are held in a tile."""
    return isinstance(node, Tile) and (bool(node.holds) or any(_holds(n) for n in node.body))


# -- the small program


@dataclass(frozen=True)
class _Rewrite:
    program: Program
    lost: dict[Pair, int]
    pinned: bool

    @property
    def extents(self) -> dict[Pair, int]:
        return _fixed_extents(self.program)

    @property
    def numbers(self) -> range:
        return range(len(self.program.statements))

    def losses(self) -> dict[str, tuple[int, ...]]:
        """What each dimension of each tensor loses: the least of its uses, but for those whose place is data."""
        least: dict[Dim, int] = {}
        extents = self.extents
        for number, statement in enumerate(self.program.statements):
            for access in accesses(statement):
                for d, index in enumerate(access.indices):
                    if decides(index, self.pinned):
                        less = loss(self.lost, number, index, extents)
                        least[access.tensor, d] = min(least.get((access.tensor, d), less), less)
        return {t.name: tuple(least.get((t.name, d), 0) for d in range(len(t.shape))) for t in self.program.tensors}

    def rewritten(self) -> Program:
        less = self.losses()
        tensors = tuple(
            Tensor(t.role, t.name, t.dtype, tuple(e - cut for e, cut in zip(t.shape, less[t.name], strict=True)))
            for t in self.program.tensors
        )
        extents = self.extents
        places = [_Places({t.name: t for t in tensors}, less, extents, self.lost, n) for n in self.numbers]
        statements = tuple(self.statement(n, s, places[n]) for n, s in enumerate(self.program.statements))
        return Program(tensors, statements, self.program.sizes)

    def statement(self, number: int, statement: Statement, places: _Places) -> Statement:
        def loops(old: tuple[Loop, ...]) -> tuple[Loop, ...]:
            return tuple(Loop(x.name, x.extent - self.lost.get((number, x.name), 0)) for x in old)

        return replace(
            statement,
            loops=loops(statement.loops),
            seq=loops(statement.seq),
            out=places.access(statement.out),
            value=rebuild(statement.value, places.value),
            where=tuple(self.condition(number, c, places) for c in statement.where),
        )

    def condition(self, number: int, condition: Condition, places: _Places) -> Condition:
        """A bound of a dimension moves with it; any other bound from above with the loops it bounds.

        Where loops are compared with each other it stays.
        """
        index = places.index(condition.index)
        for access in accesses(self.program.statements[number]):
            for place, less in zip(access.indices, places.less[access.tensor], strict=True):
                if place.names() and (condition.index + place).is_constant:
                    return Condition(index - less, condition.equal)
        moving = {n: s for n, s in slopes(condition.index).items() if self.lost.get((number, n), 0)}
        if not moving or any(s > 0 for s in moving.values()):
            return Condition(index, condition.equal)
        return Condition(index - int(sum(-s * self.lost[number, n] for n, s in moving.items())), condition.equal)


@dataclass(frozen=True)
class _Places:
    """Accesses of one statement as they are, but a fixed place beyond a dimension's new end moves with that end, and
    digits count as far as their loops go."""

    tensors: dict[str, Tensor]
    less: dict[str, tuple[int, ...]]
    extents: dict[Pair, int]
    lost: dict[Pair, int]
    number: int

    def value(self, e: Expr) -> Expr:
        if isinstance(e, Read):
            return Read(self.access(e.access))
        return Position(self.index(e.index)) if isinstance(e, Position) else e

    def access(self, access: Access) -> Access:
        found = []
        shape = self.tensors[access.tensor].shape
        for index, extent, less in zip(access.indices, shape, self.less[access.tensor], strict=True):
            beyond = index.is_constant and extent.is_constant and index.const >= extent.const
            found.append(index - less if beyond else self.index(index))
        return Access(access.tensor, tuple(found))

    def index(self, index: Index) -> Index:
        digits = digit_loops(self.extents, self.number, index)
        if digits:
            found, reach = constant(0), 1
            for name in digits:
                found = found + variable(name) * reach
                reach *= self.extents[self.number, name] - self.lost.get((self.number, name), 0)
            return found
        return index.map_atoms(lambda a: affine(((self.access(a), 1),)) if isinstance(a, Access) else None)
