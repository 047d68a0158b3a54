"""Which ATen operators PyTorch takes apart before we see a graph: all that it can and that have no conversion."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch._decomp import decomposition_table

from dovetail.frontends.torch.convert.table import CONVERSIONS

Table = dict[torch._ops.OperatorBase, Callable[..., object]]


def decompositions() -> Table:
    """What PyTorch is handed to trace a graph with."""
    return {op: made for op, made in decomposition_table.items() if str(op) not in CONVERSIONS and _safe(op)}


def _safe(op: torch._ops.OperatorBase) -> bool:
    """Random operators stay whole: taken apart they would draw other numbers."""
    return isinstance(op, torch._ops.OpOverload) and torch.Tag.nondeterministic_seeded not in op.tags
