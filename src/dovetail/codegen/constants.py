"""Numbers in LLVM's spelling: floats as bits, so that no digit is lost; small floats travel as integers."""

from __future__ import annotations

import numpy as np

from dovetail.base.dtypes import DType
from dovetail.targets.template import llvm_type


def constant_text(value: int | float | bool, dtype: DType, lanes: int) -> str:
    """``value`` in all lanes, without its type."""
    text = _scalar_text(value, dtype)
    return f"splat ({llvm_type(dtype)} {text})" if lanes > 1 else text


def _scalar_text(value: int | float | bool, dtype: DType) -> str:
    if not dtype.is_float:
        return str(int(value))
    rounded = np.asarray(value).astype(dtype.numpy)
    if llvm_type(dtype) in ("float", "double"):
        return f"0x{int(rounded.astype(np.float64).view(np.uint64)):016X}"
    return str(int(rounded.view(f"uint{dtype.bits}")))
