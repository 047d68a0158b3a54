"""The reference evaluator of terms: what a definition means, in NumPy.

Integers are exact and wrap at each operation; floats are float64, and only a cast and the end round. A map evaluates
its function once, for all elements together (``values`` says how); a scan goes step by step, and so does a reduction
by a function that is not one of ``add mul max min``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dovetail.base.dtypes import DTYPES, DType, compute_type, join
from dovetail.ir.bind import bind_arrays
from dovetail.ir.compute import convert, literal, representation, store
from dovetail.ir.functional.infer import results_of, typing_of
from dovetail.ir.functional.inference import Typing
from dovetail.ir.functional.patterns import missing
from dovetail.ir.functional.rearrange import REARRANGE
from dovetail.ir.functional.reductions import COMBINES, combined, dot, pair, products
from dovetail.ir.functional.stepwise import in_steps
from dovetail.ir.functional.term import Call, Definition, Lambda, Let, Literal, Pattern, Scalar, Term, Var
from dovetail.ir.functional.type_errors import Path
from dovetail.ir.functional.types import Function, Tuple, Type, array, shape
from dovetail.ir.functional.types import Scalar as Number
from dovetail.ir.functional.values import (
    Array,
    Data,
    Value,
    as_type,
    both_there,
    chosen,
    element,
    joined,
    leaves,
    lifted,
    like,
    reshaped,
    rounded,
    same_bits,
    size_at,
    whole,
)
from dovetail.ir.primitives import PRIMITIVES
from dovetail.ir.program import Program, Tensor


@dataclass(frozen=True, slots=True)
class Closure:
    """A function: a term, where it stands, and the values around it."""

    term: Term
    path: Path
    scope: Scope


@dataclass(frozen=True, slots=True)
class Bound:
    """A value and the number of maps it is inside."""

    value: Value | Closure
    depth: int


Scope = Mapping[str, Bound]


def evaluate(
    definition: Definition,
    arrays: Mapping[str, Array],
    sizes: Mapping[str, int] | None = None,
    ordered: bool = False,
) -> dict[str, Array]:
    """All results of ``definition``, by name; ``arrays`` are its parameters and are not changed.

    Sizes that are not given are read off the arrays' shapes. An element that is ``none`` comes out as zero.
    ``ordered`` reductions go from the left, one element at a time: slower, and each sum is rounded in one order.
    """
    typing = typing_of(definition)
    types = results_of(definition, typing)
    bound = bind_arrays(interface(definition), arrays, sizes)
    scope = {name: Bound(Data(np.asarray(value), DTYPES["i64"]), 0) for name, value in bound.items()}
    for param in definition.params:
        dtype = element_type(param.type)
        scope[param.name] = Bound(Data(arrays[param.name].astype(representation(dtype)), dtype), 0)
    with np.errstate(all="ignore"):
        found = _Evaluator(typing, bound, ordered).value(definition.body, (), scope, 0)
    assert not isinstance(found, Closure)
    members = found if isinstance(found, tuple) else (found,)
    named = zip(definition.results, members, types, strict=True)
    return {name: _stored(member, kind) for name, member, kind in named}


def interface(definition: Definition) -> Program:
    """The parameters of ``definition`` as the tensors of a program without statements."""
    tensors = (Tensor(p.role, p.name, element_type(p.type), shape(p.type)[0]) for p in definition.params)
    return Program(tuple(tensors), (), definition.sizes)


def element_type(kind: Type) -> DType:
    """The dtype of an array of numbers."""
    inner = shape(kind)[1]
    assert isinstance(inner, Number), f"{kind} is no array of numbers"
    return inner.dtype


class _Evaluator:
    """Values of the terms of one definition, whose types and sizes are known."""

    def __init__(self, typing: Typing, sizes: Mapping[str, int], ordered: bool) -> None:
        self.types = typing.at
        self.sizes = sizes
        self.ordered = ordered

    def value(self, term: Term, path: Path, scope: Scope, depth: int) -> Value | Closure:
        """The value of ``term`` for all elements of the ``depth`` maps around it."""
        match term:
            case Var(name):
                bound = scope[name]
                kept = isinstance(bound.value, Closure)
                return bound.value if kept else lifted(_data(bound.value), bound.depth, depth)
            case Literal():
                return self.literal(term, self.types[path], depth)
            case Let(name, value, body):
                bound = Bound(self.value(value, (*path, 0), scope, depth), depth)
                return self.value(body, (*path, 1), {**scope, name: bound}, depth)
            case Call(function, args):
                given = tuple(self.value(arg, (*path, k + 1), scope, depth) for k, arg in enumerate(args))
                return self.apply(_function(self.value(function, (*path, 0), scope, depth)), given, depth)
            case Pattern() | Scalar() if not missing(term):
                return self.operation(term, path, scope, (), depth)
        assert isinstance(term, Lambda | Pattern | Scalar), f"{term} has no value"
        return Closure(term, path, scope)

    def apply(self, function: Closure, args: tuple[Value | Closure, ...], depth: int) -> Value | Closure:
        """A function of values; several are also one tuple."""
        term = function.term
        count = len(term.params) if isinstance(term, Lambda) else missing(term)
        if len(args) != count:
            first = args[0]
            args = first if len(args) == 1 and isinstance(first, tuple) else (tuple(map(_data, args)),)
        if not isinstance(term, Lambda):
            assert isinstance(term, Pattern | Scalar)
            return self.operation(term, function.path, function.scope, args, depth)
        bound = {name: Bound(arg, depth) for name, arg in zip(term.params, args, strict=True)}
        return self.value(term.body, (*function.path, 0), {**function.scope, **bound}, depth)

    def operation(
        self, term: Pattern | Scalar, path: Path, scope: Scope, more: tuple[Value | Closure, ...], depth: int
    ) -> Value:
        """A pattern or primitive of its terms and ``more`` values."""
        if isinstance(term, Pattern) and term.name == "reduce" and not (more or self.ordered):
            found = self.sum_of_products(term, path, scope, depth)
            if found is not None:
                return found
        own = tuple(self.value(arg, (*path, k), scope, depth) for k, arg in enumerate(term.args))
        args = own + more
        kind = self.types[path]
        result = kind.result if isinstance(kind, Function) and more else kind
        if isinstance(term, Scalar):
            return _arithmetic(term.function, tuple(_numbers(arg) for arg in args), element_type(result))
        if term.name == "map":
            return self.map(_function(args[0]), _data(args[1]), depth)
        if term.name == "steps":
            changes = lambda state: _data(self.apply(_function(args[0]), (state,), depth))  # noqa: E731
            return in_steps(term.settings, changes, _data(args[1]), depth, self.sizes)
        if term.name in ("reduce", "scan"):
            return self.fold(term.name, _function(args[0]), _data(args[1]), _data(args[2]), depth)
        return REARRANGE[term.name](term.settings, tuple(map(_data, args)), depth, self.sizes)

    def literal(self, term: Literal, kind: Type, depth: int) -> Value:
        """A number, or ``none`` of any type."""
        if isinstance(kind, Tuple):
            return tuple(self.literal(term, member, depth) for member in kind.members)
        sizes, inner = shape(kind)
        if isinstance(inner, Tuple):
            return tuple(self.literal(term, array(sizes, member), depth) for member in inner.members)
        dtype = inner.dtype if isinstance(inner, Number) else DTYPES["f32"]
        full = (1,) * depth + tuple(size.evaluate(self.sizes) for size in sizes)
        if term.value is None:
            return Data(np.zeros(full, representation(dtype)), dtype, np.zeros(full, np.bool_))
        return Data(literal(term.value, dtype).reshape(full), dtype)

    def map(self, function: Closure, data: Value, depth: int) -> Value:
        """The elements of ``data`` become one more batch axis."""
        found = _data(self.apply(function, (data,), depth + 1))
        return whole(found, depth, size_at(data, depth))

    def fold(self, name: str, function: Closure, start: Value, data: Value, depth: int) -> Value:
        """All elements at once where the order does not matter, else one by one."""
        primitive = _commutative(function.term)
        if name == "reduce" and primitive is not None:
            first, numbers = _numbers(start), _numbers(data)
            return self.combine(primitive, first, as_type(numbers, first.dtype), depth)
        state, states = start, []
        for number in range(size_at(data, depth)):
            new = _data(self.apply(function, (state, element(data, depth, number)), depth))
            state = _passed_over(new, state) if name == "reduce" else new
            states.append(state)
        if name == "reduce":
            return state
        if states:
            return joined(states, depth, stack=True)
        return reshaped(start, lambda a: np.repeat(np.expand_dims(a, depth), 0, axis=depth))

    def combine(self, function: str, start: Data, numbers: Data, depth: int) -> Data:
        """All numbers along an axis; the start comes first where the order matters."""
        if not self.ordered:
            return pair(function, start, combined(function, numbers, depth))
        first = _numbers(reshaped(start, lambda a: np.expand_dims(a, depth)))
        found = combined(function, _numbers(joined([first, numbers], depth, stack=False)), depth, ordered=True)
        return Data(found.values, found.dtype, None if start.there is None else found.there)

    def sum_of_products(self, term: Pattern, path: Path, scope: Scope, depth: int) -> Value | None:
        """``reduce(add, z, map(\\... -> a * b, x))`` without an array of products; None where it is not that."""
        inner = term.args[2] if len(term.args) == 3 else term
        if not (isinstance(inner, Pattern) and inner.name == "map" and len(inner.args) == 2):
            return None
        sum_by = self.value(term.args[0], (*path, 0), scope, depth)
        by = self.value(inner.args[0], (*path, 2, 0), scope, depth)
        if _commutative(_function(sum_by).term) != "add":
            return None
        function = _function(by)
        body = function.term.body if isinstance(function.term, Lambda) else function.term
        if not isinstance(body, Scalar) or body.function != "mul":
            return None
        start = _numbers(self.value(term.args[1], (*path, 1), scope, depth))
        data = _data(self.value(inner.args[1], (*path, 2, 1), scope, depth))
        left, right = self.factors(function, data, depth + 1)
        factors = products(left, right, start)
        if factors is None:
            return None
        total = dot(_numbers(whole(factors[0], depth, size_at(data, depth))), factors[1], depth)
        return None if total is None else pair("add", start, total)

    def factors(self, function: Closure, data: Value, depth: int) -> tuple[Data, Data]:
        """The two values that ``function`` multiplies."""
        term, path, scope = function.term, function.path, function.scope
        args: tuple[Value | Closure, ...] = (data,)
        if isinstance(term, Lambda):
            several = len(term.params) > 1
            given = data if several and isinstance(data, tuple) else (data,)
            scope = {**scope, **{n: Bound(arg, depth) for n, arg in zip(term.params, given, strict=True)}}
            term, path, args = term.body, (*path, 0), ()
        elif isinstance(data, tuple):
            args = data
        assert isinstance(term, Scalar)
        own = tuple(self.value(arg, (*path, k), scope, depth) for k, arg in enumerate(term.args))
        left, right = (_numbers(arg) for arg in own + args)
        return left, right


def _arithmetic(function: str, args: tuple[Data, ...], result: DType) -> Data:
    """A primitive, a cast or ``orelse`` of numbers."""
    if function in DTYPES:
        return rounded(args[0], result)
    if function.startswith("bitcast_"):
        return same_bits(args[0], result)
    if function == "orelse":
        first, other = (as_type(arg, result) for arg in args)
        return first if first.there is None else chosen(first.there, Data(first.values, result), other)
    row = PRIMITIVES[function]
    own = result
    if row.result == "bool":
        own = args[0].dtype
        for arg in args[1:]:
            own = join(own, arg.dtype)
        own = compute_type(own)
    chooses = row.result == "select"
    given = [arg if chooses and not k else as_type(arg, own) for k, arg in enumerate(args)]
    values = np.asarray(row.meaning(*(arg.values for arg in given)))
    return Data(convert(values, result, result), result, both_there(args))


def _commutative(term: Term) -> str | None:
    """``add``, also spelled ``\\a b -> a + b``; None for a function whose order matters."""
    if isinstance(term, Lambda) and isinstance(term.body, Scalar) and len(term.params) == 2:
        names = tuple(arg.name for arg in term.body.args if isinstance(arg, Var))
        term = Scalar(term.body.function) if set(names) == set(term.params) and len(names) == 2 else term
    return term.function if isinstance(term, Scalar) and not term.args and term.function in COMBINES else None


def _passed_over(new: Value, old: Value) -> Value:
    """``new``, but ``old`` where it is not there."""
    kept = [
        a if a.there is None else chosen(a.there, Data(a.values, a.dtype), b)
        for a, b in zip(leaves(new), leaves(old), strict=True)
    ]
    return like(new, kept)


def _data(value: Value | Closure) -> Value:
    assert not isinstance(value, Closure), "a function is no data"
    return value


def _numbers(value: Value | Closure) -> Data:
    assert isinstance(value, Data), "not an array of numbers"
    return value


def _function(value: Value | Closure) -> Closure:
    assert isinstance(value, Closure), "not a function"
    return value


def _stored(value: Value, kind: Type) -> Array:
    assert isinstance(value, Data)
    dtype = element_type(kind)
    values = value.values if value.there is None else np.where(value.there, value.values, np.zeros_like(value.values))
    return np.array(store(values, value.dtype, dtype), order="C")
