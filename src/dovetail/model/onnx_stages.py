"""Stages of an ONNX graph, specialised when values of new types are seen, run one after the other, and kept.

A stage holds for the types of what it is handed and the values it looked at; the stages that follow it are kept
with it, so that a call that goes the same way finds everything made.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dovetail.base.errors import DovetailError, ModelError, UnsupportedError
from dovetail.base.limits import ModelLimits
from dovetail.base.words import printable
from dovetail.frontends.onnx.convert.attributes import body, malformed, title
from dovetail.frontends.onnx.entries import Fixed, HostValue, Made, Signature, follow, part, signature
from dovetail.frontends.onnx.host.call import Call
from dovetail.frontends.onnx.host.table import LOOPS, run
from dovetail.frontends.onnx.inline import Names, Work, captured
from dovetail.frontends.onnx.model import FunctionKey, OnnxFunction, OnnxGraph
from dovetail.frontends.onnx.specialise import specialise
from dovetail.frontends.onnx.stage import Stage, opset
from dovetail.ir.graph.bound import BoundGraph
from dovetail.model.onnx_loops import run_loop, run_scan
from dovetail.model.onnx_report import Tally

Array = npt.NDArray[np.generic]
RunGraph = Callable[..., Sequence[Array]]
Compile = Callable[[BoundGraph], RunGraph]
"""A graph becomes a function from its inputs to its outputs."""
Others = Callable[[Mapping[str, HostValue]], Iterable[Mapping[str, HostValue]]]
"""Values of other shapes that might be handed in as well."""


@dataclass(frozen=True, slots=True)
class Making:
    """What all stages of a session share."""

    functions: Mapping[FunctionKey, OnnxFunction]
    names: Names
    compile: Compile
    tally: Tally
    limits: ModelLimits
    most: int
    """How many stages are kept side by side."""
    look: Callable[[BoundGraph], None] | None = None
    """Is shown a stage in another shape before the first one is compiled, so that code can be made for both."""


@dataclass(frozen=True, slots=True, eq=False)
class Built:
    """A stage that can run, and what follows it."""

    stage: Stage
    function: RunGraph | None
    following: Stages
    bodies: tuple[Stages | None, ...]
    """Of the loops among what runs on the host."""


class Stages:
    """``work`` for values of any types. ``fixed`` are values that never change, ``wanted`` those to be made."""

    def __init__(
        self,
        making: Making,
        work: Sequence[Work],
        fixed: Mapping[str, HostValue],
        wanted: Sequence[str],
        others: Others | None = None,
    ):
        self._making, self._work, self._fixed, self._wanted, self._others = making, work, fixed, wanted, others
        self._built: OrderedDict[Signature, list[Built]] = OrderedDict()

    def run(self, values: Mapping[str, HostValue]) -> dict[str, HostValue]:
        """The wanted values, from those that are handed in."""
        stages, current = self, dict(values)
        while True:
            built = stages._find(current)
            stage = built.stage
            results: Sequence[Array] = ()
            if built.function is not None:
                results = built.function(*(part(current, path) for path in stage.inputs))
            made = {name: follow(recipe, current, results) for name, recipe in stage.recipes.items()}
            for hosted, steps in zip(stage.hosted, built.bodies, strict=True):
                made.update(stages._run_on_host(hosted.work, steps, made))
            if not stage.rest:
                return {name: _wanted(name, made, stage) for name in self._wanted}
            stages, current = built.following, made

    def whole(self, values: Mapping[str, HostValue]) -> RunGraph:
        """The function of the one stage there is for these values; an UnsupportedError where there is more to it."""
        built = self._find(values)
        stage = built.stage
        if stage.hosted:
            first = stage.hosted[0]
            raise UnsupportedError(title(first.work.node), f"it runs on the host: {first.reason}")
        if stage.rest:
            first_left = stage.rest[0].node
            raise UnsupportedError(title(first_left), "what it makes depends on values computed while the model runs")
        if stage.guards:
            name = printable(str(stage.guards[0][0][0]))
            raise UnsupportedError("one function for the model", f"shapes depend on the values of input '{name}'")
        inputs, outputs = [(name,) for name in values], [stage.recipes[name] for name in self._wanted]
        if built.function is None or list(stage.inputs) != inputs or outputs != [Made(n) for n in range(len(outputs))]:
            raise UnsupportedError(
                "one function for the model", "some inputs or outputs are no part of what is computed"
            )
        return built.function

    def direct(self, values: Mapping[str, HostValue]) -> tuple[RunGraph, tuple[str, ...]] | None:
        """The function of the one stage there is for values of these types, and what it takes; None if there is more.

        It makes what is wanted, in order.
        """
        built = self._find(values)
        stage = built.stage
        if built.function is None or stage.hosted or stage.rest or stage.guards:
            return None
        if [stage.recipes[name] for name in self._wanted] != [Made(at) for at in range(len(self._wanted))]:
            return None
        return built.function, tuple(path[0] for path in stage.inputs)

    def _find(self, values: Mapping[str, HostValue]) -> Built:
        """The stage for these values, made if there is none."""
        key = tuple((name, signature(value)) for name, value in values.items() if name not in self._fixed)
        found = self._built.setdefault(key, [])
        self._built.move_to_end(key)
        for built in found:
            if all(_same(part(values, path), array) for path, array in built.stage.guards):
                return built
        built = self._build(values)
        found.append(built)
        if len(found) > self._making.most:
            del found[0]
        if len(self._built) > self._making.most:
            self._built.popitem(last=False)
        return built

    def _build(self, values: Mapping[str, HostValue]) -> Built:
        making = self._making
        stage = self._specialised(values)
        making.tally.add(stage)
        if making.look is not None and self._others is not None and sum(map(len, self._built.values())) == 0:
            self._show(values, making.look)
        function = making.compile(stage.bound) if stage.bound.graph.outputs else None
        bodies = tuple(self._body(stage, hosted.work) for hosted in stage.hosted)
        return Built(stage, function, Stages(making, stage.rest, stage.fixed, self._wanted), bodies)

    def _specialised(self, values: Mapping[str, HostValue]) -> Stage:
        making = self._making
        return specialise(self._work, values, self._fixed, self._wanted, making.functions, making.names, making.limits)

    def _show(self, values: Mapping[str, HostValue], look: Callable[[BoundGraph], None]) -> None:
        """Shows the stage in the first other shape that the model can have."""
        assert self._others is not None
        for other in self._others(values):
            try:
                look(self._specialised(other).bound)
            except DovetailError:
                continue
            return

    def _run_on_host(self, work: Work, steps: Stages | None, values: Mapping[str, HostValue]) -> dict[str, HostValue]:
        node = work.node
        if steps is not None:
            repeat = run_loop if node.op == "Loop" else run_scan
            results: Sequence[HostValue] = repeat(node, _called(steps, body(node, "body"), values), values)
        else:
            operands = [values[name] if name else None for name in node.inputs]
            results = run(Call(node, opset(work), operands, self._making.limits.tensor_bytes))
        if len(results) < len(node.outputs):
            raise malformed(node, f"it has {len(node.outputs)} outputs, {len(results)} are made")
        return {name: value for name, value in zip(node.outputs, results, strict=False) if name}

    def _body(self, stage: Stage, work: Work) -> Stages | None:
        """The body of a loop; what it takes from around it and never changes is a constant of it."""
        if (work.node.domain, work.node.op) not in LOOPS:
            return None
        inner = body(work.node, "body")
        around = ((name, stage.recipes[name]) for name in captured(inner))
        fixed = {name: recipe.value for name, recipe in around if isinstance(recipe, Fixed)}
        fixed.update({name: tensor.array() for name, tensor in inner.initializers.items()})
        nodes = [Work(node, work.opsets) for node in inner.nodes]
        return Stages(self._making, nodes, fixed, [value.name for value in inner.outputs])


def _called(stages: Stages, inner: OnnxGraph, values: Mapping[str, HostValue]) -> Callable[..., list[HostValue]]:
    """The body of a loop as a function of its inputs."""
    outer = {name: values[name] for name in captured(inner)}
    names = [value.name for value in inner.inputs]

    def call(*given: HostValue) -> list[HostValue]:
        made = stages.run({**outer, **dict(zip(names, given, strict=True))})
        return [made[value.name] for value in inner.outputs]

    return call


def _same(value: HostValue, array: Array) -> bool:
    """The same to the last bit; the types are."""
    return isinstance(value, np.ndarray) and value.tobytes() == array.tobytes()


def _wanted(name: str, made: Mapping[str, HostValue], stage: Stage) -> HostValue:
    """An output of its own: not an array of the caller's, nor one that other calls use."""
    if name not in made:
        raise ModelError(f"output '{printable(name)}' is made by nothing")
    if isinstance(stage.recipes.get(name), Made):
        return made[name]
    return _copied(made[name])


def _copied(value: HostValue) -> HostValue:
    if isinstance(value, np.ndarray):
        return value.copy()
    return [_copied(item) for item in value] if isinstance(value, list) else value
