"""Values that are known before a graph runs: those of operators without tensors from outside, and of empty tensors.

arange(0, 4), full([2, 3], 1.0), and sums of such    are computed once, by PyTorch, and become constants
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter

import torch
from torch.fx import Node
from torch.utils._pytree import tree_leaves, tree_map_only

LARGEST = 1 << 20
"""Elements of a constant made so; a larger one is made when the graph runs."""


def known_values(graph: torch.fx.Graph, given: Mapping[Node, torch.Tensor]) -> dict[Node, object]:
    """What each such node makes; ``given`` are values known from outside, such as tensors kept in a module."""
    found: dict[Node, object] = dict(given)
    with torch.no_grad():
        for node in graph.nodes:
            if node.op == "get_attr":
                found[node] = attrgetter(node.target)(graph.owning_module)
            elif _is_empty(node):
                found[node] = torch.empty(tuple(node.meta["val"].shape), dtype=node.meta["val"].dtype)
            elif node.op == "call_function" and _can_fold(node, found):
                args, kwargs = tree_map_only(Node, found.__getitem__, (node.args, node.kwargs))
                found[node] = node.target(*args, **kwargs)
    return found


def metas(node: Node) -> tuple[torch.Tensor, ...]:
    """The tensors, without data, that ``node`` makes."""
    return tuple(leaf for leaf in tree_leaves(node.meta.get("val")) if isinstance(leaf, torch.Tensor))


def _is_empty(node: Node) -> bool:
    """Whether there is only one value that ``node`` can have: that of no elements."""
    val = node.meta.get("val")
    return isinstance(val, torch.Tensor) and isinstance(val.numel(), int) and val.numel() == 0


def _can_fold(node: Node, found: Mapping[Node, object]) -> bool:
    made = metas(node)
    if not made or any(operand not in found for operand in node.all_input_nodes):
        return False
    tags = getattr(node.target, "tags", ())
    if "empty" in str(node.target):
        return False
    if torch.Tag.nondeterministic_seeded in tags or any(tensor.device.type != "cpu" for tensor in made):
        return False
    return all(isinstance(t.numel(), int) and (t.numel() <= LARGEST or _is_view(node)) for t in made)


def _is_view(node: Node) -> bool:
    """Whether what ``node`` makes is memory that is there already."""
    schema = getattr(node.target, "_schema", None)
    return schema is not None and all(made.alias_info is not None for made in schema.returns)
