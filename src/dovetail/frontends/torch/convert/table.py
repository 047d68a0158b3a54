"""Every conversion there is, by the name of the ATen operator."""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.frontends.torch.context import Conversion
from dovetail.frontends.torch.convert import contract, index, pointwise, recurrent, reduce, shape, window

_MODULES = (pointwise, shape, reduce, contract, window, index, recurrent)

CONVERSIONS: Mapping[str, Conversion] = {
    name: found for module in _MODULES for name, found in module.CONVERSIONS.items()
}
