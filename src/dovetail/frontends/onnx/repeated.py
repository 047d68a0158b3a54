"""The body of a loop as the body of a ``scan`` of the graph language."""

from __future__ import annotations

from collections.abc import Sequence

from dovetail.frontends.onnx.convert.structure import NotResolved, Steps
from dovetail.frontends.onnx.entries import (
    Entry,
    Listed,
    Tensor,
)
from dovetail.frontends.onnx.inline import inline_graph
from dovetail.frontends.onnx.making import Making


def repeated(around: Making, steps: Steps) -> tuple[Entry, ...]:
    """What ``scan`` makes; raises NotResolved where a step needs the host or changes its types."""
    return Body(around, steps).steps_taken()


class Body(Making):
    """The body of a ``scan`` in the making: it has the values of the graph around it, and nothing of it may be left."""

    def __init__(self, around: Making, steps: Steps) -> None:
        super().__init__({}, {}, around.functions, around.names, around.limits, around.repeated)
        self.context = around.context.step()
        self._around, self._steps = around, steps

    def entry(self, name: str) -> Entry | None:
        if name not in self._entries:
            outer = self._around.entry(name)
            if outer is None:
                return None
            self._entries[name] = self._shared(outer)
        return self._entries[name]

    def steps_taken(self) -> tuple[Entry, ...]:
        steps, outer = self._steps, self._around.context
        for name, value in steps.carried.items():
            self.bind(name, Tensor(self.context.input(outer.dtype(value), outer.shape(value))))
        for name, value in steps.scanned.items():
            self.bind(name, Tensor(self.context.input(outer.dtype(value), outer.shape(value)[1:])))
        for name, entry in steps.same.items():
            self.bind(name, self._shared(entry))
        given = [value.name for value in steps.inner.inputs]
        results = {value.name: self.names.fresh(value.name) for value in steps.inner.outputs}
        names = [results[value.name] for value in steps.inner.outputs]
        self.take_all(inline_graph(steps.inner, given, names, steps.work.opsets, self.names))
        if self.hosted or self.rest:
            raise NotResolved("a step of it needs the host")
        outputs = [self._output(results[name]) for name in steps.outputs]
        self._check(outputs)
        count = outer.shape(next(iter(steps.scanned.values())))[0]
        operands = (*steps.carried.values(), *steps.scanned.values())
        made = outer.repeat(self.context, outputs, operands, len(steps.carried), len(steps.scanned), count)
        self._around.compiled += self.compiled
        return tuple(map(Tensor, made))

    def _output(self, name: str) -> str:
        entry = self.entry(name)
        if not isinstance(entry, Tensor):
            raise NotResolved("a step makes what is not a tensor of numbers")
        return self.context.node("identity", entry.name)

    def _check(self, outputs: Sequence[str]) -> None:
        for value, name in zip(self._steps.carried.values(), outputs, strict=False):
            if self.context.type(name) != self._around.context.type(value):
                raise NotResolved("what is carried changes its type from step to step")

    def _shared(self, entry: Entry) -> Entry:
        if isinstance(entry, Tensor):
            return Tensor(self.context.share(entry.name))
        return Listed(tuple(map(self._shared, entry.items))) if isinstance(entry, Listed) else entry
