"""Reductions of ONNX, the place of the largest, and running sums."""

from __future__ import annotations

from dovetail.base.dtypes import DTYPES
from dovetail.frontends.onnx.convert.attributes import integer, required
from dovetail.frontends.onnx.convert.context import Context, Conversion, Operands, Results
from dovetail.frontends.onnx.convert.steps import cast, listed, one
from dovetail.frontends.onnx.model import OnnxNode
from dovetail.ir.graph.graph import Attribute

_REDUCTIONS = {
    "ReduceL1": "reduce_l1",
    "ReduceL2": "reduce_l2",
    "ReduceLogSum": "reduce_log_sum",
    "ReduceLogSumExp": "reduce_log_sum_exp",
    "ReduceMax": "reduce_max",
    "ReduceMean": "reduce_mean",
    "ReduceMin": "reduce_min",
    "ReduceProd": "reduce_prod",
    "ReduceSum": "reduce_sum",
    "ReduceSumSquare": "reduce_sum_square",
}
_OF_FLOATS = ("reduce_l2", "reduce_log_sum", "reduce_log_sum_exp", "reduce_mean")


def argument(context: Context, node: OnnxNode, operands: Operands) -> Results:
    (x,) = required(node, operands, 1)
    settings = {"axis": integer(node, "axis", 0), "keepdims": integer(node, "keepdims", 1)}
    return (context.node(node.op.lower(), x, last=integer(node, "select_last_index", 0), **settings),)


def running(context: Context, node: OnnxNode, operands: Operands) -> Results:
    x, axis = required(node, operands, 2)
    settings = {name: integer(node, name, 0) for name in ("exclusive", "reverse")}
    return (context.node(node.op.lower(), x, axis=one(node, context, axis), **settings),)


def _reduction(op: str) -> Conversion:
    def convert(context: Context, node: OnnxNode, operands: Operands) -> Results:
        (x,) = required(node, operands, 1)
        axes = listed(context, node, operands, "axes", 1)
        if not axes and integer(node, "noop_with_empty_axes", 0):
            axes = ()
        elif not axes:
            axes = tuple(range(context.rank(x)))
        settings: dict[str, Attribute] = {"axes": axes, "keepdims": integer(node, "keepdims", 1)}
        dtype = context.dtype(x)
        if op in _OF_FLOATS and not dtype.is_float:
            found = context.node(op, cast(context, x, DTYPES["f64"]), **settings)
            return (cast(context, found, dtype),)
        return (context.node(op, x, **settings),)

    return convert


CONVERSIONS: dict[tuple[str, str], Conversion] = {
    **{("", name): _reduction(op) for name, op in _REDUCTIONS.items()},
    ("", "ArgMax"): argument,
    ("", "ArgMin"): argument,
    ("", "CumProd"): running,
    ("", "CumSum"): running,
}
