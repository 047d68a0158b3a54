"""Models of opsets before 7, said in opset 7, wherever that is the same computation.

What changed there: arithmetic of two operands broadcasts as NumPy does, and needs no attributes for it; operators for
inference need no ``is_test``; the slopes of PRelu lie along the last dimension, not the second.

    Add(x, y, broadcast=1, axis=0)   ->   t = Unsqueeze(y, axes=[1, 2]); Add(x, t)      x of three dimensions, y of one
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from dovetail.base.errors import UnsupportedError
from dovetail.frontends.onnx.definitions import definition_of
from dovetail.frontends.onnx.model import Attribute, OnnxModel, OnnxNode
from dovetail.frontends.onnx.scopes import describe, graphs_of

OLDEST = 7
_BROADCASTING = ("Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor", "Equal", "Greater", "Less")


def upgrade(model: OnnxModel) -> OnnxModel:
    """``model`` in opset 7 if it is older, itself otherwise."""
    if not 0 < model.opset < OLDEST:
        return model
    ranks = {name: len(tensor.shape) for name, tensor in model.graph.initializers.items()}
    ranks |= {value.name: len(value.shape) for value in model.graph.inputs if value.shape is not None}
    names = {*ranks, *(name for node in model.graph.nodes for name in node.outputs)}
    work = _Upgrade(model.opset, ranks, names)
    nodes = tuple(new for node in model.graph.nodes for new in work.nodes(node))
    return replace(model, opsets={**model.opsets, "": OLDEST}, graph=replace(model.graph, nodes=nodes))


@dataclass(slots=True)
class _Upgrade:
    """``ranks`` of values where they are known; ``names`` that are taken."""

    opset: int
    ranks: Mapping[str, int]
    names: set[str]
    made: list[OnnxNode] = field(default_factory=list)

    def nodes(self, node: OnnxNode) -> tuple[OnnxNode, ...]:
        """What stands for ``node`` in opset 7."""
        if node.domain:
            return (node,)
        if next(graphs_of(node), None) is not None:
            raise self.refusal(node, "a graph inside it is not looked at")
        self.made = []
        change = _CHANGES.get(node.op)
        if change is not None:
            node = change(self, node)
        elif definition_of(node.domain, node.op, self.opset) != definition_of(node.domain, node.op, OLDEST):
            raise self.refusal(node, "it has another meaning since")
        return (*self.made, node)

    def refusal(self, node: OnnxNode, why: str) -> UnsupportedError:
        return UnsupportedError(
            f"operator {node.op} of opset {self.opset}", why, where=describe(node), hint="export with opset 7 or newer"
        )

    def spread(self, node: OnnxNode, axis: int) -> OnnxNode:
        """The second operand of ``node`` begins at dimension ``axis`` of the first."""
        one, two = (self.ranks.get(name) for name in node.inputs)
        if two == 0:
            return node
        if one is None or two is None or not 0 <= axis <= one - two:
            raise self.refusal(node, f"how an operand is broadcast from dimension {axis} is not known")
        behind = one - two - axis
        if not behind:
            return node
        name = self._new(node.outputs[0])
        axes = tuple(range(two, two + behind))
        self.made.append(OnnxNode("Unsqueeze", "", node.inputs[1:], (name,), {"axes": axes}))
        return replace(node, inputs=(node.inputs[0], name))

    def _new(self, base: str) -> str:
        name = f"{base}/spread"
        while name in self.names:
            name += "'"
        self.names.add(name)
        return name


def _without(node: OnnxNode, *names: str) -> OnnxNode:
    kept: dict[str, Attribute] = {name: value for name, value in node.attributes.items() if name not in names}
    return replace(node, attributes=kept)


def _broadcast(work: _Upgrade, node: OnnxNode) -> OnnxNode:
    axis = node.attributes.get("axis")
    plain = _without(node, "axis", "broadcast", "consumed_inputs")
    if not node.attributes.get("broadcast", 0):
        return plain
    return work.spread(plain, axis) if isinstance(axis, int) else plain


def _inference(work: _Upgrade, node: OnnxNode) -> OnnxNode:
    if node.attributes.get("is_test", 0) != 1:
        raise work.refusal(node, "it is meant for training")
    return _without(node, "is_test", "consumed_inputs")


def _slopes(work: _Upgrade, node: OnnxNode) -> OnnxNode:
    return work.spread(_without(node, "consumed_inputs"), 1)


def _scales(work: _Upgrade, node: OnnxNode) -> OnnxNode:
    height, width = node.attributes["height_scale"], node.attributes["width_scale"]
    if not isinstance(height, float) or not isinstance(width, float):
        raise work.refusal(node, "its scales are not numbers")
    plain = _without(node, "height_scale", "width_scale")
    return replace(plain, attributes={**plain.attributes, "scales": (1.0, 1.0, height, width)})


_CHANGES: Mapping[str, Callable[[_Upgrade, OnnxNode], OnnxNode]] = {
    **dict.fromkeys(_BROADCASTING, _broadcast),
    "BatchNormalization": _inference,
    "Dropout": _inference,
    "Gemm": lambda work, node: _without(node, "broadcast"),
    "PRelu": _slopes,
    "Upsample": _scales,
    "AveragePool": lambda work, node: node,
    **{op: (lambda work, node: _without(node, "output_sequence")) for op in ("RNN", "LSTM", "GRU")},
}
