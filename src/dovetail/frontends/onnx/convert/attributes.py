"""Operands and attributes of an ONNX node, each of its kind; a node that lacks one is refused by name."""

from __future__ import annotations

from typing import TypeVar

from dovetail.base.errors import ModelError, UnsupportedError
from dovetail.base.words import printable
from dovetail.frontends.onnx.model import Attribute, OnnxGraph, OnnxNode, OnnxTensor

Default = TypeVar("Default")


def place(node: OnnxNode) -> str:
    """Where a message points to."""
    called = f" '{printable(node.name)}'" if node.name else ""
    return f"node{called}: {printable(title(node))}({printable(', '.join(node.inputs))})"


def title(node: OnnxNode) -> str:
    """``Relu``, or ``ai.onnx.ml.Scaler``."""
    return f"{node.domain}.{node.op}" if node.domain else node.op


def unsupported(node: OnnxNode, reason: str, hint: str | None = None) -> UnsupportedError:
    """``raise unsupported(node, "...")``: the node means something that is not there."""
    return UnsupportedError(printable(title(node)), reason, where=place(node), hint=hint)


def malformed(node: OnnxNode, what: str) -> ModelError:
    """``raise malformed(node, "...")``: the node means nothing."""
    return ModelError(f"{printable(title(node))}: {what}", where=place(node))


def required(node: OnnxNode, operands: tuple[str | None, ...], count: int) -> tuple[str, ...]:
    """The first ``count`` operands, which must be there."""
    found = tuple(name for name in operands[:count] if name is not None)
    if len(found) < count:
        raise malformed(node, f"it needs {count} inputs, {len(found)} are given")
    return found


def every(node: OnnxNode, operands: tuple[str | None, ...]) -> tuple[str, ...]:
    """All operands, of which none may be left out, of an operator that takes any number."""
    return required(node, operands, max(1, len(operands)))


def optional(operands: tuple[str | None, ...], at: int) -> str | None:
    """Operand ``at``, None where it is left out."""
    return operands[at] if at < len(operands) else None


def integer(node: OnnxNode, name: str, default: int | Default) -> int | Default:
    """A whole number; ``default`` may be None."""
    found = node.attributes.get(name)
    return default if found is None else _whole(node, name, found)


def number(node: OnnxNode, name: str, default: float | Default) -> float | Default:
    found = node.attributes.get(name)
    return default if found is None else _number(node, name, found)


def text(node: OnnxNode, name: str, default: str | Default) -> str | Default:
    found = node.attributes.get(name)
    return default if found is None else _text(node, name, found)


def integers(node: OnnxNode, name: str, default: tuple[int, ...] | Default) -> tuple[int, ...] | Default:
    found = node.attributes.get(name)
    return default if found is None else tuple(_whole(node, name, value) for value in _several(node, name, found))


def numbers(node: OnnxNode, name: str, default: tuple[float, ...] | Default) -> tuple[float, ...] | Default:
    found = node.attributes.get(name)
    return default if found is None else tuple(_number(node, name, value) for value in _several(node, name, found))


def texts(node: OnnxNode, name: str, default: tuple[str, ...] | Default) -> tuple[str, ...] | Default:
    found = node.attributes.get(name)
    return default if found is None else tuple(_text(node, name, value) for value in _several(node, name, found))


def tensor(node: OnnxNode, name: str) -> OnnxTensor | None:
    found = node.attributes.get(name)
    if found is not None and not isinstance(found, OnnxTensor):
        raise malformed(node, f"attribute '{name}' is not a tensor")
    return found


def body(node: OnnxNode, name: str) -> OnnxGraph:
    found = node.attributes.get(name)
    if not isinstance(found, OnnxGraph):
        raise malformed(node, f"attribute '{name}' must be a graph")
    return found


def _several(node: OnnxNode, name: str, found: Attribute) -> tuple[object, ...]:
    if not isinstance(found, tuple):
        raise malformed(node, f"attribute '{name}' is not a list")
    return found


def _whole(node: OnnxNode, name: str, found: object) -> int:
    if not isinstance(found, int):
        raise malformed(node, f"attribute '{name}' is not a whole number")
    return found


def _number(node: OnnxNode, name: str, found: object) -> float:
    if not isinstance(found, int | float):
        raise malformed(node, f"attribute '{name}' is not a number")
    return float(found)


def _text(node: OnnxNode, name: str, found: object) -> str:
    if isinstance(found, bytes):
        return found.decode("utf-8", "replace")
    if not isinstance(found, str):
        raise malformed(node, f"attribute '{name}' is not a text")
    return found
