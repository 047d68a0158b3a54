"""What a term means, one element at a time: Python lists, ``None`` where a value is not there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from dovetail.base.dtypes import DTYPES, DType, compute_type, join
from dovetail.ir.compute import convert, literal, store
from dovetail.ir.functional.infer import typing_of
from dovetail.ir.functional.patterns import missing
from dovetail.ir.functional.term import Call, Definition, Lambda, Let, Literal, Pattern, Places, Scalar, Term, Var
from dovetail.ir.functional.types import Array, Function, Tuple, Type
from dovetail.ir.functional.types import Scalar as Number
from dovetail.ir.index import Index
from dovetail.ir.primitives import PRIMITIVES

Numbers = np.ndarray[tuple[int, ...], np.dtype[np.generic]]
Path = tuple[int, ...]
Value = object
Scope = Mapping[str, Value]


@dataclass(frozen=True)
class Cell:
    """A number that is there."""

    value: Numbers
    dtype: DType


def interpret(definition: Definition, arrays: Mapping[str, Numbers]) -> Value:
    """The one result as nested lists of cells, None where it is not there."""
    types = {param.name: param.type for param in definition.params}
    scope = {name: _listed(array, types[name]) for name, array in arrays.items()}
    with np.errstate(all="ignore"):
        return _Interpreter(typing_of(definition).at).value(definition.body, (), scope)


def _listed(array: Numbers, kind: Type) -> Value:
    if isinstance(kind, Array):
        return [_listed(part, kind.element) for part in array]
    assert isinstance(kind, Number)
    return Cell(convert(np.asarray(array), kind.dtype, kind.dtype), kind.dtype)


class _Interpreter:
    def __init__(self, types: Mapping[Path, Type]) -> None:
        self.types = types

    def value(self, term: Term, path: Path, scope: Scope) -> Value:
        match term:
            case Var(name):
                return scope[name]
            case Literal(value):
                return _number(value, self.types[path])
            case Let(name, value, body):
                bound = self.value(value, (*path, 0), scope)
                return self.value(body, (*path, 1), {**scope, name: bound})
            case Lambda(params, body):
                return lambda *args: self.value(body, (*path, 0), {**scope, **_bound(params, args)})
            case Call(function, args):
                given = [self.value(arg, (*path, k + 1), scope) for k, arg in enumerate(args)]
                return _called(self.value(function, (*path, 0), scope), *given)
        assert isinstance(term, Pattern | Scalar)
        own = [self.value(arg, (*path, k), scope) for k, arg in enumerate(term.args)]
        waits = missing(term)
        if not waits:
            return self.operation(term, path, own)
        return lambda *args: self.operation(term, path, [*own, *(_spread(args, waits))])

    def operation(self, term: Pattern | Scalar, path: Path, args: list[Value]) -> Value:
        kind = self.types[path]
        result = kind.result if isinstance(kind, Function) else kind
        if isinstance(term, Scalar):
            assert isinstance(result, Number)
            return _arithmetic(term.function, args, result.dtype)
        settings: list[object] = [s.const if isinstance(s, Index) else s for s in term.settings]
        return _PATTERNS[term.name](settings, args)


def _number(value: int | float | bool | None, kind: Type) -> Value:
    """A number; ``none`` of a larger type is none throughout."""
    if isinstance(kind, Array):
        return [_number(value, kind.element)] * kind.size.const
    if isinstance(kind, Tuple):
        return tuple(_number(value, member) for member in kind.members)
    assert isinstance(kind, Number)
    return None if value is None else Cell(literal(value, kind.dtype), kind.dtype)


def _none_like(sample: Value) -> Value:
    if isinstance(sample, list | tuple):
        return type(sample)(_none_like(part) for part in sample)
    return None


def _arithmetic(function: str, args: list[Value], result: DType) -> Value:
    if function == "orelse":
        chosen = args[0] if args[0] is not None else args[1]
        return Cell(convert(chosen.value, chosen.dtype, result), result) if isinstance(chosen, Cell) else None
    cells = [arg for arg in args if isinstance(arg, Cell)]
    if len(cells) < len(args):
        return None
    if function in DTYPES:
        return Cell(convert(store(cells[0].value, cells[0].dtype, result), result, result), result)
    own = result
    if PRIMITIVES[function].result == "bool":
        own = compute_type(join(cells[0].dtype, cells[1].dtype))
    first = function == "select"
    values = [c.value if first and not k else convert(c.value, c.dtype, own) for k, c in enumerate(cells)]
    return Cell(np.asarray(PRIMITIVES[function].meaning(*values)), result)


def _bound(params: tuple[str, ...], args: tuple[Value, ...]) -> dict[str, Value]:
    return dict(zip(params, _spread(args, len(params)), strict=True))


def _spread(args: tuple[Value, ...], count: int) -> tuple[Value, ...]:
    """One tuple for several values, several values for one tuple."""
    if len(args) == count:
        return args
    if len(args) == 1:
        (only,) = args
        assert isinstance(only, tuple)
        return only
    return (args,)


def _called(function: Value, *args: Value) -> Value:
    assert callable(function)
    return function(*args)


def _combined(function: Value, state: Value, element: Value) -> Value:
    new = _called(function, state, element)
    return state if new is None else new


def _reduce(settings: list[object], args: list[Value]) -> Value:
    function, state, data = args
    for element in _elements(data):
        state = _combined(function, state, element)
    return state


def _scan(settings: list[object], args: list[Value]) -> Value:
    function, state, data = args
    found = []
    for element in _elements(data):
        state = _called(function, state, element)
        found.append(state)
    return found


def _slide(settings: list[object], args: list[Value]) -> Value:
    n, step = _numbers(settings)
    data = _elements(args[0])
    return [data[start : start + n] for start in range(0, len(data) - n + 1, step)]


def _split(settings: list[object], args: list[Value]) -> Value:
    (n,) = _numbers(settings)
    data = _elements(args[0])
    return [data[start : start + n] for start in range(0, len(data), n)]


def _pad(settings: list[object], args: list[Value]) -> Value:
    left, right = _numbers(settings)
    return [args[0]] * left + _elements(args[1]) + [args[0]] * right


def _slice(settings: list[object], args: list[Value]) -> Value:
    start, count, step = _numbers(settings)
    return [_elements(args[0])[start + k * step] for k in range(count)]


def _view(settings: list[object], args: list[Value]) -> Value:
    (places,) = settings
    assert isinstance(places, Places)

    def at(loops: int, point: dict[str, int]) -> Value:
        if loops < len(places.loops):
            loop = places.loops[loops]
            return [at(loops + 1, {**point, loop.name: k}) for k in range(loop.extent.const)]
        data = args[0]
        for index in places.indices:
            number = index.evaluate(point)
            inside = 0 <= number < len(_elements(data))
            data = _elements(data)[number] if inside else _none_like(_elements(data)[0])
        return data if all(c.holds(point) for c in places.where) else _none_like(data)

    return at(0, {})


def _elements(value: Value) -> list[Value]:
    assert isinstance(value, list)
    return value


def _members(value: Value) -> tuple[Value, ...]:
    assert isinstance(value, tuple)
    return value


def _numbers(settings: list[object]) -> list[int]:
    return [s for s in settings if isinstance(s, int)]


_PATTERNS: dict[str, Callable[[list[object], list[Value]], Value]] = {
    "map": lambda s, args: [_called(args[0], element) for element in _elements(args[1])],
    "reduce": _reduce,
    "scan": _scan,
    "zip": lambda s, args: [tuple(members) for members in zip(*map(_elements, args), strict=True)],
    "slide": _slide,
    "split": _split,
    "join": lambda s, args: [element for part in _elements(args[0]) for element in _elements(part)],
    "transpose": lambda s, args: [list(part) for part in zip(*map(_elements, _elements(args[0])), strict=True)],
    "pad": _pad,
    "to": lambda s, args: args[0],
    "tuple": lambda s, args: tuple(args),
    "get": lambda s, args: _members(args[0])[_numbers(s)[0]],
    "array": lambda s, args: list(args),
    "repeat": lambda s, args: [args[0]] * _numbers(s)[0],
    "slice": _slice,
    "view": _view,
}
