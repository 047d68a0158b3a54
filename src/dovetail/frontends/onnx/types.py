"""Types of values as a file states them."""

from __future__ import annotations

from onnx import TensorShapeProto, TypeProto, ValueInfoProto

from dovetail.base.errors import ModelError, UnsupportedError
from dovetail.frontends.onnx.elements import ELEMENTS, STRING
from dovetail.frontends.onnx.model import (
    MapType,
    OnnxType,
    OnnxValue,
    OptionalType,
    SequenceType,
    Shape,
    SparseTensorType,
    TensorType,
)
from dovetail.frontends.onnx.reading import Place, Reading


def read_value(proto: ValueInfoProto, reading: Reading, parent: Place) -> OnnxValue:
    """A named value and what is said of its type."""
    name = reading.text(proto.name, "name of a value", parent)
    if not name:
        raise ModelError("a value has no name", where=str(parent))
    place = parent.inside("value", name)
    return OnnxValue(name, read_type(proto.type, reading, place) if proto.HasField("type") else None)


def read_type(proto: TypeProto, reading: Reading, place: Place, depth: int = 1) -> OnnxType | None:
    """A type; None where nothing is said."""
    reading.within("depth", depth, place)
    kind = proto.WhichOneof("value")
    if kind is None:
        return None
    part = getattr(proto, kind)
    if kind == "tensor_type":
        return TensorType(_elem_type(part.elem_type, place), _shape(part, reading, place))
    if kind == "sparse_tensor_type":
        return SparseTensorType(_elem_type(part.elem_type, place), _shape(part, reading, place))
    if kind == "sequence_type":
        return SequenceType(read_type(part.elem_type, reading, place, depth + 1))
    if kind == "optional_type":
        return OptionalType(read_type(part.elem_type, reading, place, depth + 1))
    if kind == "map_type":
        return MapType(_key_type(part.key_type, place), read_type(part.value_type, reading, place, depth + 1))
    raise UnsupportedError(f"type {kind}", "its values cannot be read or made", where=str(place))


def _elem_type(code: int, place: Place) -> int:
    if code and code not in ELEMENTS:
        raise UnsupportedError(f"element type {code}", "ONNX has no such type", where=str(place))
    return code


def _key_type(code: int, place: Place) -> int:
    if code != STRING and (code not in ELEMENTS or ELEMENTS[code].array.kind not in "iu" or ELEMENTS[code].bits < 8):
        raise ModelError("the keys of a map are neither integers nor strings", where=str(place))
    return code


def _shape(proto: TypeProto.Tensor, reading: Reading, place: Place) -> Shape | None:
    if not proto.HasField("shape"):
        return None
    reading.within("rank", len(proto.shape.dim), place)
    return tuple(_extent(dim, reading, place) for dim in proto.shape.dim)


def _extent(dim: TensorShapeProto.Dimension, reading: Reading, place: Place) -> int | str | None:
    kind = dim.WhichOneof("value")
    if kind == "dim_value":
        if dim.dim_value < 0:  # some exporters write -1 for what is not known
            return None
        reading.within("extent", dim.dim_value, place)
        return int(dim.dim_value)
    if kind == "dim_param":
        return reading.text(dim.dim_param, "name of an extent", place) or None
    return None
