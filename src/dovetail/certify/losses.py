"""How many iterations each loop of a program can lose, so that it stays a program: all uses of a dimension agree.

for i<100: t[i] = x[i]      for i<25, k<9: y[i, k] = t[4 * i + 3] + z[k]     ->  first i loses 92, second i 23, k 6
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from math import gcd, lcm, prod

from dovetail.ir.expr import Position, walk
from dovetail.ir.index import Access, Index, Quotient, constant, variable
from dovetail.ir.program import Program, Statement

Pair = tuple[int, str]
"""A loop of a statement."""
Dim = tuple[str, int]


class Losses:
    """How many iterations each loop loses, so that all uses of a dimension lose the same.

    Loops and dimensions that one loop walks in steps are tied: ``lost[dimension] == step * lost[loop]``. A dimension
    that several loops walk as the digits of a number loses what shorter digits leave out.
    """

    def __init__(
        self, program: Program, extents: dict[Pair, int], together: list[tuple[Pair, ...]], pinned: bool = False
    ) -> None:
        self.program, self.extents, self.pinned = program, extents, pinned
        """Whether dimensions stay of which data says the place."""
        self.written = {s.out.tensor for s in program.statements}
        self.parent: dict[Pair | Dim, tuple[Pair | Dim, Fraction]] = {}
        """Another node of the same tree, and how much of what that one loses this one loses."""
        self.torn: set[Pair | Dim] = set()
        self.grain: dict[Pair, int] = {}
        self.joint: list[tuple[Dim, int, tuple[str, ...]]] = []
        """Dimensions that digits walk, with the statement and its loops, the fastest first."""
        for loops in together:
            for pair in loops[1:]:
                self.tie(loops[0], pair)
        for number, statement in enumerate(program.statements):
            for access in accesses(statement):
                self.tie_dimensions(number, access)
            for index in indices(statement):
                self.note_divisors(number, index, 1)
        for dim in self.fixed_dimensions():
            self.torn.add(self.root(dim)[0])
        self.trees = {root: _Tree(members, self) for root, members in self.members().items()}
        self.uses = self.uses_of_dimensions()

    def solve(self, wanted: Mapping[Pair, int]) -> dict[Pair, int]:
        """What each loop loses so that at least as many iterations are left as ``wanted``."""
        frozen = {self.root(node)[0] for node in self.torn}
        while True:
            lost = self.losses(frozen, wanted)
            clash = {self.root(pair)[0] for pair in self.clashes(lost)}
            if not clash - frozen:
                return lost
            frozen |= clash

    def losses(self, frozen: set[Pair | Dim], wanted: Mapping[Pair, int]) -> dict[Pair, int]:
        trees = self.trees
        most = {root: tree.most(self.extents, wanted) for root, tree in trees.items()}
        rounds = {root: 0 if root in frozen else most[root] for root in trees}
        for dim, number, loops in self.joint:
            root, weight = self.root(dim)
            outer = self.root((number, loops[-1]))[0]
            if root not in trees or root in frozen:
                continue
            while True:
                less = self.less_digits(number, loops, trees, rounds)
                step = trees[root].rounds(less / weight)
                if (step is not None and step <= most[root]) or not rounds[outer]:
                    break
                rounds[outer] -= 1
            rounds[root] = step or 0
        return {pair: trees[root].lost(pair, rounds[root]) for root, tree in trees.items() for pair in tree.weights}

    def less_digits(
        self, number: int, loops: tuple[str, ...], trees: dict[Pair | Dim, _Tree], rounds: dict[Pair | Dim, int]
    ) -> int:
        whole = left = 1
        for name in loops:
            pair = number, name
            root = self.root(pair)[0]
            whole *= self.extents[pair]
            left *= self.extents[pair] - trees[root].lost(pair, rounds[root])
        return whole - left

    def clashes(self, lost: dict[Pair, int]) -> Iterator[Pair]:
        """Loops of dimensions of written tensors whose uses do not lose the same."""
        for found in self.uses:
            if len({loss(lost, number, index, self.extents) for number, index in found}) > 1:
                yield from ((n, name) for n, index in found for name in index.names() if (n, name) in lost)

    def uses_of_dimensions(self) -> list[list[tuple[int, Index]]]:
        """For each dimension of a written tensor that is used more than once: the statements and their indices."""
        uses: dict[Dim, list[tuple[int, Index]]] = {}
        for number, statement in enumerate(self.program.statements):
            for access in accesses(statement):
                for d, index in enumerate(access.indices):
                    if decides(index, self.pinned) and access.tensor in self.written:
                        uses.setdefault((access.tensor, d), []).append((number, index))
        return [found for found in uses.values() if len(found) > 1]

    def members(self) -> dict[Pair | Dim, list[Pair]]:
        found: dict[Pair | Dim, list[Pair]] = {}
        for pair in self.extents:
            found.setdefault(self.root(pair)[0], []).append(pair)
        return found

    def tie_dimensions(self, number: int, access: Access) -> None:
        """A loop that walks all of a dimension by itself belongs to it; of written tensors, any loop that walks it."""
        shape = self.program.tensor(access.tensor).shape
        for d, (index, extent) in enumerate(zip(access.indices, shape, strict=True)):
            name = next(iter(index.names()), "")
            step = index.coefficient(name) if name else 0
            alone = (number, name) in self.extents and step > 0 and index == variable(name) * step + index.const
            whole = alone and step == 1 and not index.const and extent == constant(self.extents[number, name])
            if whole or (alone and access.tensor in self.written):
                self.tie((number, name), (access.tensor, d), step)
            loops = digit_loops(self.extents, number, index)
            if loops and access.tensor in self.written:
                self.joint.append(((access.tensor, d), number, loops))

    def fixed_dimensions(self) -> Iterator[Dim]:
        """Dimensions with several places that are written by their number."""
        places: dict[Dim, set[int]] = {}
        for statement in self.program.statements:
            for d, index in enumerate(statement.out.indices):
                if index.is_constant:
                    places.setdefault((statement.out.tensor, d), set()).add(index.const)
        return (dim for dim, numbers in places.items() if len(numbers) > 1)

    def note_divisors(self, number: int, index: Index, above: int) -> None:
        """A loop in a quotient or remainder shrinks by whole turns of it."""
        for atom, _ in index.terms:
            if isinstance(atom, Access):
                for inside in atom.indices:
                    self.note_divisors(number, inside, 1)
            elif not isinstance(atom, str):
                divisor = above * atom.divisor
                for name in atom.index.names():
                    factor = atom.index.coefficient(name)
                    turn = divisor // gcd(divisor, factor) if factor else divisor
                    self.grain[number, name] = lcm(self.grain.get((number, name), 1), turn)
                self.note_divisors(number, atom.index, divisor)

    def tie(self, one: Pair | Dim, other: Pair | Dim, step: int = 1) -> None:
        """From now on ``lost[other] == step * lost[one]``."""
        (first, mine), (second, theirs) = self.root(one), self.root(other)
        if first != second:
            self.parent[first] = second, theirs / (step * mine)
            self.torn |= {second} if first in self.torn else set()
        elif theirs != step * mine:
            self.torn.add(first)

    def root(self, node: Pair | Dim) -> tuple[Pair | Dim, Fraction]:
        """The root of the node's tree, and how much of what that loses the node loses."""
        weight = Fraction(1)
        while node in self.parent:
            node, factor = self.parent[node]
            weight *= factor
        return node, weight


class _Tree:
    """Loops that lose iterations in fixed proportions, all of them together."""

    def __init__(self, members: list[Pair], losses: Losses) -> None:
        weights = {pair: losses.root(pair)[1] for pair in members}
        unit = Fraction(lcm(*(w.denominator for w in weights.values())))
        unit /= gcd(*(int(w * unit) for w in weights.values()))
        grains = [(losses.grain.get(pair, 1), int(w * unit)) for pair, w in weights.items()]
        unit *= lcm(*(grain // gcd(grain, w) for grain, w in grains))
        self.unit = unit
        self.weights = {pair: int(w * unit) for pair, w in weights.items()}

    def most(self, extents: Mapping[Pair, int], wanted: Mapping[Pair, int]) -> int:
        """How often they can, for as many iterations to be left as ``wanted``."""
        return min(max(0, extents[pair] - wanted[pair]) // w for pair, w in self.weights.items())

    def lost(self, pair: Pair, rounds: int) -> int:
        return self.weights[pair] * rounds

    def rounds(self, lost: Fraction) -> int | None:
        """How often, for the root to lose so much; None when no whole number does it."""
        found = lost / self.unit
        return int(found) if found.denominator == 1 else None


def digit_loops(extents: Mapping[Pair, int], number: int, index: Index) -> tuple[str, ...]:
    """The loops of ``tx + 14 * ty``, fastest first, where they count every value once; () for any other index."""
    names = sorted(index.names(), key=index.coefficient)
    if len(names) < 2 or not index.is_affine or index.const or any((number, n) not in extents for n in names):
        return ()
    reach = 1
    for name in names:
        if index.coefficient(name) != reach:
            return ()
        reach *= extents[number, name]
    return tuple(names)


def loss(lost: dict[Pair, int], number: int, index: Index, extents: Mapping[Pair, int]) -> int:
    """By how much the largest value of ``index`` falls."""
    digits = [(extents[number, n], lost.get((number, n), 0)) for n in digit_loops(extents, number, index)]
    if digits:
        return prod(extent for extent, _ in digits) - prod(extent - less for extent, less in digits)
    if index.is_affine:
        return sum(c * lost.get((number, str(name)), 0) for name, c in index.terms if c > 0)
    return int(sum(s * lost[number, n] for n, s in slopes(index).items() if s > 0 and (number, n) in lost))


def decides(index: Index, pinned: bool) -> bool:
    """Whether a dimension must follow what ``index`` loses; ``pinned``: also where data says the place."""
    return pinned if index.is_indirect else bool(index.names())


def slopes(index: Index) -> dict[str, Fraction]:
    """What one step of each loop adds to ``index``, on average; indirect reads and remainders add nothing."""
    found: dict[str, Fraction] = {}
    for atom, factor in index.terms:
        inner: dict[str, Fraction] = {}
        if isinstance(atom, str):
            inner = {atom: Fraction(1)}
        elif isinstance(atom, Quotient):
            inner = {name: slope / atom.divisor for name, slope in slopes(atom.index).items()}
        for name, slope in inner.items():
            found[name] = found.get(name, Fraction(0)) + factor * slope
    return found


def accesses(statement: Statement) -> Iterator[Access]:
    yield statement.out
    yield from statement.reads()


def indices(statement: Statement) -> Iterator[Index]:
    for access in accesses(statement):
        yield from access.indices
    yield from (condition.index for condition in statement.where)
    yield from (node.index for node in walk(statement.value) if isinstance(node, Position))
