"""Graphs, nodes and functions of a file as plain data."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping

from onnx import FunctionProto, GraphProto, NodeProto, OperatorSetIdProto

from dovetail.base.errors import ModelError
from dovetail.frontends.onnx.attributes import read_attributes
from dovetail.frontends.onnx.model import OnnxFunction, OnnxGraph, OnnxNode, OnnxSparseTensor, OnnxTensor, OnnxValue
from dovetail.frontends.onnx.reading import Place, Reading
from dovetail.frontends.onnx.tensor import read_sparse, read_tensor
from dovetail.frontends.onnx.types import read_value


def read_graph(proto: GraphProto, reading: Reading, parent: Place, depth: int = 0) -> OnnxGraph:
    """A graph, its nodes in the order of the file."""
    place = parent.inside("graph", reading.text(proto.name, "name of a graph", parent))
    reading.within("depth", depth, place)
    return OnnxGraph(
        proto.name,
        tuple(read_value(value, reading, place.inside("inputs")) for value in proto.input),
        tuple(read_value(value, reading, place.inside("outputs")) for value in proto.output),
        _initializers(proto, reading, place),
        _nodes(proto.node, reading, place, depth),
        _by_name([read_value(value, reading, place) for value in proto.value_info]),
    )


def read_function(proto: FunctionProto, reading: Reading, parent: Place) -> OnnxFunction:
    """A function, its nodes in the order of the file."""
    name = reading.text(proto.name, "name of a function", parent)
    place = parent.inside("function", name)
    domain = read_domain(proto.domain, reading, place)
    attributes = tuple(reading.text(word, "name of an attribute", place) for word in proto.attribute)
    defaults = read_attributes(proto.attribute_proto, reading, place, 0, read_graph)
    if not name or len({*attributes, *defaults}) != len(attributes) + len(defaults):
        raise ModelError("a function has no name, or an attribute twice", where=str(place))
    return OnnxFunction(
        name,
        domain,
        reading.text(proto.overload, "overload", place),
        tuple(reading.text(word, "name of a value", place) for word in proto.input),
        tuple(reading.text(word, "name of a value", place) for word in proto.output),
        attributes,
        defaults,
        _nodes(proto.node, reading, place, 0),
        read_opsets(proto.opset_import, reading, place),
    )


def read_opsets(protos: list[OperatorSetIdProto], reading: Reading, place: Place) -> Mapping[str, int]:
    """The version of each domain."""
    opsets: dict[str, int] = {}
    for proto in protos:
        domain = read_domain(proto.domain, reading, place)
        if opsets.setdefault(domain, proto.version) != proto.version:
            raise ModelError(
                "a domain of operators is imported in two versions", where=str(place.inside("domain", domain))
            )
    return opsets


def read_domain(word: str, reading: Reading, place: Place) -> str:
    """A domain of operators; "" is ai.onnx."""
    domain = reading.text(word, "domain", place)
    return "" if domain == "ai.onnx" else domain


def _initializers(proto: GraphProto, reading: Reading, place: Place) -> Mapping[str, OnnxTensor | OnnxSparseTensor]:
    found: dict[str, OnnxTensor | OnnxSparseTensor] = {}
    inside = place.inside("initializers")
    tensors = (read_tensor(tensor, reading, inside) for tensor in proto.initializer)
    sparse = (read_sparse(tensor, reading, inside) for tensor in proto.sparse_initializer)
    everything: Iterable[OnnxTensor | OnnxSparseTensor] = itertools.chain(tensors, sparse)
    for tensor in everything:
        if not tensor.name or tensor.name in found:
            raise ModelError(
                "an initializer has no name, or that of another", where=str(inside.inside("tensor", tensor.name))
            )
        found[tensor.name] = tensor
    return found


def _nodes(protos: list[NodeProto], reading: Reading, place: Place, depth: int) -> tuple[OnnxNode, ...]:
    reading.spend("nodes", len(protos), place)
    return tuple(_node(proto, at, reading, place, depth) for at, proto in enumerate(protos))


def _node(proto: NodeProto, at: int, reading: Reading, parent: Place, depth: int) -> OnnxNode:
    op = reading.text(proto.op_type, "operator", parent)
    place = parent.inside(f"node {at}", op)
    reading.within("node_values", max(len(proto.input), len(proto.output)), place)
    if not op:
        raise ModelError("a node has no operator", where=str(place))
    return OnnxNode(
        op,
        read_domain(proto.domain, reading, place),
        tuple(reading.text(word, "name of an input", place) for word in proto.input),
        tuple(reading.text(word, "name of an output", place) for word in proto.output),
        read_attributes(proto.attribute, reading, place, depth, read_graph),
        reading.text(proto.name, "name of a node", place),
        reading.text(proto.overload, "overload", place),
    )


def _by_name(values: list[OnnxValue]) -> Mapping[str, OnnxValue]:
    return {value.name: value for value in values}
