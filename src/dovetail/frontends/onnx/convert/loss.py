"""Losses of ONNX."""

from __future__ import annotations

from dovetail.frontends.onnx.convert.attributes import integer, optional, required, text
from dovetail.frontends.onnx.convert.context import Context, Conversion, Operands, Results
from dovetail.frontends.onnx.convert.steps import trimmed
from dovetail.frontends.onnx.model import OnnxNode
from dovetail.ir.graph.graph import Attribute


def nll_loss(context: Context, node: OnnxNode, operands: Operands) -> Results:
    (x,) = required(node, operands, 1)
    return (_loss(context, node, operands, x),)


def softmax_cross_entropy(context: Context, node: OnnxNode, operands: Operands) -> Results:
    (x,) = required(node, operands, 1)
    scores = context.node("log_softmax", x, axis=1)
    return trimmed(node, (_loss(context, node, operands, scores), scores))


def _loss(context: Context, node: OnnxNode, operands: Operands, scores: str) -> str:
    _, target = required(node, operands, 2)
    weight = optional(operands, 2)
    settings: dict[str, Attribute] = {"reduction": text(node, "reduction", "mean")}
    ignored = integer(node, "ignore_index", None)
    if ignored is not None:
        settings["ignore"] = ignored
    given = (scores, target) if weight is None else (scores, target, weight)
    return context.node("nll_loss", *given, **settings)


CONVERSIONS: dict[tuple[str, str], Conversion] = {
    ("", "NegativeLogLikelihoodLoss"): nll_loss,
    ("", "SoftmaxCrossEntropyLoss"): softmax_cross_entropy,
}
