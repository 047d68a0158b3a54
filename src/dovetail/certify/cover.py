"""By isl: a plan's tiles reach every point of every statement exactly once, and no point runs before what it needs.

A loop cut by tiles of steps s1, s2, ... is ``i = s1*t1 + s2*t2 + ... + u``, every rest cut short where the loop or the
tile around it ends. Two points meet when they touch one element and one of them writes it; then the plan must keep
the program's order, and where units share a tile both must lie in the same round of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import gcd
from time import perf_counter

from dovetail.base.errors import LimitError
from dovetail.ir.certificate import Check
from dovetail.ir.domain import domain, index_text, is_indirect, variables
from dovetail.ir.index import Access, variable
from dovetail.ir.plan import Leaf, Plan, PlanNode, Tile
from dovetail.ir.program import Combine, Program, Statement
from dovetail.poly.sets import first_missing, first_point, is_injective, map_text, set_text


@dataclass(frozen=True, slots=True)
class Spot:
    """A leaf, the tiles around it from the outside in, and its place among its neighbours at each depth."""

    leaf: Leaf
    around: tuple[Tile, ...]
    place: tuple[int, ...]

    def steps(self, loop: str) -> tuple[int, ...]:
        """The steps by which ``loop`` is cut, lanes last."""
        cut = [tile.step for tile in self.around if (self.leaf.statement, loop) in tile.loops]
        return (*cut, self.leaf.width) if loop == self.leaf.lanes else tuple(cut)

    def walks(self, seq: list[str]) -> bool:
        """Whether the outermost tiles take the steps ``seq`` one by one, in order."""
        outer = self.around[: len(seq)]
        plain = all(tile.step == 1 and not tile.unit and not tile.downward for tile in outer)
        return plain and [dict(tile.loops).get(self.leaf.statement) for tile in outer] == seq


def cover_checks(program: Program, plan: Plan) -> tuple[Check, ...]:
    """That each point runs once, and that points which meet run in the program's order."""
    spots = {spot.leaf.statement: spot for spot in _spots(plan.body, (), ())}
    once = _every_point_once(program, spots)
    return (once, _in_order(program, spots)) if once.passed else (once,)


def _spots(nodes: Sequence[PlanNode], around: tuple[Tile, ...], place: tuple[int, ...]) -> Iterator[Spot]:
    for number, node in enumerate(nodes):
        if isinstance(node, Leaf):
            yield Spot(node, around, (*place, number))
        else:
            yield from _spots(node.body, (*around, node), (*place, number))


# -- every point once


def _every_point_once(program: Program, spots: dict[int, Spot]) -> Check:
    claim, started = "tiles reach every point of every statement exactly once", perf_counter()
    chains: set[tuple[int, ...]] = set()
    for number, statement in enumerate(program.statements):
        if number not in spots:
            return Check(claim, "isl", f"statement {number} has no place in the plan", False)
        for loop in statement.all_loops:
            steps = spots[number].steps(loop.name)
            chains.add(steps)
            if not _partitions(steps):
                return Check(claim, "isl", f"loop {loop.name} of statement {number} in tiles of {steps}", False)
    cuts = ", ".join("/".join(map(str, chain)) for chain in sorted(chains) if chain) or "no tiles"
    return Check(claim, "isl", f"for every extent, in steps of {cuts}", True, perf_counter() - started)


def _partitions(steps: tuple[int, ...]) -> bool:
    """Whether tiles of these steps, outermost first, reach every iteration once.

    Each tile cuts what the one around it left; parts of parts that share nothing share nothing.
    """
    return all(_cuts(step) for step in steps)


@lru_cache(maxsize=4096)
def _cuts(step: int) -> bool:
    """Whether tiles of ``step`` reach each of ``i < n`` once, whatever n is."""
    rows = [f"0 <= u < {step}", "t >= 0", f"{step}*t + u < n"]
    once = is_injective(map_text(["n", "t", "u"], ["n", f"{step}*t + u"], rows))
    reached = set_text(["n", "i"], [*rows, f"i = {step}*t + u"], hidden=["t", "u"])
    return once and first_missing("{ [n, i] : 0 <= i < n }", (reached,)) is None


# -- order


def _in_order(program: Program, spots: dict[int, Spot]) -> Check:
    claim, started = "points that meet in an element run in the program's order", perf_counter()
    groups = {number: group for group in program.groups() for number in group}
    count = 0
    hard: list[_Pair] = []
    for first, one in enumerate(program.statements):
        for second in range(len(program.statements)) if one.seq else range(first, len(program.statements)):
            if second < first and groups[second] is not groups[first]:
                continue
            for mine, other in _meetings(program, first, second):
                count += 1
                pair = _Pair(program, spots[first], spots[second], mine, other)
                if not pair.is_plain():
                    hard.append(pair)
    detail = f"{count} pair{'s' if count != 1 else ''} of accesses"
    try:
        wrong = next((pair for pair in hard if pair.is_wrong()), None)
    except LimitError:
        return Check(claim, "alignment of accesses", f"{detail}; isl took too long", True, perf_counter() - started)
    method = "isl" if hard else "equal indices"
    return Check(claim, method, str(wrong) if wrong else detail, wrong is None, perf_counter() - started)


def _meetings(program: Program, first: int, second: int) -> Iterator[tuple[Access, Access]]:
    """Accesses of both statements to one tensor, at least one of them a write."""
    one, other = program.statements[first], program.statements[second]
    found: dict[tuple[Access, Access], None] = {}
    if first == second and not one.seq:
        if one.combine is not Combine.SET:
            yield one.out, one.out
        return
    for access in (other.out, *other.reads()):
        if access.tensor == one.out.tensor:
            found[one.out, access] = None
    for access in one.reads():
        if access.tensor == other.out.tensor:
            found[access, other.out] = None
    yield from found


@dataclass(frozen=True)
class _Pair:
    """Two statements (or one twice) and an element both touch; points of the first are marked a, of the second b."""

    program: Program
    a: Spot
    b: Spot
    mine: Access
    other: Access

    def __str__(self) -> str:
        return f"{self.mine} of statement {self.a.leaf.statement} and {self.other} of {self.b.leaf.statement}"

    def is_plain(self) -> bool:
        """Whether both walk the shared tiles by the same indices of the element, so that they meet in one round only.

        Tiles over steps run them in order by themselves; a statement that waits for the last round comes after.
        """
        itself = self.a.leaf == self.b.leaf
        if not itself and never_meet(self.mine, self.other):
            return True
        seq = [loop.name for loop in self.one.seq]
        if not all(spot.walks(seq) for spot in (self.a, self.b)) and self.shared:
            return False
        for tile in self.a.around[len(seq) : self.shared]:
            covered = dict(tile.loops)
            mine, other = covered.get(self.a.leaf.statement), covered.get(self.b.leaf.statement)
            if (itself and not tile.unit) or (other is None and not tile.unit):
                continue
            if mine is None or other is None:
                return False
            pairs = zip(self.mine.indices, self.other.indices, strict=True)
            if not any(x == variable(mine) and y == variable(other) for x, y in pairs):
                return False
        by_steps_only = self.a.leaf.statement > self.b.leaf.statement
        return itself or by_steps_only or self.a.place < self.b.place

    def is_wrong(self) -> bool:
        """Whether some point of b that must come after one of a does not."""
        if not self.shared and not self.one.seq:
            return self.a.place > self.b.place
        return any(self._exists([*earlier, *wrong]) for earlier in self._before() for wrong in self._not_after())

    @property
    def one(self) -> Statement:
        return self.program.statements[self.a.leaf.statement]

    @property
    def two(self) -> Statement:
        return self.program.statements[self.b.leaf.statement]

    @property
    def shared(self) -> int:
        """How many tiles are around both."""
        pairs = zip(self.a.around, self.b.around, strict=False)
        return next((n for n, (x, y) in enumerate(pairs) if x is not y), min(len(self.a.around), len(self.b.around)))

    def _before(self) -> Iterator[list[str]]:
        """Constraints under which the program runs the point of a before that of b."""
        first, second = self.a.leaf.statement, self.b.leaf.statement
        seq = [loop.name for loop in self.one.seq] if self.one.seq == self.two.seq else []
        for depth, name in enumerate(seq):
            yield [*(f"va_{n} = vb_{n}" for n in seq[:depth]), f"va_{name} < vb_{name}"]
        if first < second or (first == second and not seq):
            yield [f"va_{n} = vb_{n}" for n in seq]

    def _not_after(self) -> Iterator[list[str]]:
        """Constraints under which the plan does not run the point of b after that of a."""
        same: list[str] = []
        itself = self.a.leaf == self.b.leaf and not self.one.seq
        for depth in range(self.shared):
            tile = self.a.around[depth]
            mine, other = self._counter(self.a, "a", depth), self._counter(self.b, "b", depth)
            if mine and other:
                if tile.unit:
                    yield [*same, f"{other} < {mine}"]
                    yield [*same, f"{other} > {mine}"]
                elif not itself:
                    yield [*same, f"{other} > {mine}" if tile.downward else f"{other} < {mine}"]
                same.append(f"{mine} = {other}")
            elif other or tile.unit:
                yield list(same)
        if self.a.place > self.b.place and not itself:
            yield same

    def _counter(self, spot: Spot, mark: str, depth: int) -> str:
        """The variable that counts rounds of a tile; "" for a statement that waits for the last round."""
        covered = any(number == spot.leaf.statement for number, _ in spot.around[depth].loops)
        return f"c{mark}_{depth}" if covered else ""

    def _exists(self, order: list[str]) -> bool:
        """Whether there are such points. Conditions are looked at only where there would be some without them."""
        return self._asked(order, False) and (not (self.one.where or self.two.where) or self._asked(order, True))

    def _asked(self, order: list[str], with_conditions: bool) -> bool:
        names: list[str] = [f"v_{size.name}" for size in self.program.sizes]
        rows: list[str] = list(order)
        for spot, statement, mark in ((self.a, self.one, "a"), (self.b, self.two, "b")):
            plain = statement if with_conditions else replace(statement, where=())
            names += variables((loop.name for loop in statement.all_loops), mark)
            rows += domain(self.program, plain, mark)
            counters = list(self._rounds(spot, mark))
            names += [name for name, _ in counters]
            rows += [row for _, row in counters]
        marks = [{loop.name: m for loop in s.all_loops} for s, m in ((self.one, "a"), (self.two, "b"))]
        for mine, other in zip(self.mine.indices, self.other.indices, strict=True):
            if not is_indirect(mine) and not is_indirect(other):
                rows.append(f"{index_text(mine, marks[0])} = {index_text(other, marks[1])}")
        return first_point(set_text(names, rows)) is not None

    def _rounds(self, spot: Spot, mark: str) -> Iterator[tuple[str, str]]:
        """Counters of the shared tiles around one of the two, and how they follow from its loops."""
        rest: dict[str, str] = {}
        for depth in range(self.shared):
            tile = spot.around[depth]
            loop = next((name for number, name in tile.loops if number == spot.leaf.statement), None)
            if loop is None:
                continue
            counter = f"c{mark}_{depth}"
            left = f"{rest.get(loop, f'v{mark}_{loop}')} - {tile.step}*{counter}"
            yield counter, f"0 <= {left} < {tile.step}"
            rest[loop] = left


def never_meet(mine: Access, other: Access) -> bool:
    """Whether some dimension keeps two accesses apart: ``4*i`` is even where ``2*j + 1`` is not."""
    for one, two in zip(mine.indices, other.indices, strict=True):
        if one.is_affine and two.is_affine:
            step, gap = gcd(*(c for _, c in (*one.terms, *two.terms))), two.const - one.const
            if gap % step if step else gap:
                return True
    return False
