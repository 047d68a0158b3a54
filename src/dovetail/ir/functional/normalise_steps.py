"""What is written at places, and step by step: ``scatter``, ``steps``, ``scan`` and folds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dovetail.base.dtypes import DType, compute_type
from dovetail.base.errors import TermError
from dovetail.ir.expr import joined
from dovetail.ir.functional.normalise_store import Leaf
from dovetail.ir.functional.normalise_values import (
    Array,
    Cell,
    Closure,
    Sum,
    Tuple,
    Value,
    default_type,
    fix,
)
from dovetail.ir.functional.term import Places, Setting
from dovetail.ir.index import Access, Index, constant, variable
from dovetail.ir.program import Combine, Loop, Role

if TYPE_CHECKING:
    from dovetail.ir.functional.normalise_terms import Evaluation

Settings = tuple[Setting, ...]


# -- scatter and steps


def scatter(evaluation: Evaluation, settings: Settings, args: tuple[Value, ...]) -> Value:
    """A tensor of its own that statements of one ``op=`` write."""
    op, *sizes, places = settings
    assert isinstance(op, str) and isinstance(places, Places)
    combine = Combine(op)
    loops = _loops(evaluation, places, ())
    values = {old.name: variable(new.name) for old, new in zip(places.loops, loops, strict=True)}
    data = _at(args[0], [values[loop.name] for loop in places.loops])
    leaves, _ = evaluation.store.leaves(data)
    if len(leaves) != 1:
        raise TermError("scatter of tuples", hint="scatter each member")
    (leaf,) = leaves
    dtype = default_type(leaf.cell)
    dtype = dtype if combine is Combine.SET else compute_type(dtype)
    extents = [size for size in sizes if isinstance(size, Index)] + [loop.extent for loop in leaf.loops]
    tensor = evaluation.store.temp(dtype, extents)
    _write(evaluation, tensor, (), combine, places, values, (*loops, *leaf.loops), leaf)
    return evaluation.store.stored(tensor, fresh=True)


def steps(evaluation: Evaluation, settings: Settings, args: tuple[Value, ...]) -> Value:
    """Tensors that are changed in place, step by step."""
    store = evaluation.store
    count, *rows = settings
    function, start = args
    held = tuple(_held(evaluation, value) for value in (start.members if isinstance(start, Tuple) else (start,)))
    for state in held:
        store.present.pop(state.tensor, None)
    found = evaluation.apply(function, tuple(state.value for state in held))
    contributions = found.members if isinstance(found, Tuple) else (found,)
    assert isinstance(count, Index) and len(rows) == 3 * len(contributions)
    seq: tuple[Loop, ...] = ()
    for k, data in enumerate(contributions):
        op, target, places = rows[3 * k : 3 * k + 3]
        assert isinstance(op, str) and isinstance(target, Index) and isinstance(places, Places)
        if not seq:
            seq = tuple(store.loop(loop.extent) for loop in places.loops[: count.const])
        loops = _loops(evaluation, places, seq)
        values = {old.name: variable(new.name) for old, new in zip(places.loops, (*seq, *loops), strict=True)}
        written = held[target.const]
        with store.stepping(seq):
            (leaf,) = store.leaves(_at(data, [values[loop.name] for loop in places.loops]))[0]
            inner = (*loops, *leaf.loops)
            _write(evaluation, written.tensor, written.indices, Combine(op), places, values, inner, leaf)
    after = tuple(store.changed(state.tensor, state.indices) for state in held)
    return Tuple(after) if isinstance(start, Tuple) else after[0]


@dataclass(frozen=True, slots=True)
class _State:
    """A tensor that is changed in place, the indices of the part that is, and what that is before."""

    tensor: str
    indices: tuple[Index, ...]
    value: Value


def _held(evaluation: Evaluation, value: Value) -> _State:
    """The tensor that holds a state; a copy of one that belongs to the caller."""
    store = evaluation.store
    if isinstance(value, Cell) and not value.cases:
        tensor = store.temp(default_type(value), ())
        return _State(tensor, (), store.stored(tensor))
    access = store.whole(value) or store.whole(value := store.keep(value))
    if access is None:
        raise TermError("steps change arrays of numbers", hint="a tuple of several arrays")
    if store.tensors[access.tensor].role in (Role.TEMP, Role.INOUT):
        return _State(access.tensor, access.indices, value)
    return _held(evaluation, store.keep(value))


def _loops(evaluation: Evaluation, places: Places, seq: tuple[Loop, ...]) -> tuple[Loop, ...]:
    return tuple(evaluation.store.loop(loop.extent) for loop in places.loops[len(seq) :])


def _at(value: Value, indices: Sequence[Index]) -> Value:
    for index in indices:
        if not isinstance(value, Array):
            raise TermError("fewer dimensions than places have loops")
        value = value.at(index)
    return value


def _write(
    evaluation: Evaluation,
    tensor: str,
    outer: tuple[Index, ...],
    combine: Combine,
    places: Places,
    values: dict[str, Index],
    loops: tuple[Loop, ...],
    leaf: Leaf,
) -> None:
    """One statement for each case of what is written."""
    store = evaluation.store
    where = tuple(c.substitute(values) for c in places.where)
    inner = tuple(variable(loop.name) for loop in leaf.loops)
    access = Access(tensor, (*outer, *(i.substitute(values) for i in places.indices), *inner))
    around = store.around([leaf.cell], loops)
    for case in map(fix, leaf.cell.cases):
        fixed = {name: constant(value) for name, value in case.fixed}
        rest = tuple(loop for loop in (*around, *loops) if loop.name not in fixed)
        out = access.substitute(fixed)
        inside = tuple(c.substitute(fixed) for c in where) + case.where
        if isinstance(case.body, Sum) and case.body.combine is combine:
            for part in case.body.parts:
                store.put(out, (*rest, *part.loops), combine, part.value, (*inside, *part.where))
        else:
            store.put(out, rest, combine, store.settle(case, leaf.cell.dtype), inside)


# -- scan


def scan(evaluation: Evaluation, settings: Settings, args: tuple[Value, ...]) -> Value:
    """The states after each step: those of one tensor whose first element is the start."""
    function, start, data = args
    assert isinstance(function, Closure) and isinstance(data, Array)
    states = _States(evaluation, function, start, data)
    return Array(lambda: data.size, lambda i: states(i + 1))


def fold(evaluation: Evaluation, function: Closure, start: Value, data: Array) -> Value:
    """The last state."""
    return _States(evaluation, function, start, data)(data.size)


class _States:
    """States of a scan in tensors, one more than there are elements; called with a step, the state before it."""

    def __init__(self, evaluation: Evaluation, function: Closure, start: Value, data: Array) -> None:
        store = evaluation.store
        self.store = store
        step = store.loop(data.size)
        leaves, self.build = store.leaves(start)
        dtypes, around = self._tried(evaluation, function, start, data, step, leaves)
        outer = tuple(variable(loop.name) for loop in around)
        self.outer = outer
        self.tensors = []
        for leaf, dtype in zip(leaves, dtypes, strict=True):
            extents = [loop.extent for loop in (*around, Loop(step.name, data.size + 1), *leaf.loops)]
            tensor = store.temp(dtype, extents)
            self.tensors.append(tensor)
            inner = tuple(variable(loop.name) for loop in leaf.loops)
            store.emit(Access(tensor, (*outer, constant(0), *inner)), (*around, *leaf.loops), leaf.cell, dtype)
        with store.stepping((step,)):
            here = variable(step.name)
            after = evaluation.apply(function, (self(here), data.at(here)))
            for tensor, leaf in zip(self.tensors, store.leaves(after)[0], strict=True):
                inner = tuple(variable(loop.name) for loop in leaf.loops)
                access = Access(tensor, (*outer, here + 1, *inner))
                store.emit(access, (*around, *leaf.loops), leaf.cell, store.tensors[tensor].dtype)

    def __call__(self, step: Index) -> Value:
        return self.build(lambda k, indices: self.store.stored(self.tensors[k], (*self.outer, step, *indices)), ())

    def _tried(
        self, evaluation: Evaluation, function: Closure, start: Value, data: Array, step: Loop, leaves: list[Leaf]
    ) -> tuple[list[DType], tuple[Loop, ...]]:
        """The types of the states, and the loops around that they depend on: one step is evaluated to see."""
        store = evaluation.store
        with store.trying(), store.stepping((step,)):
            found = store.leaves(evaluation.apply(function, (start, data.at(variable(step.name)))))[0]
            inner = [loop for leaf in (*leaves, *found) for loop in leaf.loops]
            around = store.around([leaf.cell for leaf in (*leaves, *found)], inner)
        pairs = zip(leaves, found, strict=True)
        return [joined((a.cell.dtype, b.cell.dtype)) or default_type(b.cell) for a, b in pairs], around
