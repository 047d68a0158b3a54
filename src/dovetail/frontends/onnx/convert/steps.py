"""Steps that many conversions take: numbers of an operand, a value under another shape, dtype or order of axes."""

from __future__ import annotations

from math import prod

import numpy as np

from dovetail.base.dtypes import DTYPES, DType
from dovetail.base.errors import LimitError
from dovetail.frontends.onnx.convert.attributes import integers, malformed, optional, unsupported
from dovetail.frontends.onnx.convert.context import Context, Conversion, Operands, Results
from dovetail.frontends.onnx.elements import ELEMENTS
from dovetail.frontends.onnx.model import OnnxNode
from dovetail.ir.graph.graph import SmallTensor

_NAMES = {"float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16", "bool": "bool"}
_NAMES |= {f"int{n}": f"i{n}" for n in (8, 16, 32, 64)} | {f"uint{n}": f"u{n}" for n in (8, 16, 32, 64)}


def dtype_of(node: OnnxNode, code: int) -> DType:
    """The dtype of an element type's number in a file."""
    name = ELEMENTS[code].name if code in ELEMENTS else str(code)
    if name not in _NAMES:
        raise unsupported(node, f"programs have no elements of {name}")
    return DTYPES[_NAMES[name]]


def need_computable(node: OnnxNode, context: Context, *names: str | None) -> None:
    """Refuse operands that no machine has arithmetic for."""
    for name in names:
        if name is not None and context.dtype(name).name not in _NAMES.values():
            raise unsupported(node, f"nothing is computed from elements of {context.dtype(name)}")


def need_rank(node: OnnxNode, context: Context, x: str, least: int, most: int | None = None) -> None:
    """Refuse a value of another number of axes."""
    rank = context.rank(x)
    if rank < least or (most is not None and rank > most):
        wanted = f"at least {least}" if most is None else str(least) if least == most else f"{least} to {most}"
        raise malformed(node, f"an operand has {rank} axes, not {wanted}")


def need_few(node: OnnxNode, context: Context, elements: int) -> None:
    """Refuse a table of so many numbers that it should not be made while a model is read."""
    if not 0 <= elements * 8 <= context.limits.folded_bytes:
        limit = context.limits.folded_bytes
        raise LimitError(f"{node.op} needs a table of {elements} numbers", why=f"the limit is {limit} bytes")


def one(node: OnnxNode, context: Context, name: str) -> int:
    """An operand that is one whole number."""
    found = context.ints(name)
    if len(found) != 1:
        raise malformed(node, f"an operand has {len(found)} elements, not one")
    return found[0]


def one_number(node: OnnxNode, context: Context, name: str) -> float:
    """An operand that is one number."""
    found = context.known(name)
    if found.size != 1:
        raise malformed(node, f"an operand has {found.size} elements, not one")
    return float(found.astype(np.float64).reshape(()))


def extents(node: OnnxNode, context: Context, name: str) -> tuple[int, ...]:
    """An operand that is a shape."""
    found = context.ints(name)
    if len(found) > context.limits.rank:
        raise LimitError(f"{node.op} makes {len(found)} axes", why=f"the limit is {context.limits.rank}")
    return found


def cast(context: Context, x: str, dtype: DType) -> str:
    """x as another dtype."""
    return x if context.dtype(x) == dtype else context.node("cast", x, dtype=dtype.name)


def reshape(context: Context, x: str, shape: tuple[int, ...]) -> str:
    """x under another shape of as many elements."""
    if context.shape(x) == shape:
        return x
    return context.node("reshape", x, shape=shape, **({"allow_zero": 1} if 0 in shape else {}))


def transpose(context: Context, x: str, perm: tuple[int, ...]) -> str:
    return x if perm == tuple(range(len(perm))) else context.node("transpose", x, perm=perm)


def full(context: Context, shape: tuple[int, ...], value: float, dtype: DType) -> str:
    """One value everywhere."""
    return context.node("full", shape=shape, value=SmallTensor(dtype, (), (_plain(value, dtype),)))


def scalar_like(context: Context, x: str, value: float) -> str:
    """A number of x's dtype."""
    return context.scalar(value, context.dtype(x))


def listed(context: Context, node: OnnxNode, operands: Operands, name: str, at: int) -> tuple[int, ...] | None:
    """Numbers that are the attribute ``name`` in old opsets and operand ``at`` in new ones; None if there are none."""
    given = optional(operands, at)
    return integers(node, name, None) if given is None else context.ints(given)


def rows(context: Context, x: str, axis: int) -> tuple[str, tuple[int, ...]]:
    """x as two axes, those before ``axis`` and those from it on, and the shape it had."""
    shape = context.shape(x)
    at = min(max(axis + len(shape) if axis < 0 else axis, 0), len(shape))
    return reshape(context, x, (prod(shape[:at]), prod(shape[at:]))), shape


def trimmed(node: OnnxNode, results: Results) -> Results:
    """As many results as the node names."""
    return results[: max(1, len(node.outputs))]


def plain(op: str, count: int) -> Conversion:
    """A conversion to one operator with the same operands and no attributes."""

    def convert(context: Context, node: OnnxNode, operands: Operands) -> Results:
        given = tuple(name for name in operands[:count] if name is not None)
        need_computable(node, context, *given)
        return (context.node(op, *given),)

    return convert


def _plain(value: float, dtype: DType) -> int | float:
    return float(value) if dtype.is_float else int(np.asarray(value).astype(dtype.numpy))
