"""Which ATen operators PyTorch takes apart before we see a graph: all that it can and that have no conversion."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch._decomp import decomposition_table
from torch.export import default_decompositions

from dovetail.frontends.torch.convert.table import CONVERSIONS

Table = dict[torch._ops.OperatorBase, Callable[..., object]]


def decompositions(whole: bool = False) -> Table:
    """What PyTorch is handed to trace a graph with; ``whole`` where it would otherwise keep what is made of others."""
    table = dict(default_decompositions().materialize()) if whole else {}
    table.update(decomposition_table)
    return {op: made for op, made in table.items() if str(op) not in CONVERSIONS and _can_go(op)}


def _can_go(op: torch._ops.OperatorBase) -> bool:
    """Random operators stay whole: taken apart they would draw other numbers."""
    if not isinstance(op, torch._ops.OpOverload) or torch.Tag.nondeterministic_seeded in op.tags:
        return False
    return str(op) not in _KEPT


_KEPT = frozenset(
    ("aten.lift.default", "aten.lift_fresh.default", "aten.diagonal_scatter.default", "aten.polar.default")
)
"""PyTorch's way to take these apart does not go together with functional graphs."""
