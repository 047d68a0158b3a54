"""Reductions over axes: sums, extremes and where they are, means, variances, norms, running sums."""

from __future__ import annotations

from math import inf, prod

from dovetail.base.dtypes import DTYPES, Kind, compute_type
from dovetail.frontends.torch.call import Call
from dovetail.frontends.torch.context import Context, Conversion, Results
from dovetail.frontends.torch.convert.pointwise import operand

_BOOL = DTYPES["bool"]


def axes(context: Context, call: Call, x: str) -> tuple[int, ...]:
    """The axes that ``dim`` or ``dims`` names; all of them where it names none."""
    rank = context.rank(x)
    named = next((call.ints(name) for name in ("dim", "dims") if name in call.arguments), ())
    return tuple(sorted(dim % rank for dim in named)) if named and rank else tuple(range(rank))


def keep(call: Call) -> int:
    return int("keepdim" in call.arguments and call.flag("keepdim"))


def reduced(context: Context, op: str, x: str, dims: tuple[int, ...], keepdims: int) -> str:
    """``x`` reduced; without axes it stays as it is."""
    return context.node(op, x, axes=dims, keepdims=keepdims) if dims else x


def _reduction(op: str) -> Conversion:
    def convert(context: Context, call: Call) -> Results:
        x = context.cast(call.tensor("self" if "self" in call.arguments else "inp"), call.dtype)
        if call.dtype.kind is Kind.BOOL and op in _OF_BOOLS:
            return (_of_bools(context, _OF_BOOLS[op], x, axes(context, call, x), keep(call)),)
        return (reduced(context, op, x, axes(context, call, x), keep(call)),)

    return convert


def _truth(op: str) -> Conversion:
    """``any`` and ``all``: the largest or smallest of zeros and ones."""

    def convert(context: Context, call: Call) -> Results:
        x = operand(context, call, "self", _BOOL)
        return (context.cast(_of_bools(context, op, x, axes(context, call, x), keep(call)), call.dtype),)

    return convert


_OF_BOOLS = {"reduce_max": "reduce_max", "reduce_min": "reduce_min", "reduce_sum": "reduce_max"}


def _of_bools(context: Context, op: str, x: str, dims: tuple[int, ...], keepdims: int) -> str:
    numbers = context.node("cast", x, dtype="u8")
    return context.cast(reduced(context, op, numbers, dims, keepdims), _BOOL)


def mean(context: Context, call: Call) -> Results:
    x = operand(context, call, "self", call.dtype)
    return (reduced(context, "reduce_mean", x, axes(context, call, x), keep(call)),)


def _extreme(op: str, place: str) -> Conversion:
    """``max.dim``: the values, and the first place of each."""

    def convert(context: Context, call: Call) -> Results:
        x, dim = call.tensor("self"), call.whole("dim")
        if not context.rank(x):
            return (x, context.scalar(0, DTYPES["i64"]))
        if context.dtype(x).kind is Kind.BOOL:
            raise call.unsupported("bools are not ordered")
        values = reduced(context, op, x, (dim % context.rank(x),), keep(call)) if call.needed[0] else None
        places = context.node(place, x, axis=dim, keepdims=keep(call)) if call.needed[1] else None
        return (values, places)

    return convert


def _place(op: str) -> Conversion:
    """``argmax``; without an axis, over all elements."""

    def convert(context: Context, call: Call) -> Results:
        x, dim = call.tensor("self"), call.maybe_number("dim")
        if dim is None or not context.rank(x):
            flat = context.reshape(x, (prod(context.shape(x)),))
            return (context.reshape(context.node(op, flat, axis=0, keepdims=0), call.shape),)
        return (context.node(op, x, axis=int(dim), keepdims=keep(call)),)

    return convert


def variance(context: Context, call: Call) -> Results:
    return (moments(context, call)[0],)


def deviation(context: Context, call: Call) -> Results:
    return (context.node("sqrt", moments(context, call)[0]),)


def variance_mean(context: Context, call: Call) -> Results:
    return moments(context, call)


def moments(context: Context, call: Call) -> tuple[str, str]:
    """The variance, divided by the number of elements less ``correction``, and the mean."""
    x = call.tensor("self")
    dims, shape = axes(context, call, x), context.shape(x)
    wide = compute_type(context.dtype(x))
    x = context.cast(x, wide)
    middle = reduced(context, "reduce_mean", x, dims, 1)
    apart = context.node("sub", x, middle)
    total = reduced(context, "reduce_sum", context.node("mul", apart, apart), dims, keep(call))
    given = call.maybe_number("correction")
    number = max(prod(shape[dim] for dim in dims) - (1 if given is None else float(given)), 0.0)
    spread = context.node("div", total, context.scalar(float(number), wide))
    return context.cast(spread, call.dtype), context.cast(context.reshape(middle, context.shape(spread)), call.dtype)


def vector_norm(context: Context, call: Call) -> Results:
    """``sum(|x| ** ord) ** (1 / ord)`` and its limits."""
    x, order = operand(context, call, "self", compute_type(call.dtype)), call.real("ord")
    dims, keepdims, dtype = axes(context, call, x), keep(call), context.dtype(x)
    size = context.node("abs", x)
    if abs(order) == inf:
        found = reduced(context, "reduce_max" if order > 0 else "reduce_min", size, dims, keepdims)
    elif order == 0:
        present = context.cast(context.node("not_equal", x, context.scalar(0.0, dtype)), dtype)
        found = reduced(context, "reduce_sum", present, dims, keepdims)
    elif order == 1:
        found = reduced(context, "reduce_sum", size, dims, keepdims)
    elif order == 2:
        found = context.node("sqrt", reduced(context, "reduce_sum", context.node("mul", x, x), dims, keepdims))
    else:
        powers = context.node("power", size, context.scalar(order, dtype))
        total = reduced(context, "reduce_sum", powers, dims, keepdims)
        found = context.node("power", total, context.scalar(1.0 / order, dtype))
    return (context.cast(found, call.dtype),)


def _running(op: str) -> Conversion:
    def convert(context: Context, call: Call) -> Results:
        x = operand(context, call, "self", call.dtype)
        return (context.node(op, x, axis=call.whole("dim")) if context.rank(x) else x,)

    return convert


_EACH = ("default", "dim", "dims", "dim_IntList", "dim_int", "correction", "out")


def _named(table: dict[str, Conversion]) -> dict[str, Conversion]:
    return {f"aten.{name}.{overload}": found for name, found in table.items() for overload in _EACH}


CONVERSIONS: dict[str, Conversion] = {
    **_named({"sum": _reduction("reduce_sum"), "prod": _reduction("reduce_prod"), "mean": mean}),
    **_named({"amax": _reduction("reduce_max"), "amin": _reduction("reduce_min")}),
    **_named({"any": _truth("reduce_max"), "all": _truth("reduce_min")}),
    **_named({"var": variance, "std": deviation, "var_mean": variance_mean}),
    "aten.max.default": _reduction("reduce_max"),
    "aten.min.default": _reduction("reduce_min"),
    "aten.max.dim": _extreme("reduce_max", "argmax"),
    "aten.min.dim": _extreme("reduce_min", "argmin"),
    "aten.argmax.default": _place("argmax"),
    "aten.argmin.default": _place("argmin"),
    "aten.linalg_vector_norm.default": vector_norm,
    "aten.cumsum.default": _running("cumsum"),
    "aten.cumprod.default": _running("cumprod"),
    "prims.sum.default": _reduction("reduce_sum"),
    "prims.amax.default": _reduction("reduce_max"),
}
