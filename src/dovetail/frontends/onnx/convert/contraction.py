"""Products of matrices in ONNX."""

from __future__ import annotations

from dovetail.frontends.onnx.convert.attributes import every, integer, number, optional, required, text
from dovetail.frontends.onnx.convert.context import Context, Conversion, Operands, Results
from dovetail.frontends.onnx.convert.steps import reshape
from dovetail.frontends.onnx.model import OnnxNode
from dovetail.ops.einsum import parsed


def matmul(context: Context, node: OnnxNode, operands: Operands) -> Results:
    a, b = required(node, operands, 2)
    return (context.node("matmul", a, b),)


def gemm(context: Context, node: OnnxNode, operands: Operands) -> Results:
    """Whole numbers with factors that are not are multiplied as they stand only where the factors are whole."""
    a, b = required(node, operands, 2)
    c = optional(operands, 2)
    factors = {"alpha": number(node, "alpha", 1.0), "beta": number(node, "beta", 1.0)}
    turned = {"transpose_a": integer(node, "transA", 0), "transpose_b": integer(node, "transB", 0)}
    given = (a, b) if c is None else (a, b, c)
    return (context.node("gemm", *given, **factors, **turned),)


def einsum(context: Context, node: OnnxNode, operands: Operands) -> Results:
    """Two operands at a time, from the left; what no later one and no result needs is summed at once."""
    given = every(node, operands)
    terms, wanted = parsed(text(node, "equation", ""), [context.rank(name) for name in given])
    left, have = given[0], terms[0]
    if len(given) == 1:
        return (context.node("einsum", left, equation=f"{have}->{wanted}"),)
    for at in range(1, len(given)):
        later = "".join(terms[at + 1 :]) + wanted
        both = "".join(dict.fromkeys(have + terms[at]))
        kept = wanted if at == len(given) - 1 else "".join(c for c in both if c in later)
        left = context.node("einsum", left, given[at], equation=f"{have},{terms[at]}->{kept}")
        have = kept
    return (left,)


def matmul_integer(context: Context, node: OnnxNode, operands: Operands) -> Results:
    a, b = required(node, operands, 2)
    left = centred(context, a, optional(operands, 2), -2)
    right = centred(context, b, optional(operands, 3), -1)
    return (context.node("matmul", left, right),)


def centred(context: Context, x: str, zero: str | None, axis: int) -> str:
    """``x - zero`` as i32; one zero for all, or one for each index along ``axis``."""
    wide = context.node("cast", x, dtype="i32")
    if zero is None:
        return wide
    offset = context.node("cast", zero, dtype="i32")
    shape = context.shape(offset)
    if len(shape) == 1 and shape != (1,) and context.rank(x) > 1:
        at = axis % context.rank(x)
        offset = reshape(context, offset, tuple(shape[0] if d == at else 1 for d in range(context.rank(x))))
    elif shape == (1,):
        offset = reshape(context, offset, ())
    return context.node("sub", wide, offset)


CONVERSIONS: dict[tuple[str, str], Conversion] = {
    ("", "Einsum"): einsum,
    ("", "Gemm"): gemm,
    ("", "MatMul"): matmul,
    ("", "MatMulInteger"): matmul_integer,
}
