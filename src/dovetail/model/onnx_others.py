"""Inputs in other shapes, where a file leaves extents open: what a model might be called with next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import cycle

import numpy as np

from dovetail.frontends.onnx.entries import HostValue
from dovetail.frontends.onnx.model import OnnxValue, TensorType

STEPS = (2, 3, 5, 7, 11, 13)
"""By how much extents change: no change is a multiple of another, so that none looks like a function of another."""
COARSE = 32
"""Long extents change by multiples of this, as images must in many models."""


def other_shapes(declared: Mapping[str, OnnxValue], values: Mapping[str, HostValue]) -> Iterator[dict[str, HostValue]]:
    """``values`` with every open extent larger, then smaller; nothing where the file states all of them.

    An extent with a name is the same wherever it has that name.
    """
    extents = _open_extents(declared, values)
    steps = dict(zip(extents, cycle(STEPS), strict=False))
    for sign in (1, -1) if extents else ():
        new = {key: have + sign * steps[key] * (COARSE if have >= 2 * COARSE else 1) for key, have in extents.items()}
        if min(new.values()) > 0:
            yield {name: _resized(declared, name, value, new) for name, value in values.items()}


Key = tuple[str, int]
"""A name and -1, or an input and its axis where the extent has no name."""


def _open_extents(declared: Mapping[str, OnnxValue], values: Mapping[str, HostValue]) -> dict[Key, int]:
    found: dict[Key, int] = {}
    for name, value in values.items():
        if isinstance(value, np.ndarray):
            for axis, key in _keys(declared, name).items():
                found.setdefault(key, value.shape[axis])
    return found


def _keys(declared: Mapping[str, OnnxValue], name: str) -> dict[int, Key]:
    """The open axes of an input."""
    said = declared[name].type if name in declared else None
    shape = said.shape if isinstance(said, TensorType) and said.shape is not None else ()
    return {
        axis: (extent, -1) if isinstance(extent, str) else (name, axis)
        for axis, extent in enumerate(shape)
        if not isinstance(extent, int)
    }


def _resized(declared: Mapping[str, OnnxValue], name: str, value: HostValue, new: Mapping[Key, int]) -> HostValue:
    """``value`` repeated or cut to its new shape."""
    if not isinstance(value, np.ndarray):
        return value
    keys = _keys(declared, name)
    return np.resize(value, tuple(new[keys[a]] if a in keys else n for a, n in enumerate(value.shape)))
