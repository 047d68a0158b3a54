"""Element types of ONNX: their numbers in a file, their names, and how their values lie in it.

A tensor keeps its values as raw bytes (little-endian, small elements packed low bits first), or as entries of a typed
field. ``ELEMENTS`` is the table; nothing else in the reader branches on an element type.
"""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np

STRING = 8
BOOL = 9


@dataclass(frozen=True, slots=True)
class Element:
    """``code`` is the number in a file, ``bits`` the width in raw bytes (0: never raw), ``array`` the dtype of arrays.

    ``field`` is the typed field; its entries are ``storage`` numbers, whose bits are an element or several packed ones.
    """

    code: int
    name: str
    bits: int
    array: np.dtype[np.generic]
    field: str
    storage: np.dtype[np.generic]

    @property
    def packed(self) -> int:
        """How many elements one byte holds."""
        return max(1, 8 // self.bits) if self.bits else 1

    @property
    def parts(self) -> int:
        """How many entries of the typed field one element takes."""
        return 2 if self.array.kind == "c" else 1

    def raw_bytes(self, elements: int) -> int:
        """How many raw bytes ``elements`` elements take."""
        return (elements * self.bits + 7) // 8

    def memory_bytes(self, elements: int) -> int:
        """How many bytes an array of ``elements`` elements takes in memory."""
        return elements * self.array.itemsize

    def entries(self, elements: int) -> int:
        """How many entries of the typed field ``elements`` elements take."""
        return -(-elements // self.packed) * self.parts


def _element(code: int, name: str, bits: int, array: object, field: str, storage: object = None) -> Element:
    dtype: np.dtype[np.generic] = np.dtype(array)  # type: ignore[call-overload]
    return Element(code, name, bits, dtype, field, dtype if storage is None else np.dtype(storage))  # type: ignore[call-overload]


_TABLE = (
    _element(1, "float32", 32, np.float32, "float_data"),
    _element(2, "uint8", 8, np.uint8, "int32_data"),
    _element(3, "int8", 8, np.int8, "int32_data"),
    _element(4, "uint16", 16, np.uint16, "int32_data"),
    _element(5, "int16", 16, np.int16, "int32_data"),
    _element(6, "int32", 32, np.int32, "int32_data"),
    _element(7, "int64", 64, np.int64, "int64_data"),
    _element(STRING, "string", 0, object, "string_data"),
    _element(BOOL, "bool", 8, np.bool_, "int32_data"),
    _element(10, "float16", 16, np.float16, "int32_data", np.uint16),
    _element(11, "float64", 64, np.float64, "double_data"),
    _element(12, "uint32", 32, np.uint32, "uint64_data"),
    _element(13, "uint64", 64, np.uint64, "uint64_data"),
    _element(14, "complex64", 64, np.complex64, "float_data", np.float32),
    _element(15, "complex128", 128, np.complex128, "double_data", np.float64),
    _element(16, "bfloat16", 16, ml_dtypes.bfloat16, "int32_data", np.uint16),
    _element(17, "float8e4m3fn", 8, ml_dtypes.float8_e4m3fn, "int32_data", np.uint8),
    _element(18, "float8e4m3fnuz", 8, ml_dtypes.float8_e4m3fnuz, "int32_data", np.uint8),
    _element(19, "float8e5m2", 8, ml_dtypes.float8_e5m2, "int32_data", np.uint8),
    _element(20, "float8e5m2fnuz", 8, ml_dtypes.float8_e5m2fnuz, "int32_data", np.uint8),
    _element(21, "uint4", 4, ml_dtypes.uint4, "int32_data", np.uint8),
    _element(22, "int4", 4, ml_dtypes.int4, "int32_data", np.uint8),
    _element(23, "float4e2m1", 4, ml_dtypes.float4_e2m1fn, "int32_data", np.uint8),
    _element(24, "float8e8m0", 8, ml_dtypes.float8_e8m0fnu, "int32_data", np.uint8),
    _element(25, "uint2", 2, ml_dtypes.uint2, "int32_data", np.uint8),
    _element(26, "int2", 2, ml_dtypes.int2, "int32_data", np.uint8),
)

ELEMENTS = {element.code: element for element in _TABLE}
"""By their number in a file (as in ``Cast``'s attribute ``to``)."""

BY_DTYPE = {element.array: element for element in _TABLE}
"""By the dtype of arrays; strings are arrays of objects."""
