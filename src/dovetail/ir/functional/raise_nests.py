"""Statements -> terms: maps over the loops of what is written, reductions over the others.

    for i<8, j<4, k<16: y[i, j] += a[i, k] * b[k, j]
      ->  map(\\a0 -> map(\\b0 -> reduce(add, 0, map(mul, zip(a0, b0))), transpose(b)), a)

Every operand is an array over the loops it uses, in the order of the nest. Loops that share an index with another one,
those over windows, are reduced first. A condition that keeps an operand inside its tensor is padding; others make the
operand a ``view``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dovetail.base.dtypes import DType
from dovetail.ir.expr import Apply, Expr, Position, Read, statement_type, walk
from dovetail.ir.functional import term as terms
from dovetail.ir.functional.raise_arrange import Axes, Names, Order, arrange, function, mapped
from dovetail.ir.functional.raise_axes import Axis, axis
from dovetail.ir.functional.raise_values import Values
from dovetail.ir.functional.term import Pattern, Places, Scalar, Term, Var
from dovetail.ir.index import ZERO, Access, Condition, Index, constant, variable
from dovetail.ir.index_ranges import Ranges, highest, lowest
from dovetail.ir.primitives import PRIMITIVES
from dovetail.ir.program import Combine, Loop, Statement, Tensor

Leaf = Read | Position


@dataclass(frozen=True, slots=True)
class Pending:
    """An array over the loops ``order``; ``axes`` are what is still to be done to make it that, None for nothing."""

    term: Term
    axes: Axes | None
    order: Order


@dataclass(frozen=True, slots=True)
class Operand:
    """What a value reads: as an array, the conditions that its padding stands for, and what it is called."""

    leaf: Leaf
    array: Pending
    conditions: tuple[Condition, ...]
    name: str

    @property
    def is_windowed(self) -> bool:
        return any(a.is_windowed for a in self.array.axes or ())


class Nest:
    """Raises one statement of a program; ``arrays`` are the terms for its tensors."""

    def __init__(
        self, s: Statement, tensors: Mapping[str, Tensor], arrays: Mapping[str, Term], sizes: Ranges, names: Names
    ) -> None:
        self.s = s
        self.tensors = tensors
        self.arrays = arrays
        self.names = names
        self.extents = {loop.name: loop.extent for loop in s.all_loops}
        self.ranges = Ranges(self.extents, sizes.sizes)
        self.dtypes = {name: tensor.dtype for name, tensor in tensors.items()}
        self.own = statement_type(s.value, self.dtypes, self.dtypes[s.out.tensor])
        self.units: dict[int, str] = {}

    # -- the whole statement

    def whole(self, start: Term | None) -> Term | None:
        """All of the tensor that is written, where the statement writes each element of it in order; else None.

        ``start`` is what an ``op=`` starts from where that is not its neutral element.
        """
        groups = self._out_loops()
        if groups is None or (self.s.combine is Combine.SET and self.s.where):
            return None
        outer = tuple(name for group in groups for name in group)
        order = (*outer, *self._reduced(outer))
        operands = self._operands(order)
        if operands is None:
            return None
        if start is not None:
            operands = [*operands, self._started(start, groups)]
        return _joined(self._nested(operands, outer, order, start is not None), groups, self.names)

    def contributions(self) -> Term:
        """The value at every point of all loops."""
        order = tuple(loop.name for loop in self.s.all_loops)
        operands = [self._operand(leaf, order, inside=True) for leaf in self._leaves()]
        dtype = self.tensors[self.s.out.tensor].dtype
        return self._maps(operands, order, lambda terms_: self._value(terms_, dtype, self.s.combine is Combine.SET))

    def places(self) -> Places:
        """Where those are put."""
        return Places(self.s.all_loops, self.s.out.indices, self.s.where)

    def _out_loops(self) -> tuple[Order, ...] | None:
        """The loops over each dimension of what is written: one, none for a single element, or several to be joined."""
        found: list[Order] = []
        shape = self.tensors[self.s.out.tensor].shape
        for number, (index, extent) in enumerate(zip(self.s.out.indices, shape, strict=True)):
            group = self._out_group(number, index, extent)
            if group is None:
                return None
            found.append(group)
        names = [name for group in found for name in group]
        return tuple(found) if len(set(names)) == len(names) else None

    def _out_group(self, number: int, index: Index, extent: Index) -> Order | None:
        if index == ZERO and extent == constant(1):
            unit = self.names.new("u")
            self.units[number] = unit
            self.extents[unit] = constant(1)
            return (unit,)
        if not index.is_affine or index.const or any(name not in self.extents for name in index.names()):
            return None
        factors = sorted(((c, str(name)) for name, c in index.terms), reverse=True)
        reach = constant(1)
        for c, name in reversed(factors):
            if not reach.is_constant or c != reach.const:
                return None
            reach = self.extents[name] * reach.const
        return tuple(name for _, name in factors) if reach == extent else None

    def _reduced(self, outer: Order) -> Order:
        """Loops that are reduced: those of windows first, in the order of the loops they share an index with."""
        partners: dict[str, int] = {}
        place = {name: k for k, name in enumerate(outer)}
        for leaf in self._leaves():
            for index in leaf.access.indices if isinstance(leaf, Read) else ():
                shared = [place.get(name, len(place)) for name in index.names() if name in self.extents]
                if len(shared) > 1 and not _has_digits(index, self.extents):
                    for name in index.names():
                        partners[name] = min(partners.get(name, len(place)), *shared)
        rest = [loop.name for loop in self.s.loops if loop.name not in place]
        return tuple(sorted(rest, key=lambda name: partners.get(name, len(place) + 1)))

    # -- operands

    def _leaves(self) -> list[Leaf]:
        return list(dict.fromkeys(n for n in walk(self.s.value) if isinstance(n, Read | Position)))

    def _operands(self, order: Order) -> list[Operand] | None:
        """Arrays for all that is read. Conditions that no padding stands for go into views; None if nothing is read."""
        found = [self._operand(leaf, order) for leaf in self._leaves()]
        place = {name: k for k, name in enumerate(order)}
        found.sort(key=lambda o: (not o.is_windowed, [place[name] for name in o.array.order]))
        left = [c for c in self.s.where if not any(c in o.conditions for o in found)]
        extra = any(c not in self.s.where for o in found for c in o.conditions)
        if not left and not extra:
            return found
        if not found:
            return None
        found = [self._viewed(o, order) if o.conditions else o for o in found] if extra else found
        return self._guarded(found, order)

    def _guarded(self, operands: list[Operand], order: Order) -> list[Operand]:
        """The conditions that are left put into the operand that uses most of their loops."""
        left = [c for c in self.s.where if not any(c in o.conditions for o in operands)]
        if not left:
            return operands
        names = frozenset().union(*(c.names() for c in left)) & set(order)
        chosen = max(range(len(operands)), key=lambda k: len(names.intersection(operands[k].array.order)))
        guarded = self._viewed(operands[chosen], order, names)
        return [*operands[:chosen], guarded, *operands[chosen + 1 :]]

    def _viewed(self, operand: Operand, order: Order, names: frozenset[str] = frozenset()) -> Operand:
        """The operand as a view over its loops and ``names``, with all conditions on any of these."""
        used = names.union(operand.array.order)
        where = tuple(c for c in self.s.where if c.names() & used or not c.names())
        used = used.union(*(c.names() for c in where))
        return self._view(operand.leaf, tuple(name for name in order if name in used), where, operand.name)

    def _operand(self, leaf: Leaf, order: Order, inside: bool = False) -> Operand:
        """What is read as an array over the loops it uses; ``inside`` where a view must say what keeps it inside."""
        indices = leaf.access.indices if isinstance(leaf, Read) else (leaf.index,)
        if isinstance(leaf, Read):
            indices = self._with_units(leaf.access)
        used = frozenset().union(*(index.names() for index in indices))
        own = tuple(name for name in order if name in used)
        if isinstance(leaf, Position):
            if len(own) == 1 and leaf.index == variable(own[0]):
                return Operand(leaf, Pending(Pattern("iota", (self.extents[own[0]],)), None, own), (), "i")
            return self._view(leaf, own, (), "i")
        name = leaf.access.tensor
        shape = self._shape(leaf.access)
        axes = [axis(i, e, order, self.extents, self.ranges) for i, e in zip(indices, shape, strict=True)]
        known = tuple(a for a in axes if a is not None)
        loops = [loop for a in known for loop in a.loops]
        conditions = tuple(dict.fromkeys(c for a in known for c in a.conditions))
        if len(known) < len(axes) or len(set(loops)) < len(loops) or (inside and conditions):
            return self._view(leaf, *self._kept_inside(leaf.access, used, order), name)
        return Operand(leaf, Pending(self.arrays[leaf.access.tensor], known, own), conditions, name)

    def _kept_inside(self, access: Access, used: frozenset[str], order: Order) -> tuple[Order, tuple[Condition, ...]]:
        """The loops of a view that uses some, and the conditions that may keep it inside its array.

        A loop that may be empty keeps an element that may not be there from being read.
        """
        where = tuple(c for c in self.s.where if c.names() & used or not c.names())
        names = used.union(*(c.names() for c in where))
        ends = [highest(i - e, self.ranges) for i, e in zip(access.indices, self._shape(access), strict=True)]
        if any(end is None or end >= 0 for end in ends):
            least = {name: lowest(extent, self.ranges) for name, extent in self.extents.items()}
            names |= {name for name, low in least.items() if low is not None and low < 1}
        return tuple(name for name in order if name in names), where

    def _shape(self, access: Access) -> tuple[Index, ...]:
        return self.tensors[access.tensor].shape

    def _with_units(self, access: Access) -> tuple[Index, ...]:
        """Indices where a dimension of one element goes with the one of what is written at the same place."""
        shape = self._shape(access)
        found = list(access.indices)
        for number, unit in self.units.items():
            if number < len(found) and found[number] == ZERO and shape[number] == constant(1):
                found[number] = variable(unit)
        return tuple(found)

    def _view(self, leaf: Leaf, own: Order, where: tuple[Condition, ...], name: str) -> Operand:
        loops = tuple(Loop(n, self.extents[n]) for n in own)
        if isinstance(leaf, Read):
            array, indices = self.arrays[leaf.access.tensor], self._with_units(leaf.access)
            if not indices:
                array, indices = Pattern("array", (), (array,)), (ZERO,)
            array = Pattern("view", (Places(loops, indices, where),), (array,))
            return Operand(leaf, Pending(array, None, own), where, name)
        high, shift = highest(leaf.index, self.ranges), self._shift(leaf)
        assert high is not None
        numbers = Pattern("iota", (constant(max(high + shift, 0) + 1),))
        places = Places(loops, (leaf.index + shift,), where)
        return Operand(leaf, Pending(Pattern("view", (places,), (numbers,)), None, own), where, name)

    def _started(self, start: Term, groups: tuple[Order, ...]) -> Operand:
        """What an ``op=`` starts from, over the loops of what is written."""
        access = self.s.out
        order = tuple(name for group in groups for name in group)
        known = [axis(i, e, order, self.extents, self.ranges) for i, e in self._out_axes(access)]
        axes = tuple(a for a in known if a is not None)
        return Operand(Read(access), Pending(start, axes, order), (), access.tensor)

    def _out_axes(self, access: Access) -> Iterator[tuple[Index, Index]]:
        return zip(self._with_units(access), self.tensors[access.tensor].shape, strict=True)

    # -- maps and reductions

    def _nested(self, operands: list[Operand], outer: Order, order: Order, started: bool) -> Term:
        out = self.tensors[self.s.out.tensor].dtype
        combine = self.s.combine
        if combine is Combine.SET:
            return self._maps(operands, order, lambda found: self._value(found, out, True))
        inner = order[len(outer) :]

        def total(found: Mapping[Leaf, Pending]) -> Term:
            rest = [replace(o, array=found[o.leaf]) for o in operands if not (started and o is operands[-1])]
            first = _number(combine, out)
            if started:
                first = _done(found[operands[-1].leaf], self.names)
                first = first if self.own == out else Scalar(self.own.name, (first,))
            term = self._reductions(rest, inner, first, out)
            return term if self.own == out else Scalar(out.name, (term,))

        return self._maps(operands, outer, total)

    def _reductions(self, operands: list[Operand], order: Order, start: Term, out: DType) -> Term:
        """Reductions over the loops ``order``; one over a single copy where there are none."""
        op = Scalar(str(self.s.combine.function))
        if not order:
            value = self._value({o.leaf: o.array for o in operands}, out, False)
            return Pattern("reduce", (), (op, start, Pattern("repeat", (constant(1),), (value,))))
        neutral = _number(self.s.combine, out)

        def inner(found: Mapping[Leaf, Pending]) -> Term:
            if not order[1:]:
                return self._value(found, out, False)
            return self._reductions([replace(o, array=found[o.leaf]) for o in operands], order[1:], neutral, out)

        return Pattern("reduce", (), (op, start, self._maps(operands, order[:1], inner)))

    def _maps(self, operands: Sequence[Operand], order: Order, body: Callable[[Mapping[Leaf, Pending]], Term]) -> Term:
        """Maps over the loops ``order`` of ``body``, which gets what is left of the operands."""
        if not order:
            return body({o.leaf: o.array for o in operands})
        name = order[0]
        users = [o for o in operands if o.array.order[:1] == (name,)]
        if not users:
            return Pattern("repeat", (self.extents[name],), (self._maps(operands, order[1:], body),))
        sources, params, further = [], [], {}
        for operand in users:
            source, param, rest = self._step(operand)
            sources.append(source)
            params.append(param)
            further[operand.leaf] = rest
        inner = [replace(o, array=further.get(o.leaf, o.array)) for o in operands]
        term = self._maps(inner, order[1:], body)
        data = sources[0] if len(sources) == 1 else Pattern("zip", (), tuple(sources))
        if len(params) == 1 and term == Var(params[0]):
            return data
        return Pattern("map", (), (function(tuple(params), term), data))

    def _step(self, operand: Operand) -> tuple[Term, str, Pending]:
        """The array whose elements are one loop further in, a name for these, and what is left of them.

        Windows are taken inside the maps over plain axes around them.
        """
        array = operand.array
        name = self.names.new(operand.name)
        axes, rest = array.axes, Pending(Var(name), None, array.order[1:])
        if axes is None:
            return array.term, name, rest
        first, split = axes[0] if axes else None, None
        if first is not None and first.loops[:1] == array.order[:1] and any(a.is_windowed for a in axes[1:]):
            split = first.apart if not first.before and not first.is_windowed else None
            if first.is_whole and split is None:
                return array.term, name, replace(rest, axes=axes[1:])
        if first is not None and split is not None:
            left = (Axis(first.loops[1:]), *axes[1:])
            return replace(split, args=(array.term,)), name, replace(rest, axes=left)
        return arrange(array.term, axes, array.order, self.names), name, rest

    def _value(self, found: Mapping[Leaf, Pending], out: DType, stored: bool) -> Term:
        """The value of the statement, of elements of its operands."""

        def operand(leaf: Leaf) -> Term:
            term = _done(found[leaf], self.names)
            shift = self._shift(leaf) if isinstance(leaf, Position) else 0
            return Scalar("sub", (term, terms.Literal(shift))) if shift else term

        values = Values(self.dtypes, operand)
        value = self.s.value
        if isinstance(value, Apply) and PRIMITIVES[value.function].commutative:
            rank: dict[Expr, int] = {leaf: k for k, leaf in enumerate(found)}
            if all(arg in rank for arg in value.args):
                value = Apply(value.function, tuple(sorted(value.args, key=rank.__getitem__)))
        return values.stored(value, self.own, out) if stored else values.contribution(value, self.own)

    def _shift(self, leaf: Position) -> int:
        """What is subtracted from a position, whose array holds no negative numbers."""
        low = lowest(leaf.index, self.ranges)
        return max(0, -low) if low is not None else 0


def _has_digits(index: Index, extents: Mapping[str, Index]) -> bool:
    """Whether an index is ``n * i + j`` with j < n: two loops that do not overlap."""
    factors = sorted((c, str(name)) for name, c in index.terms)
    return len(factors) == 2 and factors[0][0] == 1 and extents.get(factors[0][1]) == constant(factors[1][0])


def _done(array: Pending, names: Names) -> Term:
    """An operand after its last loop."""
    return array.term if array.axes is None else arrange(array.term, array.axes, (), names)


def _number(combine: Combine, dtype: DType) -> Term:
    """The neutral element of an ``op=``."""
    value = combine.neutral(dtype)
    return terms.Literal(int(value) if combine in (Combine.ADD, Combine.MUL) and not isinstance(value, bool) else value)


def _joined(term: Term, groups: tuple[Order, ...], names: Names) -> Term:
    """Dimensions that several loops run over, joined; ``term`` is over all of these loops."""
    if all(len(group) <= 1 for group in groups):
        return term
    first, *rest = groups
    inner = tuple(rest)
    for _ in first[1:]:
        term = Pattern("join", (), (term,))
    return mapped(lambda v: _joined(v, inner, names), term, names)
