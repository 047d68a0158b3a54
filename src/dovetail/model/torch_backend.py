"""``torch.compile(model, backend="dovetail")``: found by its entry point, without an import.

    torch.compile(model, backend="dovetail", options={"strict": True, "threads": 2})

Dynamo hands over the operations it has seen; AOTAutograd makes them functions of ATen operators. Graphs that are part
of training stay with PyTorch. ``reports()`` has what became of the latest graphs.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func
from torch._guards import TracingContext
from torch.fx import GraphModule

from dovetail.base.errors import CallError, UnsupportedError
from dovetail.base.suggest import closest
from dovetail.frontends.torch.decompose import Table, traced_with
from dovetail.frontends.torch.layers import has_layers, keep_layers
from dovetail.frontends.torch.partition import Fallback
from dovetail.model.opened import own_patterns
from dovetail.model.torch_function import TorchFunction
from dovetail.model.torch_run import Settings, TorchReport

_LOG = logging.getLogger("dovetail.torch")
_KEPT = 4096
_OPTIONS: Mapping[str, type] = {
    "strict": bool,
    "threads": int,
    "target": str,
    "cache": bool,
    "jobs": int,
    "dynamic": bool,
}
_PARAMETERS = ("constants", "inputs")
_TRAINING = "gradients are needed: the graph runs in PyTorch"

torch._dynamo.config.allow_rnn = True
"""Dynamo leaves models with nn.LSTM, nn.GRU or nn.RNN alone unless it is told otherwise."""

Compiled = Callable[..., object]
_reports: deque[TorchReport] = deque(maxlen=_KEPT)


def dovetail(
    module: GraphModule, inputs: Sequence[object], options: Mapping[str, object] | None = None, mode: str | None = None
) -> Compiled:
    """What Dynamo calls for each graph: the function that runs it."""
    settings, parameters = _settings(options or {})
    if has_layers(module):
        if torch.is_grad_enabled() and any(isinstance(x, torch.Tensor) and x.requires_grad for x in inputs):
            return _in_training(module.forward, settings)
        keep_layers(module)

    def compile_with(table: Table) -> Compiled:
        compiler = aot_autograd(
            fw_compiler=partial(_training, settings=settings),
            bw_compiler=_eager,
            inference_compiler=partial(_inference, settings=settings, constants=parameters == "constants"),
            decompositions=table,
        )
        compiled: Compiled = compiler(module, inputs)
        return compiled

    return traced_with(compile_with)


def reports() -> tuple[TorchReport, ...]:
    """Of the latest graphs, in order."""
    return tuple(_reports)


def _inference(module: GraphModule, inputs: Sequence[object], settings: Settings, constants: bool) -> Compiled:
    fixed = _unwritten_state() if constants else ()
    return _boxed(TorchFunction(module, fixed, settings, _reports.append))


def _unwritten_state() -> tuple[int, ...]:
    """Which inputs are parameters and buffers that the graph does not write, as AOTAutograd has found."""
    traced = TracingContext.try_get()
    metadata = None if traced is None else traced.fw_metadata
    if metadata is None:
        return ()
    written = frozenset(metadata.mutated_inp_runtime_indices)
    return tuple(place for place in metadata.static_input_indices if place not in written)


def _training(module: GraphModule, inputs: Sequence[object], settings: Settings) -> Compiled:
    return _boxed(_in_training(module.forward, settings))


def _in_training(run: Compiled, settings: Settings) -> Compiled:
    """``run`` by PyTorch, and a report that says so."""
    if settings.strict:
        raise UnsupportedError("a graph", "gradients are needed", hint="with torch.no_grad(): ...")
    _LOG.warning(_TRAINING)
    _reports.append(TorchReport((), (Fallback("the whole graph", _TRAINING),)))
    return run


def _eager(module: GraphModule, inputs: Sequence[object]) -> Compiled:
    return _boxed(module.forward)


def _boxed(function: Compiled) -> Compiled:
    """Takes its arguments as one list, as AOTAutograd hands them over."""
    made: Compiled = make_boxed_func(function)
    return made


def _settings(options: Mapping[str, object]) -> tuple[Settings, str]:
    """Options of ``torch.compile``, each of its kind."""
    given = dict(options)
    parameters = given.pop("parameters", "constants")
    if parameters not in _PARAMETERS:
        raise CallError(f"parameters is {parameters!r}", hint=f"one of {', '.join(_PARAMETERS)}")
    patterns = own_patterns(given.pop("patterns", None))  # type: ignore[arg-type]  # checked there
    for name, value in given.items():
        if name not in _OPTIONS:
            known = (*_OPTIONS, "parameters", "patterns")
            raise CallError(f"the backend has no option '{name}'", hint=closest(name, known))
        if not isinstance(value, _OPTIONS[name]):
            raise CallError(f"option {name} is {value!r}, not a {_OPTIONS[name].__name__}")
    return Settings(**given, patterns=patterns), str(parameters)  # type: ignore[arg-type]
