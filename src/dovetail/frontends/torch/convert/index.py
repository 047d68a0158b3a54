"""Elements looked up and written where data says."""

from __future__ import annotations

from math import prod

import numpy as np

from dovetail.base.dtypes import DTYPES, Kind
from dovetail.frontends.torch.call import Call
from dovetail.frontends.torch.context import Context, Conversion, Results
from dovetail.frontends.torch.convert.pointwise import operand
from dovetail.frontends.torch.convert.shape import transposed

_I64 = DTYPES["i64"]
_JOINS = {"sum": "add", "add": "add", "prod": "mul", "multiply": "mul", "amax": "max", "amin": "min", "mean": "add"}


class _Places:
    """Where ``x[indices]`` reads: the indexed axes of x put first, and one row of numbers for each place."""

    def __init__(self, context: Context, call: Call, x: str) -> None:
        given = call.maybe_tensors("indices")
        self.axes = tuple(dim for dim, index in enumerate(given) if index is not None)
        self.rest = tuple(dim for dim in range(context.rank(x)) if dim not in self.axes)
        found = [index for index in given if index is not None]
        if any(not context.dtype(index).is_integer for index in found):
            raise call.unsupported("how many elements a mask names depends on its values")
        self.shape = _common(context, found)
        parts = [context.expand(context.cast(index, _I64), self.shape) for index in found]
        rows = [context.reshape(part, (*self.shape, 1)) for part in parts]
        self.rows = rows[0] if len(rows) == 1 else context.node("concat", *rows, axis=len(self.shape))
        together = self.axes == tuple(range(self.axes[0], self.axes[-1] + 1))
        self.first = self.axes[0] if together else 0

    def front(self, context: Context, x: str) -> str:
        """x with the indexed axes in front."""
        return transposed(context, x, self.axes + self.rest)

    def back(self, context: Context, x: str) -> str:
        order = self.axes + self.rest
        return transposed(context, x, tuple(order.index(dim) for dim in range(len(order))))

    def order(self) -> tuple[int, ...]:
        """How places and the axes that are left lie in the result: places where the indexed axes were."""
        count, rest = len(self.shape), len(self.rest)
        axes = tuple(range(count + rest))
        return (*axes[count : count + self.first], *axes[:count], *axes[count + self.first :])


def index(context: Context, call: Call) -> Results:
    x = call.tensor("self")
    places = _Places(context, call, x)
    found = context.node("gather_nd", places.front(context, x), places.rows)
    return (transposed(context, found, places.order()),)


def index_put(context: Context, call: Call) -> Results:
    """Values put where several index tensors say, or added to what is there."""
    x, values = call.tensor("self"), call.tensor("values")
    mask = _mask(context, call, x)
    if mask is not None:
        return (context.node("select", mask, context.cast(context.reshape(values, ()), call.dtype), x),)
    places = _Places(context, call, x)
    rest = tuple(context.shape(x)[dim] for dim in places.rest)
    shape = (*rest[: places.first], *places.shape, *rest[places.first :])
    wide = context.expand(context.cast(values, call.dtype), shape)
    order = places.order()
    moved = transposed(context, wide, tuple(order.index(dim) for dim in range(len(order))))
    joined = "add" if call.flag("accumulate") else "none"
    found = context.node("scatter_nd", places.front(context, x), places.rows, moved, reduction=joined)
    return (places.back(context, found),)


def _mask(context: Context, call: Call, x: str) -> str | None:
    """A single mask over the first axes, where one value goes to all places."""
    given = call.maybe_tensors("indices")
    if len(given) != 1 or given[0] is None or context.dtype(given[0]).kind is not Kind.BOOL:
        return None
    if call.flag("accumulate") or context.shape(call.tensor("values")) not in ((), (1,)):
        raise call.unsupported("which value goes where depends on the values of a mask")
    return context.reshape(given[0], context.shape(given[0]) + (1,) * (context.rank(x) - context.rank(given[0])))


def diagonal_scatter(context: Context, call: Call) -> Results:
    """``src`` on a diagonal of two axes: these in front, one row of numbers for each place on it."""
    x, source, offset = call.tensor("self"), call.tensor("src"), call.whole("offset")
    rank = context.rank(x)
    axes = tuple(call.whole(name) % rank for name in ("dim1", "dim2"))
    order = axes + tuple(dim for dim in range(rank) if dim not in axes)
    count = context.shape(source)[-1]
    places = np.arange(count, dtype=np.int64)[:, None] + np.array([max(-offset, 0), max(offset, 0)])
    updates = transposed(context, context.cast(source, call.dtype), (rank - 2, *range(rank - 2)))
    front = transposed(context, x, order)
    found = context.node("scatter_nd", front, context.constant(places), updates)
    return (transposed(context, found, tuple(order.index(dim) for dim in range(rank))),)


def index_select(context: Context, call: Call) -> Results:
    x, places = call.tensor("self"), call.tensor("index")
    if not context.rank(x):
        return (x,)
    found = context.node("gather", x, places, axis=call.whole("dim"))
    return (context.reshape(found, call.shape),)


def take(context: Context, call: Call) -> Results:
    """Elements counted in row-major order."""
    x = call.tensor("self")
    flat = context.reshape(x, (prod(context.shape(x)),))
    return (context.node("gather", flat, call.tensor("index"), axis=0),)


def embedding(context: Context, call: Call) -> Results:
    return (context.node("embedding", call.tensor("weight"), call.tensor("indices")),)


def gather(context: Context, call: Call) -> Results:
    x, places = (_one_axis(context, call.tensor(name)) for name in ("self", "index"))
    found = context.node("gather_elements", x, places, axis=call.whole("dim"))
    return (context.reshape(found, call.shape),)


def scatter(context: Context, call: Call) -> Results:
    """``src`` or ``value`` put along an axis; with ``reduce`` joined with what is there."""
    reduce = call.text("reduce") if "reduce" in call.arguments else "none"
    return (_scattered(context, call, _JOINS.get(reduce, "none")),)


def scatter_add(context: Context, call: Call) -> Results:
    return (_scattered(context, call, "add"),)


def scatter_reduce(context: Context, call: Call) -> Results:
    """Without ``include_self`` what is there counts only where nothing is written."""
    reduce, dim = call.text("reduce"), call.whole("dim")
    if not call.dtype.is_float and reduce == "mean":
        raise call.unsupported("a mean of whole numbers")
    x, places, source = _scattering(context, call)
    one, zero = (context.scalar(value, call.dtype) for value in (1, 0))
    reached = context.node(
        "scatter_elements", context.expand(zero, context.shape(x)), places,
        context.expand(one, context.shape(places)), axis=dim, reduction="add",
    )  # fmt: skip
    empty = context.node("equal", reached, zero)
    if not call.flag("include_self"):
        neutral = context.scalar(_neutral(_JOINS[reduce], call), call.dtype)
        start = context.node("select", empty, x, neutral)
    else:
        start, reached = x, context.node("add", reached, one)
    found = context.node("scatter_elements", start, places, source, axis=dim, reduction=_JOINS[reduce])
    if reduce == "mean":
        found = context.node("div", found, context.node("max", reached, one))
    return (context.reshape(found, call.shape),)


def _neutral(join: str, call: Call) -> float:
    if join in ("add", "mul"):
        return 0 if join == "add" else 1
    if call.dtype.is_float:
        return float("-inf") if join == "max" else float("inf")
    return call.dtype.low if join == "max" else call.dtype.high


def _scattered(context: Context, call: Call, join: str) -> str:
    x, places, source = _scattering(context, call)
    found = context.node("scatter_elements", x, places, source, axis=call.whole("dim"), reduction=join)
    return context.reshape(found, call.shape)


def _scattering(context: Context, call: Call) -> tuple[str, str, str]:
    """What is there, where to write, and as much of what is written as there are places."""
    x, places = (_one_axis(context, call.tensor(name)) for name in ("self", "index"))
    shape = context.shape(places)
    name = "src" if "src" in call.arguments else "value"
    if not call.is_tensor(name):
        return x, places, context.expand(operand(context, call, name, call.dtype), shape)
    source = _one_axis(context, context.cast(call.tensor(name), call.dtype))
    if context.shape(source) != shape:
        source = context.node("slice", source, starts=(0,) * len(shape), ends=shape)
    return x, places, source


def _one_axis(context: Context, x: str) -> str:
    """A tensor of no axes gets one."""
    return x if context.rank(x) else context.reshape(x, (1,))


def _common(context: Context, names: list[str]) -> tuple[int, ...]:
    """The shape that these are stretched to."""
    rank = max(context.rank(name) for name in names)
    padded = [(1,) * (rank - context.rank(name)) + context.shape(name) for name in names]
    return tuple(next((extent for extent in column if extent != 1), 1) for column in zip(*padded, strict=True))


CONVERSIONS: dict[str, Conversion] = {
    "aten.index.Tensor": index,
    "aten._unsafe_index.Tensor": index,
    "aten.index_put.default": index_put,
    "aten._unsafe_index_put.default": index_put,
    "aten.diagonal_scatter.default": diagonal_scatter,
    "aten.index_select.default": index_select,
    "aten.take.default": take,
    "aten.embedding.default": embedding,
    "aten.gather.default": gather,
    "aten.scatter.src": scatter,
    "aten.scatter.value": scatter,
    "aten.scatter.reduce": scatter,
    "aten.scatter.value_reduce": scatter,
    "aten.scatter_add.default": scatter_add,
    "aten.scatter_reduce.two": scatter_reduce,
}
