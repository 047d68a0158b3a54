"""Which ATen operators PyTorch takes apart before we see a graph: all that it can and that have no conversion."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TypeVar

import torch
from torch._decomp import core_aten_decompositions, decomposition_table
from torch.export import default_decompositions

from dovetail.frontends.torch.convert.table import CONVERSIONS

_LOG = logging.getLogger("dovetail.torch")
_FAILURES = (RuntimeError, TypeError, AssertionError)
"""What decompositions of PyTorch raise for arguments that their authors did not think of."""
Table = dict[torch._ops.OperatorBase, Callable[..., object]]


T = TypeVar("T")


def traced_with(trace: Callable[[Table], T], whole: bool = False) -> T:
    """What ``trace`` makes with all decompositions, or with PyTorch's core ones where one of the others fails.

    ``whole`` where it would otherwise keep operators that PyTorch itself makes of others.
    """
    try:
        return trace(decompositions(whole))
    except _FAILURES:
        _LOG.info("traced again with fewer decompositions", exc_info=True)
        return trace(_allowed(default_decompositions().materialize() if whole else core_aten_decompositions()))


def decompositions(whole: bool = False) -> Table:
    """What PyTorch is handed to trace a graph with: all that it has."""
    base = default_decompositions().materialize() if whole else {}
    return _allowed({**base, **decomposition_table})


def _allowed(table: Mapping[torch._ops.OperatorBase, Callable[..., object]]) -> Table:
    return {op: made for op, made in table.items() if str(op) not in CONVERSIONS and _can_go(op)}


def _can_go(op: torch._ops.OperatorBase) -> bool:
    """Random operators stay whole: taken apart they would draw other numbers, unless PyTorch always does so itself."""
    if not isinstance(op, torch._ops.OpOverload) or str(op) in _KEPT:
        return False
    if str(op) in _WITHOUT_CHANCE or torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), _ALWAYS):
        return True
    return torch.Tag.nondeterministic_seeded not in op.tags


_ALWAYS = "CompositeImplicitAutograd"
_WITHOUT_CHANCE = frozenset(("aten._scaled_dot_product_flash_attention_for_cpu.default",))
"""Called random for the sake of dropout, but taken apart only where there is none."""
_KEPT = frozenset(
    ("aten.lift.default", "aten.lift_fresh.default", "aten.diagonal_scatter.default", "aten.polar.default")
)
"""PyTorch's way to take these apart does not go together with functional graphs."""
