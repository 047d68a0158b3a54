"""An ONNX model that can be called: specialised for the types it is called with, compiled, and run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from dovetail.base.errors import CallError
from dovetail.base.limits import DEFAULT_MODEL_LIMITS, ModelLimits
from dovetail.base.suggest import closest
from dovetail.base.words import printable
from dovetail.frontends.onnx.elements import BY_DTYPE, ELEMENTS
from dovetail.frontends.onnx.entries import Array, HostValue
from dovetail.frontends.onnx.inline import Names, Work
from dovetail.frontends.onnx.model import OnnxModel, OnnxValue, SequenceType, TensorType
from dovetail.ir.graph.bound import BoundGraph
from dovetail.ir.graph.evaluate import evaluate
from dovetail.model.onnx_others import other_shapes
from dovetail.model.onnx_report import OnnxReport, Tally
from dovetail.model.onnx_stages import Compile, Making, RunGraph, Stages
from dovetail.ops.table import OPERATORS

Key = tuple[tuple[str, np.dtype[np.generic], tuple[int, ...]] | None, ...]
"""The names and types of what is handed in; None for what is no tensor."""
Direct = tuple[RunGraph, tuple[str, ...]]
"""A function, and what it is handed."""
MOST_STAGES = 32
"""How many specialisations are kept side by side."""


class Session:
    """``Session(read("model.onnx"), compile).run({"x": array})`` -> outputs by name.

    ``compile`` makes a function of a graph: ``reference`` runs it by its meaning, slowly. ``look`` is shown the first
    graph in another shape, where the file leaves extents open, before ``compile`` gets it.
    """

    def __init__(
        self,
        model: OnnxModel,
        compile: Compile,
        limits: ModelLimits = DEFAULT_MODEL_LIMITS,
        most_stages: int = MOST_STAGES,
        look: Callable[[BoundGraph], None] | None = None,
    ) -> None:
        graph = model.graph
        self._tally = Tally()
        self._inits = {name: tensor.array() for name, tensor in graph.initializers.items()}
        self.inputs = tuple(value for value in graph.inputs if value.name not in self._inits)
        """What must be given."""
        self.outputs = tuple(value.name for value in graph.outputs)
        self._defaults = {value.name: value for value in graph.inputs if value.name in self._inits}
        self._declared = {value.name: value for value in graph.inputs}
        making = Making(model.functions, Names(model), compile, self._tally, limits, most_stages, look)
        work = [Work(node, model.opsets) for node in graph.nodes]
        self._making, self._work = making, work
        self._stages: dict[frozenset[str], Stages] = {}
        self._direct: dict[Key, Direct] = {}

    @property
    def report(self) -> OnnxReport:
        return self._tally.report()

    def run(self, feeds: Mapping[str, HostValue]) -> dict[str, HostValue]:
        """The model's outputs by name; raises a CallError where ``feeds`` are not its inputs."""
        key = tuple((name, v.dtype, v.shape) if isinstance(v, np.ndarray) else None for name, v in feeds.items())
        direct = self._direct.get(key)
        if direct is not None:
            function, names = direct
            return dict(zip(self.outputs, function(*[feeds[name] for name in names]), strict=True))
        values = self._checked(feeds)
        stages = self._stages_for(values)
        made = stages.run(values)
        if None not in key and (found := stages.direct(values)) is not None:
            self._keep(key, found)
        return made

    def _keep(self, key: Key, found: Direct) -> None:
        """Calls with the same types go straight to the function."""
        if len(self._direct) >= self._making.most:
            self._direct.clear()
        self._direct[key] = found

    def _stages_for(self, values: Mapping[str, HostValue]) -> Stages:
        """Initial values that are not given stay what the file says."""
        given = frozenset(values.keys() & self._defaults.keys())
        if given not in self._stages:
            fixed = {name: array for name, array in self._inits.items() if name not in given}
            others = partial(other_shapes, self._declared)
            self._stages[given] = Stages(self._making, self._work, fixed, self.outputs, others)
        return self._stages[given]

    def whole(self, feeds: Mapping[str, HostValue]) -> RunGraph:
        """The function of the whole model for values like these: its inputs and outputs are the model's, in order.

        An UnsupportedError says what stands against it: operators on the host, or values that were looked at."""
        values = self._checked(feeds)
        return self._stages_for(values).whole(values)

    def _checked(self, feeds: Mapping[str, HostValue]) -> dict[str, HostValue]:
        for name in feeds:
            if name not in self._declared:
                hint = closest(name, self._declared)
                raise CallError(f"the model has no input '{printable(name)}'", hint=hint)
        for value in self.inputs:
            if value.name not in feeds:
                raise CallError(
                    f"input '{printable(value.name)}' is missing", why=f"the model takes {_listed(self.inputs)}"
                )
        return {name: _check(self._declared[name], value) for name, value in feeds.items()}


def reference(bound: BoundGraph) -> RunGraph:
    """A graph's meaning as a function: each node by the reference evaluator."""
    names = tuple(value.name for value in bound.graph.inputs)

    def call(*arrays: Array) -> list[Array]:
        made = evaluate(bound.graph, OPERATORS, dict(zip(names, arrays, strict=True)), bound.data)
        return [made[name] for name in bound.graph.outputs]

    return call


def _check(declared: OnnxValue, value: HostValue) -> HostValue:
    """``value`` if it is of the declared type; lists and scalars become what the model takes."""
    name, said = printable(declared.name), declared.type
    if isinstance(said, SequenceType) and not isinstance(value, list):
        raise CallError(f"input '{name}' is a sequence", hint="a list of arrays")
    if not isinstance(said, TensorType):
        return value
    if not isinstance(value, np.ndarray):
        raise CallError(f"input '{name}' is a tensor", why=f"{type(value).__name__} was given", hint="a NumPy array")
    element = ELEMENTS.get(said.elem_type)
    if element is not None and value.dtype != element.array:
        found = BY_DTYPE[value.dtype].name if value.dtype in BY_DTYPE else str(value.dtype)
        raise CallError(f"input '{name}' is of {element.name}, not {found}", hint=f"astype({element.array})")
    if said.shape is not None:
        fits = len(said.shape) == value.ndim and all(
            not isinstance(extent, int) or extent == have for extent, have in zip(said.shape, value.shape, strict=True)
        )
        if not fits:
            wanted = ", ".join("?" if extent is None else printable(str(extent)) for extent in said.shape)
            raise CallError(f"input '{name}' has shape {list(value.shape)}, the model takes [{wanted}]")
    return value


def _listed(values: tuple[OnnxValue, ...]) -> str:
    return ", ".join(f"'{printable(value.name)}'" for value in values)
