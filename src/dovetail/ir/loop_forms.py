"""One choice of loops among the many that visit the same points.

    for n<1, i<8: y[n, i] = x[n, i]             ->  for i<8: y[0, i] = x[0, i]
    for a<2, b<4: y[4*a + b] = x[4*a + b]       ->  for a<8: y[a] = x[a]
    for i<8: y[i//4, i%4] = x[i]                ->  for i.0<2, i.1<4: y[i.0, i.1] = x[4*i.0 + i.1]
    for i<8, j<3 where i + j < 20: y[i] += x[i] ->  for i<8, j<3: y[i] += x[i]

Works on a *group*: neighbouring statements that share their ``seq`` loops. Names with a dot are new.
A loop that is only seen through remainders of a scaled sum, ``x[(2*i) % 3]``, may keep more than one form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from math import gcd, prod

from dovetail.base.dtypes import DTYPES
from dovetail.ir.expr import Cast, Expr, Literal, Position, Read, rebuild, walk
from dovetail.ir.index import ZERO, Access, Condition, Index, Quotient, Remainder, constant, variable
from dovetail.ir.index_ranges import Ranges, needed_conditions, simplify
from dovetail.ir.program import Loop, Statement

Group = tuple[Statement, ...]
MAX_ROUNDS = 64
"""Splits and joins of one group; each makes an index shorter, so that in practice a handful is enough."""
SizeRanges = Mapping[str, tuple[int, int]]
Change = tuple[tuple[Loop, ...], dict[str, Index]]
"""New loops, and what the old ones are in terms of them."""


def plain_loops(group: Group, sizes: SizeRanges) -> Group:
    """The group over its normal loops, with indices and conditions spelled shortly."""
    for _ in range(MAX_ROUNDS):
        before = group
        group = _drop_unit_loops(group)
        group = tuple(_simplified(s, sizes) for s in group)
        group = _split_seq(group)
        group = tuple(_split_loops(s) for s in group)
        if group != before:
            continue
        group = _join_seq(group)
        group = tuple(_join_loops(_join_unused(s)) for s in group)
        if group == before:
            break
    return group


# -- loops of extent 1


def _drop_unit_loops(group: Group) -> Group:
    seq = group[0].seq
    unit = {loop.name for loop in seq if loop.extent == constant(1)}
    if unit and len(unit) == len(seq) and _reads_itself(group):
        unit.remove(seq[-1].name)
    if unit:
        kept = tuple(loop for loop in seq if loop.name not in unit)
        group = over_seq(group, kept, dict.fromkeys(unit, ZERO))
    return tuple(_without_unit_loops(s) for s in group)


def _reads_itself(group: Group) -> bool:
    """Whether a statement reads what it or a later one writes: without a ``seq`` that has no meaning."""
    later: set[str] = set()
    for statement in reversed(group):
        later.add(statement.out.tensor)
        if any(access.tensor in later for access in statement.reads()):
            return True
    return False


def _without_unit_loops(s: Statement) -> Statement:
    unit = {loop.name for loop in s.loops if loop.extent == constant(1)}
    if not unit:
        return s
    return s.substitute(dict.fromkeys(unit, ZERO), tuple(loop for loop in s.loops if loop.name not in unit))


# -- indices and conditions


def _simplified(s: Statement, sizes: SizeRanges) -> Statement:
    ranges = Ranges({loop.name: loop.extent for loop in s.all_loops}, sizes)
    where = needed_conditions(s.where, ranges)
    if all(index.is_affine for index in _indices(s)):
        return s if where == s.where else _with_where(s, where)
    return _map_indices(_with_where(s, where), lambda index: simplify(index, ranges))


def _with_where(s: Statement, where: tuple[Condition, ...]) -> Statement:
    return Statement(s.loops, s.out, s.combine, s.value, where, s.seq, s.line)


# -- loops that occur as quotient and remainder become two


def _split_seq(group: Group) -> Group:
    seq = group[0].seq
    found = _split(seq, tuple(i for s in group for i in _outer_indices(s))) if seq else None
    return group if found is None else over_seq(group, *found)


def _split_loops(s: Statement) -> Statement:
    found = _split(s.loops, tuple(_outer_indices(s)))
    if found is None:
        return s
    loops, values = found
    return s.substitute(values, loops)


def _split(loops: tuple[Loop, ...], indices: tuple[Index, ...]) -> Change | None:
    """The first loop that an index takes apart, as two; None when there is none."""
    for loop, divisor, surely in sorted(_divisors(loops, indices), key=lambda found: (found[1], not found[2])):
        if divisor == 1 or _content(loop.extent) % divisor or loop.extent == constant(divisor):
            continue
        outer, inner = Loop(f"{loop.name}.0", _divided(loop.extent, divisor)), Loop(f"{loop.name}.1", constant(divisor))
        values = {loop.name: variable(outer.name) * divisor + variable(inner.name)}
        if surely or not _occurs(outer.name, indices, values):
            return tuple(new for old in loops for new in ((outer, inner) if old is loop else (old,))), values
    return None


def _divisors(loops: tuple[Loop, ...], indices: Iterable[Index]) -> Iterator[tuple[Loop, int, bool]]:
    """Loops in quotients and remainders, a number of steps to split them by, and whether that surely simplifies.

    It does in ``(i + 4*j) // 8``: everything but i is a multiple of 4. Otherwise the atom repeats after some steps.
    """
    names = {loop.name: loop for loop in loops}
    for index in (nested for outer in indices for nested in _nested(outer)):
        for atom, _ in index.terms:
            if not isinstance(atom, Quotient | Remainder):
                continue
            for name, c in atom.index.terms:
                if isinstance(name, str) and name in names:
                    others = gcd(atom.divisor, atom.index.const, *(k for a, k in atom.index.terms if a != name))
                    surely = c == 1 and others > 1
                    yield names[name], others if surely else atom.divisor // gcd(c, atom.divisor), surely


def _occurs(name: str, indices: Iterable[Index], values: Mapping[str, Index]) -> bool:
    """Whether ``name`` is left after substitution; what cancels is gone."""
    return any(name in index.substitute(values).names() for index in indices)


# -- loops that occur only as B*i0 + i1 become one


def _join_seq(group: Group) -> Group:
    """Only neighbours: the order of steps stays."""
    seq = group[0].seq
    indices = tuple(i for s in group for i in _outer_indices(s)) if len(seq) > 1 else ()
    for outer, inner in pairwise(seq):
        found = _join(seq, outer, inner, indices)
        if found is not None:
            return over_seq(group, *found)
    return group


def _join_loops(s: Statement) -> Statement:
    used = [loop for loop in s.loops if loop.name in s.names()]
    indices = tuple(_outer_indices(s)) if len(used) > 1 else ()
    found = [
        (_join_key(outer, inner, indices), change)
        for outer in used
        for inner in used
        if outer is not inner and (change := _join(s.loops, outer, inner, indices)) is not None
    ]
    if not found:
        return s
    loops, values = min(found, key=lambda pair: pair[0])[1]
    return s.substitute(values, loops)


def _join_key(outer: Loop, inner: Loop, indices: Iterable[Index]) -> tuple[int, str, list[int]]:
    """What tells joins apart without names."""
    coefficients = (abs(nested.coefficient(inner.name)) for index in indices for nested in _nested(index))
    return inner.extent.const, str(outer.extent), sorted(coefficients)


def _join(loops: tuple[Loop, ...], outer: Loop, inner: Loop, indices: Iterable[Index]) -> Change | None:
    """With ``inner = whole - B*outer`` nothing depends on ``outer`` by itself."""
    if not inner.extent.is_constant:
        return None
    scale = inner.extent.const
    for index in indices:
        if index.is_affine and index.coefficient(outer.name) != scale * index.coefficient(inner.name):
            return None
    whole = Loop(f"{outer.name}.w", outer.extent * scale)
    values = {inner.name: variable(whole.name) - variable(outer.name) * scale}
    if _occurs(outer.name, indices, values):
        return None
    return tuple(whole if loop is outer else loop for loop in loops if loop is not inner), values


def _join_unused(s: Statement) -> Statement:
    """Loops that no index uses only repeat: one loop for all constant factors, one for each run-time extent."""
    unused = [loop for loop in s.loops if loop.name not in s.names()]
    if not unused or (len(unused) == 1 and unused[0].extent.is_constant):
        return s
    constants = prod(_content(loop.extent) for loop in unused)
    new = [
        Loop(loop.name, _divided(loop.extent, _content(loop.extent) or 1))
        for loop in unused
        if not loop.extent.is_constant
    ]
    if constants != 1:
        new.append(Loop(f"{unused[0].name}.n", constant(constants)))
    if [loop.extent for loop in new] == [loop.extent for loop in unused]:
        return s
    return s.substitute({}, (*(loop for loop in s.loops if loop not in unused), *new))


def _content(extent: Index) -> int:
    """The largest number that divides the extent whatever the sizes are; 0 for an empty loop."""
    return gcd(extent.const, *(c for _, c in extent.terms))


def _divided(extent: Index, divisor: int) -> Index:
    return Index(tuple((a, c // divisor) for a, c in extent.terms), extent.const // divisor)


# -- every index of a statement


def over_seq(group: Group, seq: tuple[Loop, ...], values: Mapping[str, Index]) -> Group:
    changed = (s.substitute(values, s.loops) for s in group)
    return tuple(Statement(s.loops, s.out, s.combine, s.value, s.where, seq, s.line) for s in changed)


def _indices(s: Statement) -> Iterator[Index]:
    """Every sum in the statement, those inside others included."""
    for index in _outer_indices(s):
        yield from _nested(index)


def _outer_indices(s: Statement) -> Iterator[Index]:
    yield from s.out.indices
    for condition in s.where:
        yield condition.index
    for node in walk(s.value):
        if isinstance(node, Read):
            yield from node.access.indices
        elif isinstance(node, Position):
            yield node.index


def _nested(index: Index) -> Iterator[Index]:
    yield index
    for atom, _ in index.terms:
        if isinstance(atom, Quotient | Remainder):
            yield from _nested(atom.index)
        elif isinstance(atom, Access):
            for inner in atom.indices:
                yield from _nested(inner)


def _map_indices(s: Statement, change: Callable[[Index], Index]) -> Statement:
    def element(access: Access) -> Access:
        return Access(access.tensor, tuple(map(change, access.indices)))

    def node(e: Expr) -> Expr:
        if isinstance(e, Read):
            return Read(element(e.access))
        if isinstance(e, Position):
            index = change(e.index)
            return Cast(DTYPES["i64"], Literal(index.const)) if index.is_constant else Position(index)
        return e

    where = tuple(Condition(change(c.index), c.equal) for c in s.where)
    return Statement(s.loops, element(s.out), s.combine, rebuild(s.value, node), where, s.seq, s.line)
