"""One call of an operator on the host: its node, its version, and what it is given.

def non_zero(call: Call) -> Results:
    return (np.array(np.nonzero(call.array(0)), np.int64),)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from dovetail.base.errors import LimitError
from dovetail.base.limits import DEFAULT_MODEL_LIMITS
from dovetail.base.words import printable
from dovetail.frontends.onnx.convert.attributes import malformed, place, title
from dovetail.frontends.onnx.entries import Array, HostValue
from dovetail.frontends.onnx.model import OnnxNode

Results = tuple[HostValue, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """``opset`` is the version of the operators of the node's domain."""

    node: OnnxNode
    opset: int
    operands: Sequence[HostValue]
    largest_bytes: int = DEFAULT_MODEL_LIMITS.tensor_bytes
    """What a result may take."""

    def room(self, shape: Sequence[int], dtype: np.dtype[np.generic]) -> tuple[int, ...]:
        """``shape``, if a tensor of it may be made."""
        wanted = prod(shape) * dtype.itemsize
        if wanted > self.largest_bytes or min((*shape, 0)) < 0:
            what = f"{printable(title(self.node))} would make a tensor of shape {list(shape)}"
            raise LimitError(what, where=place(self.node), why=f"{self.largest_bytes} bytes are allowed")
        return tuple(shape)

    def array(self, at: int) -> Array:
        """Operand ``at``, a tensor that must be there."""
        found = self.operands[at] if at < len(self.operands) else None
        if not isinstance(found, np.ndarray):
            raise malformed(self.node, f"input {at} is not a tensor" if found is not None else f"input {at} is missing")
        return found

    def maybe(self, at: int) -> Array | None:
        """Operand ``at``, None where it is left out."""
        given = at < len(self.operands) and self.operands[at] is not None
        return self.array(at) if given else None

    def list(self, at: int) -> list[HostValue]:
        """Operand ``at``, a sequence."""
        found = self.operands[at] if at < len(self.operands) else None
        if not isinstance(found, list):
            raise malformed(self.node, f"input {at} is not a sequence")
        return found

    def ints(self, at: int) -> tuple[int, ...]:
        """Operand ``at``, a few whole numbers."""
        return tuple(int(value) for value in self.array(at).reshape(-1))

    def whole(self, at: int, default: int) -> int:
        """Operand ``at``, one whole number."""
        found = self.maybe(at)
        if found is None:
            return default
        if found.size != 1:
            raise malformed(self.node, f"input {at} is not one number")
        return int(found.reshape(-1)[0])


HostFunction = Callable[[Call], Results]
