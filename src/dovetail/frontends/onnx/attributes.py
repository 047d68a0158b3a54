"""Attributes of a node as plain values. A table says for each kind which field it is in and how it is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from onnx import AttributeProto, GraphProto

from dovetail.base.errors import ModelError
from dovetail.frontends.onnx.model import (
    Attribute,
    AttributeReference,
    OnnxGraph,
    OnnxSparseTensor,
    OnnxTensor,
    OnnxType,
)
from dovetail.frontends.onnx.reading import Place, Reading
from dovetail.frontends.onnx.tensor import read_sparse, read_tensor
from dovetail.frontends.onnx.types import read_type

ReadGraph = Callable[[GraphProto, Reading, Place, int], OnnxGraph]
"""What reads a graph that is an attribute, at a depth."""

_FIELDS = {
    AttributeProto.FLOAT: "f",
    AttributeProto.INT: "i",
    AttributeProto.STRING: "s",
    AttributeProto.TENSOR: "t",
    AttributeProto.GRAPH: "g",
    AttributeProto.SPARSE_TENSOR: "sparse_tensor",
    AttributeProto.TYPE_PROTO: "tp",
    AttributeProto.FLOATS: "floats",
    AttributeProto.INTS: "ints",
    AttributeProto.STRINGS: "strings",
    AttributeProto.TENSORS: "tensors",
    AttributeProto.GRAPHS: "graphs",
    AttributeProto.SPARSE_TENSORS: "sparse_tensors",
    AttributeProto.TYPE_PROTOS: "type_protos",
}
_SINGLE = ("f", "i", "s", "t", "g", "sparse_tensor", "tp")


def read_attributes(
    protos: list[AttributeProto], reading: Reading, place: Place, depth: int, graph: ReadGraph
) -> Mapping[str, Attribute]:
    """Attributes by name. ``graph`` reads those that are graphs, which lie at ``depth`` + 1."""
    reading.within("attributes", len(protos), place)
    found: dict[str, Attribute] = {}
    for proto in protos:
        name = reading.text(proto.name, "name of an attribute", place)
        here = place.inside("attribute", name)
        if not name:
            raise ModelError("an attribute has no name", where=str(place))
        if name in found:
            raise ModelError("an attribute is given twice", where=str(here))
        found[name] = _read_attribute(proto, reading, here, depth, graph)
    return found


def kind_name(code: int) -> str:
    """What messages and references call a kind of attribute: "int", "floats", "graph"."""
    return str(AttributeProto.AttributeType.Name(code)).lower()


def kind_of(value: Attribute) -> str:
    """The kind of a plain value; "nothing" for a list without entries, which may be of any."""
    if isinstance(value, AttributeReference):
        return value.kind
    if isinstance(value, tuple):
        return f"{kind_of(value[0])}s" if value else "nothing"
    return next((kind for kinds, kind in _KINDS if isinstance(value, kinds)), "type_proto")


_KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (int, "int"),
    (float, "float"),
    ((str, bytes), "string"),
    (OnnxTensor, "tensor"),
    (OnnxGraph, "graph"),
    (OnnxSparseTensor, "sparse_tensor"),
)


def _read_attribute(proto: AttributeProto, reading: Reading, place: Place, depth: int, graph: ReadGraph) -> Attribute:
    field = _FIELDS.get(proto.type)
    if field is None:
        raise ModelError("an attribute has no type", where=str(place))
    stated = {described.name for described, _ in proto.ListFields()}
    filled = [f for f in _FIELDS.values() if f in stated]
    if proto.ref_attr_name:
        if filled:
            raise ModelError("an attribute has a value and stands for another one", where=str(place))
        name = reading.text(proto.ref_attr_name, "name of an attribute", place)
        return AttributeReference(name, kind_name(proto.type))
    if any(f != field for f in filled):
        raise ModelError(f"an attribute of type {kind_name(proto.type)} has a value in '{filled[0]}'", where=str(place))
    if field in ("t", "g", "sparse_tensor", "tp") and not filled:
        raise ModelError(f"an attribute of type {kind_name(proto.type)} has no value", where=str(place))
    value = getattr(proto, field)
    if field in _SINGLE:
        return _one(field, value, reading, place, depth, graph)
    reading.spend("list_length", len(value), place)
    if field in ("ints", "floats"):
        return tuple(value)
    single = field[:-1].replace("type_proto", "tp")
    return tuple(_one(_ALIASES.get(single, single), part, reading, place, depth, graph) for part in value)  # type: ignore[return-value]  # all are of one kind


_ALIASES = {"string": "s", "tensor": "t", "graph": "g"}


def _one(field: str, value: object, reading: Reading, place: Place, depth: int, graph: ReadGraph) -> Attribute:
    """One value of a kind."""
    if field == "s":
        return _text(value, reading, place)
    if field == "t":
        return read_tensor(value, reading, place)
    if field == "g":
        return graph(value, reading, place, depth + 1)
    if field == "sparse_tensor":
        return read_sparse(value, reading, place)
    if field == "tp":
        return _stated(read_type(value, reading, place), place)
    assert isinstance(value, int | float), field
    return value


def _text(value: object, reading: Reading, place: Place) -> str | bytes:
    assert isinstance(value, bytes)
    reading.spend("text_bytes", len(value), place)
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def _stated(type_: OnnxType | None, place: Place) -> OnnxType:
    if type_ is None:
        raise ModelError("an attribute is a type that says nothing", where=str(place))
    return type_
