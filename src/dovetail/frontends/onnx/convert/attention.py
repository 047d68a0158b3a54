"""Attention of ONNX as products, masks and softmax; heads of a group share keys and values by broadcasting.

q[b, k, g, l, d]  k[b, k, 1, s, d]  v[b, k, 1, s, e]  scores[b, k, g, l, s]     k heads of keys, g queries for each
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

from dovetail.base.dtypes import DTYPES
from dovetail.frontends.onnx.convert.attributes import integer, malformed, number, optional, required
from dovetail.frontends.onnx.convert.context import Context, Conversion, Operands, Results
from dovetail.frontends.onnx.convert.shape import padded
from dovetail.frontends.onnx.convert.steps import cast, dtype_of, need_rank, reshape, scalar_like, transpose, trimmed
from dovetail.frontends.onnx.model import OnnxNode


@dataclass(frozen=True, slots=True)
class Heads:
    """Extents that all of an attention's tensors are made of."""

    batch: int
    keys: int
    """Heads of keys and values."""
    group: int
    """Heads of queries for each of those."""
    queries: int
    """Steps of the queries."""
    steps: int
    """Steps of keys and values, those of the past included."""


def attention(context: Context, node: OnnxNode, operands: Operands) -> Results:
    given = required(node, operands, 3)
    flat = context.rank(given[0]) == 3
    heads = [integer(node, f"{name}_num_heads", None) for name in ("q", "kv", "kv")]
    q, k, v = (_split(context, node, name, count) for name, count in zip(given, heads, strict=True))
    past = optional(operands, 4)
    for name in (past, optional(operands, 5)):
        if name is not None:
            need_rank(node, context, name, 4, 4)
    before = 0 if past is None else context.shape(past)[2]
    k, v = (_continued(context, optional(operands, at), name) for at, name in ((4, k), (5, v)))
    batch, q_heads, queries, size = context.shape(q)
    _, k_heads, steps, _ = context.shape(k)
    if k_heads < 1 or size < 1 or q_heads % k_heads or context.shape(v)[2] != steps:
        raise malformed(node, f"{q_heads} heads of queries for {k_heads} of keys")
    shape = Heads(batch, k_heads, q_heads // k_heads, queries, steps)
    factor = number(node, "scale", None)
    scaled = context.node("mul", q, scalar_like(context, q, 1 / sqrt(size) if factor is None else factor))
    asked: dict[int, str] = {}
    weights = _weights(context, node, operands, scaled, k, shape, before, asked)
    y = _weighed(context, weights, v, shape)
    y = cast(context, y, context.dtype(given[0]))
    if flat:
        y = reshape(context, transpose(context, y, (0, 2, 1, 3)), (batch, queries, q_heads * context.shape(v)[3]))
    chosen = asked.get(integer(node, "qk_matmul_output_mode", 0), weights)
    shown = cast(context, reshape(context, chosen, (batch, q_heads, queries, steps)), context.dtype(given[0]))
    return trimmed(node, (y, k, v, shown))


def rotary(context: Context, node: OnnxNode, operands: Operands) -> Results:
    x, cos, sin = required(node, operands, 3)
    need_rank(node, context, x, 3, 4)
    have = context.shape(x)
    places = optional(operands, 3)
    if places is not None:
        cos, sin = (context.node("gather", table, places, axis=0) for table in (cos, sin))
    if len(have) == 3:
        heads = integer(node, "num_heads", 0)
        if heads < 1 or have[2] % heads:
            raise malformed(node, f"{have[2]} elements are not {heads} heads")
        x = reshape(context, x, (*have[:2], heads, have[2] // heads))
    settings = {"steps_axis": 1 if len(have) == 3 else 2, "interleaved": integer(node, "interleaved", 0)}
    return (reshape(context, context.node("rotary", x, cos, sin, **settings), have),)


def _weights(
    context: Context,
    node: OnnxNode,
    operands: Operands,
    q: str,
    k: str,
    shape: Heads,
    before: int,
    asked: dict[int, str],
) -> str:
    """How much each query takes of each value; ``asked`` gets what the scores are on the way."""
    left = reshape(context, q, (shape.batch, shape.keys, shape.group, *context.shape(q)[2:]))
    right = reshape(context, k, (shape.batch, shape.keys, 1, *context.shape(k)[2:]))
    scores = asked[0] = context.node("matmul", left, cast(context, right, context.dtype(left)), transpose_b=1)
    mask = optional(operands, 3)
    if mask is not None:
        need_rank(node, context, mask, 1, 4)
        scores = _masked(context, scores, mask, shape)
    if integer(node, "is_causal", 0):
        scores = context.node("mask_causal", scores, past=before)
    lengths = optional(operands, 6)
    if lengths is not None:
        scores = context.node("mask_lengths", scores, lengths)
    asked[1] = scores
    cap = number(node, "softcap", 0.0)
    if cap > 0:
        bound = scalar_like(context, scores, cap)
        scores = context.node("mul", context.node("tanh", context.node("div", scores, bound)), bound)
    asked[2] = scores
    precision = integer(node, "softmax_precision", 0)
    if precision:
        scores = cast(context, scores, dtype_of(node, precision))
    return context.node("softmax", scores, axis=-1)


def _weighed(context: Context, weights: str, v: str, shape: Heads) -> str:
    """Values by their weights, with all heads of queries on one axis."""
    size = context.shape(v)[3]
    values = reshape(context, v, (shape.batch, shape.keys, 1, shape.steps, size))
    found = context.node("matmul", weights, cast(context, values, context.dtype(weights)))
    return reshape(context, found, (shape.batch, shape.keys * shape.group, shape.queries, size))


def _masked(context: Context, scores: str, mask: str, shape: Heads) -> str:
    """A mask of truths keeps scores, one of numbers is added; where it is too short, nothing is kept."""
    missing = shape.steps - context.shape(mask)[-1]
    truths = context.dtype(mask) == DTYPES["bool"]
    if missing > 0:
        pads = (*(0,) * (2 * context.rank(mask) - 1), missing)
        mask = padded(context, mask, pads, value=0.0 if truths else float("-inf"))
    have = context.shape(mask)
    if len(have) > 2:
        outer = (1,) * (4 - len(have)) + have[:-2]
        heads = (shape.keys, shape.group) if outer[1] == shape.keys * shape.group else (outer[1], 1)
        mask = reshape(context, mask, (outer[0], *heads, *have[-2:]))
    if not truths:
        return context.node("add", scores, cast(context, mask, context.dtype(scores)))
    nothing = scalar_like(context, scores, float("-inf"))
    return context.node("select", mask, scores, nothing)


def _split(context: Context, node: OnnxNode, x: str, heads: int | None) -> str:
    """``x[b, head, step, i]``."""
    if context.rank(x) == 4:
        return x
    if context.rank(x) != 3 or not heads or context.shape(x)[2] % heads:
        raise malformed(node, f"{context.type(x)} cannot be split into {heads} heads")
    batch, steps, size = context.shape(x)
    return transpose(context, reshape(context, x, (batch, steps, heads, size // heads)), (0, 2, 1, 3))


def _continued(context: Context, past: str | None, x: str) -> str:
    return x if past is None else context.node("concat", past, x, axis=2)


CONVERSIONS: dict[tuple[str, str], Conversion] = {("", "Attention"): attention, ("", "RotaryEmbedding"): rotary}
