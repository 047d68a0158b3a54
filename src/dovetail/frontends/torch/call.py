"""One call of an ATen operator, its arguments named after its schema.

    aten.add.Tensor(x, 3)   ->   Call("aten.add.Tensor", {"self": Ref("v1"), "other": 3, "alpha": 1}, ...)

Tensors are references to values of ours; everything else is plain data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn, TypeAlias

import torch
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND, elementwise_dtypes

from dovetail.base.dtypes import DType
from dovetail.base.errors import UnsupportedError
from dovetail.frontends.torch.elements import dtype_of
from dovetail.ir.graph.graph import Type


@dataclass(frozen=True, slots=True)
class Ref:
    """A tensor: our name of it, and how PyTorch counts it when types are joined."""

    name: str
    meta: torch.Tensor


Argument: TypeAlias = "bool | int | float | str | Ref | tuple[Argument, ...] | None"


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """``results`` are the types PyTorch gives what is made, ``needed`` says which of them anything reads."""

    op: str
    arguments: Mapping[str, Argument]
    results: tuple[Type, ...]
    needed: tuple[bool, ...]

    @property
    def dtype(self) -> DType:
        """Of the first result."""
        return self.results[0].dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the first result."""
        return tuple(extent.const for extent in self.results[0].shape)

    def tensor(self, name: str) -> str:
        found = self._given(name)
        return found.name if isinstance(found, Ref) else self._wrong(name)

    def maybe(self, name: str) -> str | None:
        """A tensor that may be left out."""
        return None if self._given(name) is None else self.tensor(name)

    def tensors(self, name: str) -> tuple[str, ...]:
        return tuple(ref for ref in self.maybe_tensors(name) if ref is not None)

    def maybe_tensors(self, name: str) -> tuple[str | None, ...]:
        """A list of tensors, some of which may be left out."""
        found = self._given(name)
        if not isinstance(found, tuple):
            self._wrong(name)
        return tuple(item.name if isinstance(item, Ref) else None for item in found)

    def is_tensor(self, name: str) -> bool:
        return isinstance(self._given(name), Ref)

    def number(self, name: str) -> bool | int | float:
        found = self._given(name)
        return found if isinstance(found, bool | int | float) else self._wrong(name)

    def maybe_number(self, name: str) -> bool | int | float | None:
        return None if self._given(name) is None else self.number(name)

    def real(self, name: str) -> float:
        return float(self.number(name))

    def whole(self, name: str) -> int:
        return int(self.number(name))

    def flag(self, name: str) -> bool:
        return bool(self.number(name))

    def text(self, name: str) -> str:
        found = self._given(name)
        return found if isinstance(found, str) else self._wrong(name)

    def maybe_text(self, name: str) -> str | None:
        return None if self._given(name) is None else self.text(name)

    def ints(self, name: str) -> tuple[int, ...]:
        """A list of whole numbers; one number is a list of one, none is an empty one."""
        found = self._given(name)
        if found is None:
            return ()
        items = found if isinstance(found, tuple) else (found,)
        return tuple(item if isinstance(item, int) else self._wrong(name) for item in items)

    def common(self, *names: str) -> DType:
        """The dtype that PyTorch joins these arguments in."""
        given = [self._given(name) for name in names]
        values = [item.meta if isinstance(item, Ref) else item for item in given if item is not None]
        _, joined = elementwise_dtypes(*values, type_promotion_kind=ELEMENTWISE_TYPE_PROMOTION_KIND.DEFAULT)
        return dtype_of(joined)

    def unsupported(self, reason: str) -> UnsupportedError:
        return UnsupportedError(self.op, reason)

    def _given(self, name: str) -> Argument:
        if name not in self.arguments:
            raise self.unsupported(f"it has no argument '{name}'")
        return self.arguments[name]

    def _wrong(self, name: str) -> NoReturn:
        raise self.unsupported(f"argument '{name}' is {self.arguments[name]!r}")
