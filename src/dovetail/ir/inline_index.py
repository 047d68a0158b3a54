"""Where an element that a move has put somewhere came from, as an index; and loops split so that indices are affine.

for a<4, b<6: t[6*a + b] = x[b, a]        t[e] is x[e % 6, e // 6]
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from dovetail.ir.expr import Expr, Read, rebuild, walk
from dovetail.ir.index import ONE, Access, Index, Quotient, Remainder, variable
from dovetail.ir.index_ranges import Ranges, simplify
from dovetail.ir.program import Loop, Statement

Places = Mapping[str, tuple[int, int, int | None]]
"""Of each loop: the dimension that it walks, in steps of how much, and how often before a larger loop takes its next
step (None: it is the largest)."""
_MOST_SPLITS = 4


def inverse(move: Statement, shape: tuple[Index, ...]) -> Places | None:
    """What each loop of ``move`` is at a place of the result; None where its indices do not say that."""
    extents = {loop.name: loop.extent for loop in move.loops}
    found: dict[str, tuple[int, int, int | None]] = {}
    for dim, index in enumerate(move.out.indices):
        digits = _digits(index, extents, shape[dim])
        if digits is None:
            return None
        for name, step, extent in digits:
            if name in found:
                return None
            found[name] = (dim, step, extent)
    rest = extents.keys() - found.keys()
    if any(extents[name] != ONE for name in rest) or any(name in _names(move.value) for name in rest):
        return None
    return found


def _digits(index: Index, extents: Mapping[str, Index], whole: Index) -> list[tuple[str, int, int | None]] | None:
    """Loops that count through 0 .. whole - 1 together, the largest first."""
    if index.const or not index.is_affine:
        return None
    terms = sorted(((c, str(a)) for a, c in index.terms), reverse=True)
    if any(name not in extents or c < 1 for c, name in terms):
        return None
    found: list[tuple[str, int, int | None]] = []
    step = 1
    for c, name in reversed(terms):
        if c != step:
            return None
        extent = extents[name]
        largest = name == terms[0][1]
        if not extent.is_constant and not largest:
            return None
        if largest:
            return [(name, c, None), *found] if extent * step == whole else None
        found.insert(0, (name, c, extent.const))
        step *= extent.const
    return found if whole == ONE else None


def _names(value: Expr) -> frozenset[str]:
    return frozenset().union(*(n.access.names() for n in walk(value) if isinstance(n, Read)))


def simplified(statement: Statement, sizes: Mapping[str, tuple[int, int]]) -> Statement:
    """Indices of what is read spelled shortly, by what the loops' extents say."""
    ranges = Ranges({loop.name: loop.extent for loop in statement.all_loops}, sizes)

    def change(e: Expr) -> Expr:
        if isinstance(e, Read):
            return Read(Access(e.access.tensor, tuple(simplify(index, ranges) for index in e.access.indices)))
        return e

    return replace(statement, value=rebuild(statement.value, change))


def split_reduced(
    statement: Statement, sizes: Mapping[str, tuple[int, int]], taken: Collection[str], tensor: str
) -> Statement | None:
    """``statement`` with affine indices into ``tensor``: reduced loops are split at divisors; None where that fails."""
    for _ in range(_MOST_SPLITS):
        rough = [index for index in _indices(statement, tensor) if not index.is_affine]
        if not rough:
            return statement
        reduced = {loop.name: loop.extent for loop in statement.reduced}
        where = sorted({found for index in rough for found in _divided(index)})
        fits = [(n, d) for n, d in where if n in reduced and reduced[n].is_constant and reduced[n].const % d == 0]
        if not fits:
            return None
        statement = _split(statement, *fits[0], sizes, taken)
    return None


def _indices(statement: Statement, tensor: str) -> Iterator[Index]:
    for node in walk(statement.value):
        if isinstance(node, Read) and node.access.tensor == tensor:
            yield from node.access.indices


def _divided(index: Index) -> Iterator[tuple[str, int]]:
    """Loops by themselves under a quotient or a remainder, with the divisor."""
    for atom, _ in index.terms:
        if isinstance(atom, Quotient | Remainder):
            inner = atom.index
            if len(inner.terms) == 1 and inner.terms[0][1] == 1 and not inner.const:
                name = inner.terms[0][0]
                if isinstance(name, str):
                    yield name, atom.divisor
            yield from _divided(inner)


def _split(
    statement: Statement, name: str, divisor: int, sizes: Mapping[str, tuple[int, int]], taken: Collection[str]
) -> Statement:
    known = {*taken, *(loop.name for loop in statement.all_loops)}
    outer, inner = _fresh(f"{name}0", known), _fresh(f"{name}1", known)
    loops: list[Loop] = []
    for loop in statement.loops:
        if loop.name == name:
            loops += [Loop(outer, loop.extent // divisor), Loop(inner, Index((), divisor))]
        else:
            loops.append(loop)
    found = statement.substitute({name: variable(outer) * divisor + variable(inner)}, tuple(loops))
    return simplified(found, sizes)


def _fresh(name: str, taken: Collection[str]) -> str:
    while name in taken:
        name += "_"
    return name
