"""Inputs of a traced graph in other shapes, where PyTorch has left sizes open: what it might be called with next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle

import torch
from torch.fx import Node

STEPS = (2, 3, 5, 7, 11, 13)
"""By how much sizes change: no change is a multiple of another, so that none looks like a function of another."""


def other_inputs(placeholders: Sequence[Node], inputs: Sequence[object]) -> list[object] | None:
    """``inputs`` with every open size larger; None where there is none, or one is not known by itself."""
    known = _sizes(placeholders, inputs)
    if not known:
        return None
    steps = dict(zip(known, cycle(STEPS), strict=False))
    new = {name: value + steps[name] for name, value in known.items()}
    made = [_other(node.meta.get("val"), value, new) for node, value in zip(placeholders, inputs, strict=True)]
    return None if any(one is None for one in made) else made


def _sizes(placeholders: Sequence[Node], inputs: Sequence[object]) -> dict[str, int]:
    """Values of symbols, read off numbers and extents that are nothing but a symbol."""
    found: dict[str, int] = {}
    for node, value in zip(placeholders, inputs, strict=True):
        val = node.meta.get("val")
        if isinstance(val, torch.SymInt) and isinstance(value, int):
            found.setdefault(str(val), value)
        elif isinstance(val, torch.Tensor) and isinstance(value, torch.Tensor):
            for said, have in zip(val.shape, value.shape, strict=True):
                if isinstance(said, torch.SymInt) and str(said).isidentifier():
                    found.setdefault(str(said), have)
    return found


def _other(val: object, value: object, new: Mapping[str, int]) -> object:
    """``value`` in its new size: what it holds is of no interest. None where the size is not known."""
    if isinstance(val, torch.SymInt):
        return new.get(str(val))
    if not isinstance(val, torch.Tensor) or not isinstance(value, torch.Tensor):
        return value
    if all(isinstance(n, int) for n in val.shape):
        return value
    shape = [_extent(said, new) for said in val.shape]
    known = [n for n in shape if n is not None]
    if len(known) < len(shape) or not value.is_contiguous():
        return None
    return torch.zeros(known, dtype=value.dtype)


def _extent(said: int | torch.SymInt, new: Mapping[str, int]) -> int | None:
    """An extent, a symbol, or a whole multiple of one."""
    if isinstance(said, int):
        return said
    factor, _, name = str(said).rpartition("*")
    if name not in new or (factor and not factor.isdigit()):
        return None
    return int(factor or 1) * new[name]
