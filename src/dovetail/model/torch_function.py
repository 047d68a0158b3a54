"""A traced graph that is compiled when it is first called, and again when what it was compiled for has changed.

Parameters are constants of the code, so that they can be packed and folded. Each call looks whether they are still
the same memory, unwritten (``data_ptr`` and ``_version``); if not, they are bound again, and after a few times they
become ordinary inputs. A write through ``parameter.data`` goes unseen by PyTorch's counter: hand in
``parameters="inputs"`` where that happens.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass

import torch
from torch.fx import GraphModule, Node
from torch.fx.experimental.proxy_tensor import make_fx

from dovetail.base.errors import DovetailError
from dovetail.frontends.torch.decompose import decompositions
from dovetail.model.general import Shapes
from dovetail.model.torch_others import other_inputs
from dovetail.model.torch_run import Settings, TorchReport, TorchRun, show_parts

MOST_SHAPES = 32
"""Shapes that code is kept for; the one unused for longest goes first."""
MOST_BINDINGS = 3
"""How often parameters are bound anew before they become inputs."""

Key = tuple[object, ...]
Record = Callable[[TorchReport], None]


@dataclass(frozen=True, slots=True)
class _Binding:
    run: TorchRun
    guards: tuple[tuple[int, int, int], ...]
    """Place among the inputs, address and version of each parameter."""

    def holds(self, inputs: Sequence[object]) -> bool:
        for place, address, version in self.guards:
            tensor = inputs[place]
            assert isinstance(tensor, torch.Tensor)
            if tensor.data_ptr() != address or tensor._version != version:
                return False
        return True


class TorchFunction:
    """Call it with the tensors (and sizes) of the graph's placeholders. ``record`` is told of everything compiled."""

    def __init__(
        self,
        module: GraphModule,
        fixed: Collection[int],
        settings: Settings,
        record: Record,
        shapes: Shapes | None = None,
    ) -> None:
        self._module, self._fixed, self._settings = module, tuple(fixed), settings
        self._symbolic = any(_is_symbolic(node) for node in module.graph.nodes if node.op == "placeholder")
        if self._symbolic and shapes is None and settings.dynamic is not False:
            shapes = Shapes(True)
        self._record, self._shapes = record, shapes
        self._bindings: OrderedDict[Key, _Binding] = OrderedDict()
        self._bound = 0

    def __call__(self, *inputs: object) -> list[object]:
        key = _key(inputs) if self._symbolic else ()
        binding = self._bindings.get(key)
        if binding is None or not binding.holds(inputs):
            binding = self._bind(inputs)
            self._bindings[key] = binding
            if len(self._bindings) > MOST_SHAPES:
                self._bindings.popitem(last=False)
        if self._symbolic:
            self._bindings.move_to_end(key)
        return binding.run(inputs)

    def prepare(self, inputs: Sequence[object]) -> None:
        """Compiles for these inputs now."""
        if not self._symbolic:
            self._bindings[()] = self._bind(inputs)

    def show(self, inputs: Sequence[object]) -> None:
        """Tells of inputs that the function might be called with, so that code can be made for them, too."""
        module = _specialised(self._module, inputs) if self._symbolic else self._module
        if self._shapes is not None:
            show_parts(module.graph, _constants(module, self._fixed, inputs), self._settings, self._shapes)

    def _bind(self, inputs: Sequence[object]) -> _Binding:
        if self._symbolic and not self._bound and self._shapes is not None and self._shapes.dynamic:
            self._show_another(inputs)
        module = _specialised(self._module, inputs) if self._symbolic else self._module
        self._bound += 1
        fixed = self._fixed if self._bound <= MOST_BINDINGS + len(self._bindings) else ()
        tensors = {place: t for place in fixed if isinstance(t := inputs[place], torch.Tensor)}
        run = TorchRun(module.graph, _constants(module, fixed, inputs), self._settings, self._shapes)
        self._record(run.report)
        return _Binding(run, tuple((place, t.data_ptr(), t._version) for place, t in tensors.items()))

    def _show_another(self, inputs: Sequence[object]) -> None:
        """The graph in other sizes; where it has none, each shape gets code of its own until two have been seen."""
        others = other_inputs(_placeholders(self._module), inputs)
        if others is not None:
            with suppress(RuntimeError, TypeError, ValueError, DovetailError):
                self.show(others)


def _constants(module: GraphModule, fixed: Collection[int], inputs: Sequence[object]) -> dict[Node, torch.Tensor]:
    nodes = _placeholders(module)
    return {nodes[place]: t for place in fixed if isinstance(t := inputs[place], torch.Tensor)}


def _placeholders(module: GraphModule) -> list[Node]:
    return [node for node in module.graph.nodes if node.op == "placeholder"]


def _is_symbolic(node: Node) -> bool:
    val = node.meta.get("val")
    if isinstance(val, torch.SymInt | torch.SymFloat | torch.SymBool):
        return True
    return isinstance(val, torch.Tensor) and not all(isinstance(n, int) for n in (*val.shape, *val.stride()))


def _key(inputs: Sequence[object]) -> Key:
    return tuple((tuple(x.shape), x.stride()) if isinstance(x, torch.Tensor) else x for x in inputs)


def _specialised(module: GraphModule, inputs: Sequence[object]) -> GraphModule:
    """The graph for the shapes and sizes at hand alone."""
    return make_fx(module, decomposition_table=decompositions(), tracing_mode="fake")(*inputs)
