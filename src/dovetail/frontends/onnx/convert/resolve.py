"""Every structure there is, by (domain, operator): nodes of which nothing is left in the graph."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dovetail.frontends.onnx.convert import control, scans, sequences
from dovetail.frontends.onnx.convert.attributes import malformed
from dovetail.frontends.onnx.convert.structure import Entries, Scope, Structure, operand
from dovetail.frontends.onnx.entries import Array, Entry
from dovetail.frontends.onnx.inline import Work
from dovetail.frontends.onnx.model import Attribute, OnnxSparseTensor, OnnxTensor


def identity(scope: Scope, work: Work, operands: Entries) -> tuple[Entry, ...]:
    return (operand(work.node, operands, 0),)


def constant(scope: Scope, work: Work, operands: Entries) -> tuple[Entry, ...]:
    for name, value in work.node.attributes.items():
        if name in _CONSTANTS:
            return (scope.constant(_array(work, name, value)),)
    raise malformed(work.node, "it has no value")


def _array(work: Work, name: str, value: Attribute) -> Array:
    if isinstance(value, OnnxTensor | OnnxSparseTensor):
        return value.array()
    if not isinstance(value, int | float | str | bytes | tuple):
        raise malformed(work.node, f"attribute '{name}' is not a value")
    if name.startswith("value_string"):
        return np.array(_decoded(value), object)
    return np.array(value, np.int64 if name.startswith("value_int") else np.float32)


def _decoded(value: object) -> object:
    if isinstance(value, tuple):
        return [_decoded(item) for item in value]
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


_CONSTANTS = frozenset(
    ("value", "sparse_value", "value_int", "value_ints", "value_float", "value_floats", "value_string", "value_strings")
)

STRUCTURES: Mapping[tuple[str, str], Structure] = {
    ("", "Identity"): identity,
    ("", "Constant"): constant,
    **sequences.STRUCTURES,
    **control.STRUCTURES,
    **scans.STRUCTURES,
}
