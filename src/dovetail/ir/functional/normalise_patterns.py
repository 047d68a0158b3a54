"""Patterns -> values. What only moves elements changes the index; what stores or goes step by step writes statements.

split(4, x)[i][j]      ->  x[4 * i + j]
pad(1, 1, none, x)[i]  ->  x[i - 1]  where i >= 1, i <= n
reduce(add, 0, x)      ->  a sum over a new loop
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dovetail.base.errors import TermError
from dovetail.ir.expr import Cast, Literal, Position
from dovetail.ir.functional.normalise_reduce import reduce_
from dovetail.ir.functional.normalise_steps import scan, scatter, steps
from dovetail.ir.functional.normalise_values import (
    I64,
    Array,
    Case,
    Cell,
    Stored,
    Tuple,
    Value,
    array,
    guarded,
    number,
    opposite,
    under,
)
from dovetail.ir.functional.term import Places, Setting
from dovetail.ir.index import Condition, Index, constant
from dovetail.ir.index_ranges import highest, lowest

if TYPE_CHECKING:
    from dovetail.ir.functional.normalise_terms import Evaluation

Settings = tuple[Setting, ...]
Values = tuple[Value, ...]


def _map(evaluation: Evaluation, settings: Settings, args: Values) -> Value:
    function, data = args
    source = elements(data, "map")
    return Array(lambda: source.size, lambda i: evaluation.apply(function, (source.at(i),)))


def _zip(evaluation: Evaluation, settings: Settings, args: Values) -> Value:
    sources = [elements(a, "zip") for a in args]
    return Array(lambda: sources[0].size, lambda i: Tuple(tuple(s.at(i) for s in sources)))


def _slide(evaluation: Evaluation, settings: Settings, args: Values) -> Value:
    count, step = size(settings[0]), number_of(settings[1], "the step of slide")
    source = elements(args[0], "slide")
    windows = lambda: (source.size - count) // step + 1  # noqa: E731
    return Array(windows, lambda i: array(count, lambda j: source.at(i * step + j)))


def _split(evaluation: Evaluation, settings: Settings, args: Values) -> Value:
    count = number_of(settings[0], "the parts of split")
    source = elements(args[0], "split")
    parts = lambda: source.size // count  # noqa: E731
    return Array(parts, lambda i: array(constant(count), lambda j: source.at(i * count + j)))


def _join(evaluation: Evaluation, settings: Settings, args: Values) -> Value:
    source = elements(args[0], "join")

    def inner(index: Index) -> Array:
        return elements(source.at(index), "join")

    def at(index: Index) -> Value:
        if source.size == constant(1):
            return inner(constant(0)).at(index)
        count = number_of(inner(constant(0)).size, "the inner size of join")
        return inner(index // count).at(index % count) if count > 1 else inner(index).at(constant(0))

    def whole() -> Index:
        count = inner(constant(0)).size
        if source.size == constant(1):
            return count
        return source.size * number_of(count, "the inner size of join")

    return Array(whole, at)


def _transpose(evaluation: Evaluation, settings: Settings, args: Values) -> Value:
    source = elements(args[0], "transpose")
    rows = lambda: elements(source.at(constant(0)), "transpose").size  # noqa: E731
    column = lambda j: Array(lambda: source.size, lambda i: elements(source.at(i), "transpose").at(j))  # noqa: E731
    return Array(rows, column)


def _pad(evaluation: Evaluation, settings: Settings, args: Values) -> Value:
    left, right = size(settings[0]), size(settings[1])
    value, source = args[0], elements(args[1], "pad")

    def at(index: Index) -> Value:
        place = index - left
        below = (Condition(place),) if left != constant(0) else ()
        where = (*below, Condition(source.size - 1 - place)) if right != constant(0) else below
        with evaluation.store.assuming(where):
            inner = source.at(place)
        return _either(where, inner, value)

    return Array(lambda: source.size + left + right, at)


def _either(where: tuple[Condition, ...], inner: Value, outer: Value) -> Value:
    """``inner`` where the conditions hold, ``outer`` elsewhere."""
    if isinstance(outer, Cell) and not outer.cases:
        return under(inner, where)
    if isinstance(inner, Cell) and isinstance(outer, Cell):
        rest = [case for o in opposite(where) for case in guarded(outer, o).cases]
        return Cell((*guarded(inner, where).cases, *rest), inner.dtype or outer.dtype)
    if isinstance(inner, Array) and isinstance(outer, Array):
        return Array(lambda: inner.size, lambda i: _either(where, inner.at(i), outer.at(i)))
    assert isinstance(inner, Tuple) and isinstance(outer, Tuple)
    return Tuple(tuple(_either(where, a, b) for a, b in zip(inner.members, outer.members, strict=True)))


def _to(evaluation: Evaluation, settings: Settings, args: Values) -> Value:
    return evaluation.store.keep(args[0])


def _tuple(evaluation: Evaluation, settings: Settings, args: Values) -> Value:
    return Tuple(args)


def _get(evaluation: Evaluation, settings: Settings, args: Values) -> Value:
    assert isinstance(args[0], Tuple)
    return args[0].members[number_of(settings[0], "the member of get")]


def _array(evaluation: Evaluation, settings: Settings, args: Values) -> Value:
    return array(constant(len(args)), lambda i: _pick(args, i))


def _pick(values: Values, index: Index) -> Value:
    """The value at ``index`` of a few: one of them where the index is a number, else one case each."""
    if index.is_constant:
        return values[index.const]
    if isinstance(values[0], Array):
        rows = [elements(v, "array") for v in values]
        return Array(lambda: rows[0].size, lambda j: _pick(tuple(r.at(j) for r in rows), index))
    if isinstance(values[0], Tuple):
        members = zip(*(v.members for v in values if isinstance(v, Tuple)), strict=True)
        return Tuple(tuple(_pick(m, index) for m in members))
    name, _ = index.terms[0]
    plain = isinstance(name, str) and index.terms == ((name, 1),)
    cases: list[Case] = []
    dtype = None
    for k, cell in enumerate(values):
        assert isinstance(cell, Cell)
        dtype = dtype or cell.dtype
        for case in cell.cases:
            if plain:
                cases.append(Case(case.where, case.body, tuple(sorted({*case.fixed, (str(name), k - index.const)}))))
            else:
                cases.append(Case((Condition(index - k, equal=True), *case.where), case.body, case.fixed))
    return Cell(tuple(cases), dtype)


def _iota(evaluation: Evaluation, settings: Settings, args: Values) -> Value:
    return array(size(settings[0]), position)


def position(index: Index) -> Cell:
    """The value of an index, an i64."""
    return number(Cast(I64, Literal(index.const)) if index.is_constant else Position(index), I64)


def _repeat(evaluation: Evaluation, settings: Settings, args: Values) -> Value:
    return array(size(settings[0]), lambda i: args[0])


def _slice(evaluation: Evaluation, settings: Settings, args: Values) -> Value:
    start, count, step = size(settings[0]), size(settings[1]), number_of(settings[2], "the step of slice")
    source = elements(args[0], "slice")
    return array(count, lambda i: source.at(i * step + start))


def _view(evaluation: Evaluation, settings: Settings, args: Values) -> Value:
    (places,) = settings
    assert isinstance(places, Places)
    return _viewed(evaluation, places, args[0], ())


def _viewed(evaluation: Evaluation, places: Places, data: Value, given: tuple[Index, ...]) -> Value:
    if len(given) < len(places.loops):
        extent = places.loops[len(given)].extent
        return array(extent, lambda i: _viewed(evaluation, places, data, (*given, i)))
    values = {loop.name: index for loop, index in zip(places.loops, given, strict=True)}
    where = tuple(c.substitute(values) for c in places.where)
    indices = tuple(i.substitute(values) for i in places.indices)
    with evaluation.store.assuming(where):
        for index in indices:
            source = elements(data, "view")
            if evaluation.careful:
                where = (*where, *_inside(evaluation, index, source.size))
            data = source.at(index)
    return under(data, where)


def _inside(evaluation: Evaluation, index: Index, extent: Index) -> tuple[Condition, ...]:
    """The conditions that keep an index inside, as far as the bounds of loops do not imply them."""
    ranges = evaluation.store.ranges
    low, high = lowest(index, ranges), highest(index - extent, ranges)
    below = () if low is not None and low >= 0 else (Condition(index),)
    return below if high is not None and high < 0 else (*below, Condition(extent - 1 - index))


# -- parts of values and settings


def elements(value: Value, pattern: str) -> Array:
    if not isinstance(value, Array):
        raise TermError(f"{pattern} of what is not an array")
    if isinstance(value, Stored):
        value.fresh = False
    return value


def size(setting: Setting) -> Index:
    if not isinstance(setting, Index):
        raise TermError(f"'{setting}' where a size is needed")
    return setting


def number_of(setting: Setting, what: str) -> int:
    """A setting that must be a number, since an index multiplies and divides by numbers only."""
    found = size(setting)
    if not found.is_constant:
        raise TermError(f"{what} is {found}, known at run time only", why="an index multiplies by a constant only")
    return found.const


PATTERN_VALUES: dict[str, Callable[[Evaluation, Settings, Values], Value]] = {
    "map": _map,
    "reduce": reduce_,
    "scan": scan,
    "zip": _zip,
    "slide": _slide,
    "split": _split,
    "join": _join,
    "transpose": _transpose,
    "pad": _pad,
    "to": _to,
    "tuple": _tuple,
    "get": _get,
    "array": _array,
    "iota": _iota,
    "repeat": _repeat,
    "slice": _slice,
    "view": _view,
    "scatter": scatter,
    "steps": steps,
}
