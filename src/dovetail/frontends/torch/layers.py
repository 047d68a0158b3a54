"""Recurrent layers that stay whole: PyTorch takes ``torch.lstm`` apart into steps before a backend sees it.

    %lstm = torch.lstm(%x, (%h, %c), [...], ...)    ->    %lstm = torch.ops.dovetail.lstm(%x, (%h, %c), [...], ...)

The operators of ours compute the same, by PyTorch, where they are not converted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch.fx import GraphModule, Node

_SETTINGS = "bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first"
_ONE_STATE = f"(Tensor input, Tensor hx, Tensor[] params, {_SETTINGS}) -> (Tensor, Tensor)"
_SCHEMAS = {
    "lstm": f"(Tensor input, Tensor[] hx, Tensor[] params, {_SETTINGS}) -> (Tensor, Tensor, Tensor)",
    "gru": _ONE_STATE,
    "rnn_tanh": _ONE_STATE,
    "rnn_relu": _ONE_STATE,
}
Made = tuple[torch.Tensor, ...]


def has_layers(module: GraphModule) -> bool:
    """Whether there are recurrent layers in ``module``, as Dynamo hands it over."""
    return any(node.op == "call_function" and node.target in _LAYERS for node in module.graph.nodes)


def keep_layers(module: GraphModule) -> None:
    """Makes layers of ``module``, a graph without gradients, operators that PyTorch does not take apart."""
    for node in module.graph.nodes:
        if node.op == "call_function" and node.target in _LAYERS and _is_padded(node):
            node.target = getattr(torch.ops.dovetail, _LAYERS[node.target]).default
    module.recompile()


def _is_padded(node: Node) -> bool:
    """Whether its input is a tensor, and not a packed sequence with the sizes of its batches."""
    return not node.kwargs and len(node.args) > 3 and isinstance(node.args[3], bool)


def _define(library: torch.library.Library, name: str) -> None:
    library.define(name + _SCHEMAS[name])
    layer: Callable[..., Made] = getattr(torch, name)

    def fake(x: torch.Tensor, hx: torch.Tensor | Sequence[torch.Tensor], *rest: object) -> Made:
        """What comes out, as far as types go; ``rest`` ends with bidirectional and batch_first."""
        states = (hx,) if isinstance(hx, torch.Tensor) else hx
        units = states[0].shape[2] * (2 if rest[-2] else 1)
        return (x.new_empty((*x.shape[:2], units)), *(state.new_empty(state.shape) for state in states))

    def run(*args: object) -> Made:
        return tuple(part.clone() for part in layer(*args))

    torch.library.register_fake(f"dovetail::{name}", fake, lib=library)
    library.impl(name, run, "CPU")


_LAYERS: dict[object, str] = {getattr(torch, name): name for name in _SCHEMAS}
_LIBRARY = torch.library.Library("dovetail", "FRAGMENT")
for _name in _SCHEMAS:
    _define(_LIBRARY, _name)
