"""Element types and memory that PyTorch and NumPy share: what a tensor is to us, and back."""

from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes
import numpy as np
import numpy.typing as npt
import torch

from dovetail.base.dtypes import DTYPES, DType, from_numpy
from dovetail.base.errors import CallError, UnsupportedError
from dovetail.ir.graph.graph import Type
from dovetail.ir.index import constant

Array = npt.NDArray[np.generic]

_NAMES = {
    torch.bool: "bool",
    torch.int8: "i8",
    torch.int16: "i16",
    torch.int32: "i32",
    torch.int64: "i64",
    torch.uint8: "u8",
    torch.uint16: "u16",
    torch.uint32: "u32",
    torch.uint64: "u64",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.float32: "f32",
    torch.float64: "f64",
}
_TORCH = {name: kind for kind, name in _NAMES.items()}
_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


def dtype_of(kind: torch.dtype) -> DType:
    """Our dtype for PyTorch's; raises an UnsupportedError where there is none."""
    if kind not in _NAMES:
        raise UnsupportedError("a tensor", f"elements of {kind} are not in the graph language")
    return DTYPES[_NAMES[kind]]


def torch_dtype(dtype: DType) -> torch.dtype:
    """PyTorch's dtype for ours."""
    return _TORCH[dtype.name]


def type_of(tensor: torch.Tensor) -> Type:
    """The type of a tensor, real or fake, whose extents are numbers."""
    if tensor.layout is not torch.strided:
        raise UnsupportedError("a tensor", f"its layout is {tensor.layout}")
    if tensor.device.type not in ("cpu", "meta"):
        raise UnsupportedError("a tensor", f"it lies on {tensor.device}")
    if not all(isinstance(extent, int) for extent in tensor.shape):
        raise UnsupportedError("a tensor", f"its shape {list(tensor.shape)} depends on values")
    return typed(dtype_of(tensor.dtype), tuple(tensor.shape))


def typed(dtype: DType, shape: Sequence[int]) -> Type:
    return Type(dtype, tuple(map(constant, shape)))


def array_of(tensor: torch.Tensor) -> Array:
    """The elements of ``tensor`` in row-major order: its own memory where they lie so."""
    plain = tensor.detach().resolve_neg().contiguous()
    if plain.dtype == torch.bfloat16:
        found: Array = plain.view(torch.int16).numpy().view(_BFLOAT16)
        return found
    made: Array = plain.numpy()
    return made


def tensor_of(array: Array) -> torch.Tensor:
    """``array`` as a tensor on the same memory."""
    if array.dtype == _BFLOAT16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    if from_numpy(array.dtype) is None:
        raise CallError(f"elements of {array.dtype} are not PyTorch's")
    return torch.from_numpy(array)
