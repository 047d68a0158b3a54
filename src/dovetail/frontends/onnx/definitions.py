"""What ONNX says of each operator: how many inputs and outputs, which attributes of which kinds, since which opset.

The table is what the onnx package has registered; nothing of a file goes into native code to look it up.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass

from onnx import defs

from dovetail.base.errors import ModelError, UnsupportedError
from dovetail.base.suggest import closest
from dovetail.base.words import printable
from dovetail.frontends.onnx.attributes import kind_name, kind_of
from dovetail.frontends.onnx.bodies import check_bodies
from dovetail.frontends.onnx.model import OnnxNode

SUPPORTED: Mapping[str, tuple[int, int]] = {"": (1, 26), "ai.onnx.ml": (1, 5), "ai.onnx.preview.training": (1, 1)}
"""Oldest and newest opset of each domain that ONNX itself defines."""


@dataclass(frozen=True, slots=True)
class Definition:
    """One operator since one opset.

    ``inputs`` and ``outputs`` are the fewest and the most; ``needed`` says of each input (the last entry of all further
    ones) that it cannot be left out; ``kinds`` of each attribute what it is.
    """

    since: int
    inputs: tuple[int, int]
    outputs: tuple[int, int]
    needed: tuple[bool, ...]
    kinds: Mapping[str, str]
    required: tuple[str, ...]
    removed: bool


def check_node(node: OnnxNode, opset: int, where: str) -> None:
    """Refuse a node of one of ONNX's own domains that does not fit its operator's definition in ``opset``."""
    definition = _definition(node, opset, where)
    for what, names, (least, most) in (
        ("inputs", node.inputs, definition.inputs),
        ("outputs", node.outputs, definition.outputs),
    ):
        if not least <= len(names) <= most:
            expected = f"{least}" if least == most else f"{least} to {most}" if most < 1 << 20 else f"{least} or more"
            raise ModelError(f"{node.op} has {len(names)} {what}, not {expected}", where=where)
    for at, name in enumerate(node.inputs):
        if not name and definition.needed[min(at, len(definition.needed) - 1)]:
            raise ModelError(f"input {at} of {node.op} is left out, which it cannot be", where=where)
    _check_attributes(node, definition, where)
    check_bodies(node, opset, where)


def definition_of(domain: str, op: str, opset: int) -> Definition | None:
    """What an operator is in ``opset``; None before it was one."""
    return next((d for d in reversed(definitions().get((domain, op), ())) if d.since <= opset), None)


def _definition(node: OnnxNode, opset: int, where: str) -> Definition:
    title = f"{node.domain or 'ai.onnx'} opset {opset}"
    found = definition_of(node.domain, node.op, opset)
    if found is None:
        raise UnsupportedError(f"operator {printable(node.op)}", f"{title} has no such operator", where=where)
    if found.removed:
        raise UnsupportedError(f"operator {node.op}", f"it is no longer part of {title}", where=where)
    return found


def _check_attributes(node: OnnxNode, definition: Definition, where: str) -> None:
    for name, value in node.attributes.items():
        if name not in definition.kinds:
            raise ModelError(
                f"{node.op} has no attribute '{printable(name)}'", where=where, hint=_hint(name, definition)
            )
        expected = definition.kinds[name]
        if kind_of(value) not in (expected, "nothing" if expected.endswith("s") else expected):
            raise ModelError(f"attribute '{name}' of {node.op} is not of type {expected}", where=where)
    for name in definition.required:
        if name not in node.attributes:
            raise ModelError(f"{node.op} needs an attribute '{name}'", where=where)


def _hint(name: str, definition: Definition) -> str:
    return closest(name[:64], definition.kinds) if definition.kinds else "it has none"


@functools.cache
def definitions() -> Mapping[tuple[str, str], tuple[Definition, ...]]:
    """Every operator by domain and name, its definitions from oldest to newest."""
    found: dict[tuple[str, str], list[Definition]] = {}
    for schema in sorted(defs.get_all_schemas_with_history(), key=lambda schema: schema.since_version):
        definition = Definition(
            schema.since_version,
            (schema.min_input, schema.max_input),
            (schema.min_output, schema.max_output),
            tuple(given.option != defs.OpSchema.FormalParameterOption.Optional for given in schema.inputs),
            {name: kind_name(int(attribute.type)) for name, attribute in schema.attributes.items()},
            tuple(name for name, attribute in schema.attributes.items() if attribute.required),
            schema.deprecated,
        )
        found.setdefault((schema.domain, schema.name), []).append(definition)
    return {key: tuple(versions) for key, versions in found.items()}
