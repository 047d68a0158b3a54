"""Reductions over axes, the place of the largest and smallest, and running sums."""

from __future__ import annotations

from dovetail.base.dtypes import Kind
from dovetail.base.errors import OperatorError
from dovetail.ir.graph.graph import Type
from dovetail.ir.graph.operator import Ints, Operator, operator, operators
from dovetail.ir.index import ONE, variable
from dovetail.ops.text import Grid, accumulator, axes_of, axis_of, count, grid, summed, text

_FORMS = {
    "reduce_l1": ("abs({x})", "{t}"),
    "reduce_l2": ("{x} * {x}", "sqrt({t})"),
    "reduce_log_sum": ("{x}", "log({t})"),
    "reduce_sum_square": ("{x} * {x}", "{t}"),
}
"""What is summed, and what becomes of the sum."""
COMBINES = {"reduce_sum": "+=", "reduce_prod": "*=", "reduce_max": "max=", "reduce_min": "min="}


def reduce_mean(x: Type, *, axes: Ints | None = None, keepdims: int = 1) -> str:
    out, inner, g = _reduced(x, axes, keepdims)
    _need_floats(x, "mean")
    number = count(inner.extents, accumulator(x.dtype))
    return summed(x.dtype, out, inner.loops, f"x[{g.index}]", f"{{t}} / ({number})", over=_over(g, inner))


def reduce_log_sum_exp(x: Type, *, axes: Ints | None = None, keepdims: int = 1) -> str:
    """``log(sum(exp(x)))``, without overflow: a largest that is infinite is not taken off."""
    _need_floats(x, "logarithm")
    out, inner, g = _reduced(x, axes, keepdims)
    rest = g.without([dim for dim, name in enumerate(g.names) if name in inner.names])
    wide = accumulator(x.dtype)
    return text(
        f"temp top: {wide}[{rest.shape}]  temp shift: {wide}[{rest.shape}]  temp total: {wide}[{rest.shape}]",
        f"out y: {x.dtype}[{out.shape}]",
        f"for {g.loops}: top[{rest.index}] max= x[{g.index}]",
        f"for {rest.loops}: shift[{rest.index}] = select(abs(top[{rest.index}]) == inf, 0.0, top[{rest.index}])",
        f"for {g.loops}: total[{rest.index}] += exp(x[{g.index}] - shift[{rest.index}])",
        f"for {rest.loops}: y[{out.index}] = log(total[{rest.index}]) + shift[{rest.index}]",
    )


def argmax(x: Type, *, axis: int = 0, keepdims: int = 1, last: int = 0) -> str:
    """The first place of the largest (with ``last`` the last one); a NaN counts as the largest."""
    return _place(x, axis, keepdims, last, "max=")


def argmin(x: Type, *, axis: int = 0, keepdims: int = 1, last: int = 0) -> str:
    """The first place of the smallest (with ``last`` the last one); a NaN counts as the smallest."""
    return _place(x, axis, keepdims, last, "min=")


def cumsum(x: Type, *, axis: int = 0, exclusive: int = 0, reverse: int = 0) -> str:
    """The sum of everything up to a place; ``exclusive`` without the place itself, ``reverse`` from the last on."""
    return _running(x, axis, exclusive, reverse, "+", 0)


def cumprod(x: Type, *, axis: int = 0, exclusive: int = 0, reverse: int = 0) -> str:
    """The product of everything up to a place; ``exclusive`` and ``reverse`` as of ``cumsum``."""
    return _running(x, axis, exclusive, reverse, "*", 1)


def _running(x: Type, axis: int, exclusive: int, reverse: int, sign: str, first: int) -> str:
    at = axis_of(axis, x.rank)
    g, wide = grid(x.shape), accumulator(x.dtype)
    rest, steps = g.without((at,)), x.shape[at]
    step = variable("t")
    element = steps - 1 - step if reverse else step
    sums = Grid(g.names, (*x.shape[:at], steps + 1, *x.shape[at + 1 :]))
    read = sums.at("sums", {at: variable(g.names[at]) if exclusive else variable(g.names[at]) + 1})
    written = g.at("y", {at: steps - 1 - variable(g.names[at]) if reverse else variable(g.names[at])})
    return text(
        f"temp sums: {wide}[{sums.shape}]  out y: {x.dtype}[{g.shape}]",
        f"for {rest.loops}: {sums.at('sums', {at: '0'})} = {first}",
        f"seq t<{steps}: for {rest.loops}: {sums.at('sums', {at: step + 1})} = "
        f"{sums.at('sums', {at: step})} {sign} {g.at('x', {at: element})}",
        f"for {g.loops}: {written} = {read}",
    )


def _reduce(name: str, op: str) -> Operator:
    def define(x: Type, *, axes: Ints | None = None, keepdims: int = 1) -> str:
        out, inner, g = _reduced(x, axes, keepdims)
        return summed(x.dtype, out, inner.loops, f"x[{g.index}]", op=op, over=_over(g, inner))

    return operator(define, name)


def _formed(name: str, value: str, after: str) -> Operator:
    def define(x: Type, *, axes: Ints | None = None, keepdims: int = 1) -> str:
        out, inner, g = _reduced(x, axes, keepdims)
        if "(" in after:
            _need_floats(x, name)
        if value == "abs({x})" and x.dtype.kind is Kind.UNSIGNED:
            return summed(x.dtype, out, inner.loops, f"x[{g.index}]", over=_over(g, inner))
        return summed(x.dtype, out, inner.loops, value.format(x=f"x[{g.index}]"), after, over=_over(g, inner))

    return operator(define, name)


def _need_floats(x: Type, what: str) -> None:
    if not x.dtype.is_float:
        raise OperatorError(f"the {what} of {x.dtype} values", hint='cast(x) {dtype = "f32"}')


def _reduced(x: Type, axes: Ints | None, keepdims: int) -> tuple[Grid, Grid, Grid]:
    """The result's indices and extents, the loops reduced, and all loops."""
    gone = axes_of(axes, x.rank)
    g = grid(x.shape)
    if not keepdims:
        return g.without(gone), g.keep(gone), g
    names = tuple("0" if dim in gone else name for dim, name in enumerate(g.names))
    shape = tuple(ONE if dim in gone else extent for dim, extent in enumerate(g.extents))
    return Grid(names, shape), g.keep(gone), g


def _over(g: Grid, inner: Grid) -> str:
    """The loops of ``g`` that are not reduced."""
    return g.keep([dim for dim, name in enumerate(g.names) if name not in inner.names]).loops


def _place(x: Type, axis: int, keepdims: int, last: int, op: str) -> str:
    at = axis_of(axis, x.rank)
    if x.shape[at].is_constant and x.shape[at].const == 0:
        raise OperatorError("an axis of 0 elements has no largest or smallest")
    out, _, g = _reduced(x, (at,), keepdims)
    rest = g.without((at,))
    found = f"x[{g.index}] == best[{rest.index}]"
    if x.dtype.is_float:
        found = f"({found}) | isnan(x[{g.index}])"
    place, never, join = f"d{at}", (f"{x.shape[at]}" if not last else "-1"), ("max=" if last else "min=")
    return text(
        f"temp best: {x.dtype}[{rest.shape}]  out y: i64[{out.shape}]",
        f"for {g.loops}: best[{rest.index}] {op} x[{g.index}]",
        f"for {g.loops}: y[{out.index}] {join} select({found}, {place}, {never})",
    )


OPERATORS = (
    *(_reduce(name, op) for name, op in COMBINES.items()),
    *(_formed(name, *form) for name, form in _FORMS.items()),
    *operators(reduce_mean, reduce_log_sum_exp, argmax, argmin, cumsum, cumprod),
)
