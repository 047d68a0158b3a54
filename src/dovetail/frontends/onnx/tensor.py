"""Tensors of a file as arrays: counts and lengths are checked in Python's integers before any array is made."""

from __future__ import annotations

import math

import numpy as np
from onnx import SparseTensorProto, TensorProto

from dovetail.base.errors import ModelError, UnsupportedError
from dovetail.frontends.onnx.elements import BOOL, ELEMENTS, STRING, Element
from dovetail.frontends.onnx.model import Array, OnnxSparseTensor, OnnxTensor
from dovetail.frontends.onnx.reading import Place, Reading

_TYPED_FIELDS = ("float_data", "int32_data", "string_data", "int64_data", "double_data", "uint64_data")
Buffer = bytes | memoryview


def read_tensor(proto: TensorProto, reading: Reading, parent: Place) -> OnnxTensor:
    """A tensor with its values, wherever they lie."""
    place = parent.inside("tensor", reading.text(proto.name, "name of a tensor", parent))
    element = ELEMENTS.get(proto.data_type)
    if element is None:
        raise UnsupportedError(f"element type {proto.data_type}", "ONNX has no such type", where=str(place))
    shape = read_dims(proto.dims, reading, place)
    elements = math.prod(shape)
    reading.within("tensor_bytes", element.memory_bytes(elements), place)
    reading.spend("constant_bytes", element.memory_bytes(elements), place)
    values = _values(proto, element, elements, reading, place).reshape(shape)
    values.flags.writeable = False
    return OnnxTensor(proto.name, element.code, values)


def read_dims(dims: list[int], reading: Reading, place: Place) -> tuple[int, ...]:
    """Extents, each within the limit, whose product is too even where one of them is zero."""
    reading.within("rank", len(dims), place)
    for extent in dims:
        if extent < 0:
            raise ModelError(f"a dimension has the extent {extent}", where=str(place))
        reading.within("extent", extent, place)
    reading.within("tensor_bytes", math.prod(max(1, extent) for extent in dims), place)
    return tuple(dims)


def read_sparse(proto: SparseTensorProto, reading: Reading, parent: Place) -> OnnxSparseTensor:
    """A sparse tensor: values are a vector, indices lie inside, in ascending order, none twice."""
    place = parent.inside("sparse tensor", reading.text(proto.values.name, "name of a tensor", parent))
    values = read_tensor(proto.values, reading, place.inside("values"))
    indices = read_tensor(proto.indices, reading, place.inside("indices"))
    shape = read_dims(proto.dims, reading, place)
    if not shape or any(extent == 0 for extent in shape):
        raise ModelError("a sparse tensor has no elements", where=str(place), why=f"its shape is {shape}")
    dense_bytes = values.element.memory_bytes(math.prod(shape))
    reading.within("folded_bytes", dense_bytes, place)
    reading.spend("constant_bytes", dense_bytes, place)
    if len(values.shape) != 1:
        raise ModelError(f"the values of a sparse tensor are no list: their shape is {values.shape}", where=str(place))
    count = values.shape[0]
    if indices.element.name != "int64" or indices.shape not in ((count,), (count, len(shape))):
        raise ModelError(
            f"the indices of a sparse tensor do not fit its {count} values",
            where=str(place),
            why=f"they are {indices.element.name}{list(indices.shape)}",
            hint=f"int64[{count}] or int64[{count}, {len(shape)}]",
        )
    _check_indices(indices.array(), shape, place)
    return OnnxSparseTensor(values.name, values, indices, shape)


def _check_indices(indices: Array, shape: tuple[int, ...], place: Place) -> None:
    bounds = np.array([math.prod(shape)] if indices.ndim == 1 else shape, np.int64)
    columns = indices.reshape(len(indices), len(bounds)).astype(np.int64)
    if columns.size and (np.any(columns < 0) or np.any(columns >= bounds)):
        raise ModelError("an index of a sparse tensor lies outside of it", where=str(place))
    steps = np.array([math.prod(bounds[at + 1 :].tolist()) for at in range(len(bounds))], np.int64)
    linear = columns @ steps
    if np.any(linear[1:] <= linear[:-1]):
        raise ModelError("the indices of a sparse tensor are not in ascending order", where=str(place))


def _values(proto: TensorProto, element: Element, elements: int, reading: Reading, place: Place) -> Array:
    """The elements as a vector."""
    if proto.HasField("segment"):
        raise UnsupportedError("a tensor in segments", "no program writes such files", where=str(place))
    filled = [field for field in _TYPED_FIELDS if len(getattr(proto, field))]
    raw = proto.raw_data  # a copy
    beside = proto.data_location == TensorProto.EXTERNAL
    if len(filled) + bool(raw) + beside > 1:
        raise ModelError("a tensor keeps its values in several places", where=str(place), why=", ".join(filled))
    if beside:
        return _from_raw(_external(proto, element, elements, reading, place), element, elements, place)
    if raw or (proto.HasField("raw_data") and element.bits):
        return _from_raw(raw, element, elements, place)
    if filled and filled[0] != element.field:
        raise ModelError(f"a tensor of {element.name} keeps its values in {filled[0]}", where=str(place))
    entries = getattr(proto, element.field)
    if len(entries) != element.entries(elements):
        raise ModelError(
            f"a tensor of {element.name} of shape {list(proto.dims)} needs {element.entries(elements)} entries of "
            f"{element.field} but has {len(entries)}",
            where=str(place),
        )
    return (
        _strings(entries, reading, place)
        if element.code == STRING
        else _from_entries(entries, element, elements, place)
    )


def _external(proto: TensorProto, element: Element, elements: int, reading: Reading, place: Place) -> Buffer:
    if element.code == STRING:
        raise ModelError("a tensor of strings has its data beside the file", where=str(place))
    if reading.external is None:
        raise ModelError(
            "a tensor has its data beside the file, but the model is not a file",
            where=str(place),
            hint="give the path of the model, or its directory",
        )
    entries: dict[str, str] = {}
    for entry in proto.external_data:
        key = reading.text(entry.key, "key of external data", place)
        if key in entries:
            raise ModelError("an entry of external data is given twice", where=str(place.inside("entry", key)))
        entries[key] = reading.text(entry.value, "value of external data", place)
    need = element.raw_bytes(elements)
    reading.spend("external_bytes", need, place)
    return reading.external.read(entries, need, str(place))


def _from_raw(raw: Buffer, element: Element, elements: int, place: Place) -> Array:
    if not element.bits:
        raise ModelError(f"a tensor of {element.name} cannot be raw bytes", where=str(place))
    if len(raw) != element.raw_bytes(elements):
        raise ModelError(
            f"a tensor of {elements} {element.name} needs {element.raw_bytes(elements)} raw bytes but has {len(raw)}",
            where=str(place),
        )
    if element.bits < 8:
        return _unpacked(np.frombuffer(raw, np.uint8), element, elements)
    if element.code == BOOL:
        _check_range(np.frombuffer(raw, np.uint8), 0, 1, element, place)
    array = np.frombuffer(raw, element.array.newbyteorder("<"))
    return array if array.flags.aligned else array.copy()


def _from_entries(entries: list[int], element: Element, elements: int, place: Place) -> Array:
    """Elements from the entries of a typed field: numbers, or bits as numbers."""
    wide = _FIELD_DTYPES[element.field]
    numbers = np.fromiter(entries, wide, len(entries))
    if wide.kind == "f":
        return numbers.view(element.array)
    if element.code == BOOL:
        _check_range(numbers, 0, 1, element, place)
        return numbers.astype(np.bool_)
    if element.storage != wide:
        bounds = np.iinfo(element.storage.name)
        _check_range(numbers, int(bounds.min), int(bounds.max), element, place)
    narrow = numbers.astype(element.storage)
    return _unpacked(narrow, element, elements) if element.packed > 1 else narrow.view(element.array)


_FIELD_DTYPES: dict[str, np.dtype[np.generic]] = {
    "float_data": np.dtype(np.float32),
    "double_data": np.dtype(np.float64),
    "int32_data": np.dtype(np.int32),
    "int64_data": np.dtype(np.int64),
    "uint64_data": np.dtype(np.uint64),
}


def _check_range(numbers: Array, low: int, high: int, element: Element, place: Place) -> None:
    if numbers.size and (int(numbers.min()) < low or int(numbers.max()) > high):
        raise ModelError(f"a number of a tensor is no {element.name}", where=str(place), why=f"not in {low}..{high}")


def _unpacked(packed: Array, element: Element, elements: int) -> Array:
    """Elements of less than a byte, low bits first, one byte each."""
    shifts = np.arange(0, 8, element.bits, dtype=np.uint8)
    mask = np.uint8((1 << element.bits) - 1)
    bits = ((packed.astype(np.uint8)[:, None] >> shifts) & mask).reshape(-1)[:elements]
    if element.array.name.startswith("int"):
        sign = np.uint8(1 << (element.bits - 1))
        return ((bits ^ sign).astype(np.int8) - sign.astype(np.int8)).astype(element.array)
    if element.array.name.startswith("uint"):
        return bits.astype(element.array)
    return bits.view(element.array)


def _strings(entries: list[bytes], reading: Reading, place: Place) -> Array:
    array = np.empty(len(entries), object)
    for at, entry in enumerate(entries):
        reading.spend("text_bytes", len(entry), place)
        try:
            array[at] = entry.decode()
        except UnicodeDecodeError:
            raise ModelError("a string of a tensor is not UTF-8 text", where=str(place)) from None
    return array
