"""Element types: names, widths, ranges, and how they join.

A dtype is a row of ``DTYPES``; nothing else in the package branches on its name.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import ml_dtypes
import numpy as np

from dovetail.base.errors import ProgramError


class Kind(Enum):
    """What an element is."""

    BOOL = "bool"
    SIGNED = "signed"
    UNSIGNED = "unsigned"
    FLOAT = "float"


@dataclass(frozen=True, slots=True)
class DType:
    """One element type. ``bits`` is its width in memory, ``accumulator`` the type sums are kept in."""

    name: str
    kind: Kind
    bits: int
    accumulator: str

    def __str__(self) -> str:
        return self.name

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def bytes(self) -> int:
        return self.bits // 8

    @property
    def is_float(self) -> bool:
        return self.kind is Kind.FLOAT

    @property
    def is_integer(self) -> bool:
        return self.kind in (Kind.SIGNED, Kind.UNSIGNED)

    @property
    def numpy(self) -> np.dtype[np.generic]:
        return _NUMPY[self.name]

    @property
    def low(self) -> int:
        """Smallest integer value."""
        return -(1 << (self.bits - 1)) if self.kind is Kind.SIGNED else 0

    @property
    def high(self) -> int:
        """Largest integer value."""
        if self.kind is Kind.BOOL:
            return 1
        return (1 << (self.bits - 1)) - 1 if self.kind is Kind.SIGNED else (1 << self.bits) - 1

    @property
    def exact_bits(self) -> int:
        """Every integer up to 2**exact_bits in size is a value of this dtype."""
        return _EXACT_BITS.get(self.name, self.bits - (self.kind is Kind.SIGNED))


DTYPES = {
    d.name: d
    for d in (
        DType("bool", Kind.BOOL, 8, "bool"),
        *(DType(f"i{n}", Kind.SIGNED, n, f"i{n}") for n in (8, 16, 32, 64)),
        *(DType(f"u{n}", Kind.UNSIGNED, n, f"u{n}") for n in (8, 16, 32, 64)),
        DType("f8e4m3fn", Kind.FLOAT, 8, "f32"),
        DType("f16", Kind.FLOAT, 16, "f32"),
        DType("bf16", Kind.FLOAT, 16, "f32"),
        DType("f32", Kind.FLOAT, 32, "f32"),
        DType("f64", Kind.FLOAT, 64, "f64"),
    )
}

_NUMPY: dict[str, np.dtype[np.generic]] = {
    "bool": np.dtype(np.bool_),
    **{f"i{n}": np.dtype(f"int{n}") for n in (8, 16, 32, 64)},
    **{f"u{n}": np.dtype(f"uint{n}") for n in (8, 16, 32, 64)},
    "f8e4m3fn": np.dtype(ml_dtypes.float8_e4m3fn),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
}
_BY_NUMPY = {array: name for name, array in _NUMPY.items()}
_EXACT_BITS = {"bool": 1, "f8e4m3fn": 4, "f16": 11, "bf16": 8, "f32": 24, "f64": 53}
_FLOAT_ORDER = ("f8e4m3fn", "f16", "bf16", "f32", "f64")


def dtype(name: str) -> DType:
    """The dtype called ``name``."""
    if name not in DTYPES:
        raise ProgramError(f"unknown dtype '{name}'", hint=f"one of {', '.join(DTYPES)}")
    return DTYPES[name]


def from_numpy(array: np.dtype[np.generic]) -> DType | None:
    """The dtype of a NumPy array, None when Dovetail has none such."""
    name = _BY_NUMPY.get(array)
    return None if name is None else DTYPES[name]


def compute_type(d: DType) -> DType:
    """The type arithmetic on ``d`` is done in: small floats are computed as f32."""
    return DTYPES[d.accumulator] if d.is_float else d


def join(a: DType, b: DType) -> DType:
    """The smallest dtype that arithmetic on ``a`` and ``b`` is done in.

    bool < integers < floats; mixed signs widen; f16 with bf16 is f32.
    """
    if a == b:
        return a
    if a.kind is Kind.BOOL:
        return b
    if b.kind is Kind.BOOL:
        return a
    if a.is_float or b.is_float:
        return _join_floats(a, b)
    if a.kind is b.kind:
        return a if a.bits >= b.bits else b
    return _join_signs(a, b)


def _join_floats(a: DType, b: DType) -> DType:
    if not b.is_float:
        return a
    if not a.is_float:
        return b
    if {a.name, b.name} == {"f16", "bf16"}:
        return DTYPES["f32"]
    return a if _FLOAT_ORDER.index(a.name) >= _FLOAT_ORDER.index(b.name) else b


def _join_signs(a: DType, b: DType) -> DType:
    signed, unsigned = (a, b) if a.kind is Kind.SIGNED else (b, a)
    if signed.bits > unsigned.bits:
        return signed
    if unsigned.bits == 64:
        raise ProgramError("u64 and a signed integer have no common type", hint="cast one of them, e.g. i64(x[i])")
    return DTYPES[f"i{unsigned.bits * 2}"]
