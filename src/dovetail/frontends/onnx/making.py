"""One stage in the making: each node is put into the graph, on the host, or to what is left."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from dovetail.base.dtypes import from_numpy
from dovetail.base.errors import DovetailError, GraphError, LimitError, ProgramError, UnsupportedError
from dovetail.base.limits import ModelLimits
from dovetail.base.words import printable
from dovetail.frontends.onnx.convert.attributes import malformed, place, title, unsupported
from dovetail.frontends.onnx.convert.context import Array, Context, Later
from dovetail.frontends.onnx.convert.resolve import STRUCTURES
from dovetail.frontends.onnx.convert.structure import Entries, Expansion, NotResolved, Steps
from dovetail.frontends.onnx.convert.table import CONVERSIONS
from dovetail.frontends.onnx.entries import (
    NOTHING,
    Entry,
    Fixed,
    Given,
    Held,
    HostValue,
    Listed,
    Made,
    Nothing,
    Path,
    Recipe,
    Tensor,
)
from dovetail.frontends.onnx.host.call import Call
from dovetail.frontends.onnx.host.table import HOST, LOOPS, MISTAKES, run
from dovetail.frontends.onnx.inline import Names, Work, inline_function, reads
from dovetail.frontends.onnx.model import FunctionKey, OnnxFunction, OnnxNode
from dovetail.frontends.onnx.stage import Hosted, Stage, opset
from dovetail.ir.graph.bound import BoundGraph

LARGEST_FOLDED = 1 << 20
"""Elements of a result that is computed while building because nothing of it depends on an input."""


class Making:
    """One stage in the making: a ``Scope``."""

    def __init__(
        self,
        given: Mapping[str, HostValue],
        fixed: Mapping[str, HostValue],
        functions: Mapping[FunctionKey, OnnxFunction],
        names: Names,
        limits: ModelLimits,
        repeated: Repeated,
    ) -> None:
        self.context = Context({}, limits=limits)
        self.names = names
        self.limits, self.repeated = limits, repeated
        self.functions = functions
        self._given, self._fixed = given, fixed
        self._entries: dict[str, Entry] = {}
        self._inputs: dict[str, Path] = {}
        self.hosted: list[Hosted] = []
        self.rest: list[Work] = []
        self.compiled: list[str] = []
        self._resolved: list[str] = []

    def take_all(self, work: Sequence[Work]) -> None:
        """Puts each node where it belongs: into the graph, on the host, or to the rest."""
        queue = deque(work)
        taken = 0
        while queue:
            item = queue.popleft()
            taken += 1
            if taken > self.limits.inlined_nodes:
                most = self.limits.inlined_nodes
                raise LimitError(f"the model becomes more than {most} nodes", where=place(item.node))
            queue.extendleft(reversed(self._take(item)))

    def entry(self, name: str) -> Entry | None:
        """What stands for a value of the model; None if it is not there yet."""
        if name not in self._entries:
            if name in self._fixed:
                self._entries[name] = self._of_value(self._fixed[name])
            elif name in self._given:
                self._entries[name] = self._of_given(self._given[name], (name,))
        return self._entries.get(name)

    def bind(self, name: str, entry: Entry) -> None:
        self._entries[name] = entry

    def repeat(self, steps: Steps) -> tuple[Entry, ...]:
        """``scan`` of the graph language; raises NotResolved where a step needs the host or changes its types."""
        try:
            return self.repeated(self, steps)
        except DovetailError as refusal:
            raise NotResolved(f"a step cannot be compiled: {refusal.what}") from None

    def constant(self, array: Array) -> Entry:
        if from_numpy(array.dtype) is None:
            return Held(Fixed(array))
        return Tensor(self.context.constant(array))

    def stage(self, wanted: Sequence[str]) -> Stage:
        """What has been put together."""
        nodes = [*(hosted.work.node for hosted in self.hosted), *(item.node for item in self.rest)]
        needs = [name for node in nodes for name in reads(node)]
        there = {name: entry for name in dict.fromkeys((*needs, *wanted)) if (entry := self.entry(name)) is not None}
        results: dict[str, int] = {}
        recipes = {name: self._recipe(entry, results) for name, entry in there.items()}
        later = {name for item in self.rest for name in reads(item.node)} | set(wanted)
        fixed = {name: r.value for name, r in recipes.items() if isinstance(r, Fixed) and name in later}
        bound = self._in_order(self.context.bound(tuple(results)))
        return Stage(
            bound,
            tuple(self._inputs[value.name] for value in bound.graph.inputs),
            tuple((self._inputs[name], array) for name, array in self.context.guards.items()),
            recipes,
            tuple(self.hosted),
            tuple(self.rest),
            fixed,
            tuple(self.compiled),
            tuple(self._resolved),
        )

    def _in_order(self, bound: BoundGraph) -> BoundGraph:
        """Inputs in the order in which values are handed in."""
        places = {name: at for at, name in enumerate(self._given)}
        ordered = sorted(bound.graph.inputs, key=lambda value: (places[(path := self._inputs[value.name])[0]], path))
        return replace(bound, graph=replace(bound.graph, inputs=tuple(ordered)))

    def _take(self, item: Work) -> Sequence[Work]:
        """Takes one node; returns those that stand for it."""
        node = item.node
        operands = self._operands(node)
        if operands is None:
            self.rest.append(item)
            return ()
        self.context.opsets = item.opsets
        function = self.functions.get((node.domain, node.op, node.overload))
        if function is not None:
            return inline_function(node, function, self.names)
        try:
            return self._resolve(item, operands)
        except NotResolved as why:
            return self._host(item, operands, str(why))
        except Later as later:
            return self._later(item, operands, later)
        except (UnsupportedError, GraphError, ProgramError) as refusal:
            if (node.domain, node.op) not in HOST:
                raise
            return self._host(item, operands, refusal.what)
        except MISTAKES as problem:
            raise malformed(node, f"it cannot take these operands ({printable(str(problem))})") from problem

    def _operands(self, node: OnnxNode) -> Entries | None:
        """What the node reads; None if something is not there yet."""
        found = tuple(self.entry(name) if name else None for name in node.inputs)
        if any(name and entry is None for name, entry in zip(node.inputs, found, strict=True)):
            return None
        if (node.domain, node.op) in LOOPS and any(self.entry(name) is None for name in reads(node)):
            return None
        return found

    def _resolve(self, item: Work, operands: Entries) -> Sequence[Work]:
        """Entries, nodes of the graph, or nodes that stand for this one."""
        node = item.node
        structure = STRUCTURES.get((node.domain, node.op))
        if structure is not None:
            made = structure(self, item, operands)
            if isinstance(made, Expansion):
                return made.work
            self._resolved.append(title(node))
            self._name_results(node, made)
            return ()
        conversion = CONVERSIONS.get((node.domain, node.op))
        names = tuple(entry.name if isinstance(entry, Tensor) else None for entry in operands)
        if conversion is None:
            raise unsupported(
                node, "it draws random numbers" if node.op in _RANDOM else "there is no conversion for it"
            )
        if any(entry is not None and not isinstance(entry, Tensor) for entry in operands):
            raise NotResolved("an operand of a type that graphs do not have")
        results = conversion(self.context, node, names)
        self.compiled.append(title(node))
        self._name_results(node, tuple(map(Tensor, results)))
        return ()

    def _later(self, item: Work, operands: Entries, later: Later) -> Sequence[Work]:
        """A value is missing: the host has it at run time, or the next stage will be handed it."""
        node = item.node
        if (node.domain, node.op) in HOST:
            return self._host(item, operands, "it needs the value of an operand, which is only known at run time")
        if all(entry is None or self._at_hand(entry) for entry in operands):
            raise unsupported(node, f"it depends on the values of {self.context.type(later.name)}, too many to look at")
        self.rest.append(item)
        return ()

    def _at_hand(self, entry: Entry) -> bool:
        """Whether the next stage would know no more of it."""
        if isinstance(entry, Listed):
            return all(map(self._at_hand, entry.items))
        return not isinstance(entry, Tensor) or entry.name in self._inputs or self.context.now(entry.name) is not None

    def _host(self, item: Work, operands: Entries, reason: str) -> Sequence[Work]:
        """On the host: now where nothing depends on an input, otherwise at run time."""
        node = item.node
        if (node.domain, node.op) not in HOST and (node.domain, node.op) not in LOOPS:
            raise unsupported(node, reason)
        values = [self._value(entry) for entry in operands]
        if (node.domain, node.op) not in LOOPS and all(value is not _UNKNOWN for value in values):
            try:
                made = run(Call(node, opset(item), [_known(value) for value in values], self.limits.folded_bytes))
            except LimitError:
                self.hosted.append(Hosted(item, reason))
                return ()
            self._resolved.append(title(node))
            self._name_results(node, tuple(map(self._of_value, made)))
        else:
            self.hosted.append(Hosted(item, reason))
        return ()

    def _value(self, entry: Entry | None) -> object:
        """The value of ``entry`` if it is the same in every call."""
        if entry is None or isinstance(entry, Nothing):
            return None
        if isinstance(entry, Tensor):
            if prod(self.context.shape(entry.name)) > LARGEST_FOLDED:
                return _UNKNOWN
            found = self.context.fixed(entry.name)
            return _UNKNOWN if found is None else found
        if isinstance(entry, Held):
            return entry.recipe.value if isinstance(entry.recipe, Fixed) else _UNKNOWN
        items = [self._value(item) for item in entry.items]
        return _UNKNOWN if any(item is _UNKNOWN for item in items) else items

    def _name_results(self, node: OnnxNode, made: Sequence[Entry]) -> None:
        if len(made) < len(node.outputs):
            raise malformed(node, f"it has {len(node.outputs)} outputs, {len(made)} are made")
        for name, entry in zip(node.outputs, made, strict=False):
            if name:
                self._entries[name] = entry
                if isinstance(entry, Tensor):
                    self.context.names.setdefault(entry.name, name)

    def _of_given(self, value: HostValue, path: Path) -> Entry:
        if value is None:
            return NOTHING
        if isinstance(value, list):
            return Listed(tuple(self._of_given(item, (*path, at)) for at, item in enumerate(value)))
        dtype = from_numpy(value.dtype) if isinstance(value, np.ndarray) else None
        if dtype is None or not isinstance(value, np.ndarray):
            return Held(Given(path))
        name = self.context.input(dtype, value.shape, value)
        self._inputs[name] = path
        self.context.names[name] = path[0]
        return Tensor(name)

    def _of_value(self, value: HostValue) -> Entry:
        if value is None:
            return NOTHING
        if isinstance(value, list):
            return Listed(tuple(map(self._of_value, value)))
        return self.constant(value) if isinstance(value, np.ndarray) else Held(Fixed(value))

    def _recipe(self, entry: Entry, results: dict[str, int]) -> Recipe:
        """Where the value is after the graph has run; what the graph must make is added to ``results``."""
        if isinstance(entry, Nothing):
            return Fixed(None)
        if isinstance(entry, Held):
            return entry.recipe
        if isinstance(entry, Listed):
            return tuple(self._recipe(item, results) for item in entry.items)
        if entry.name in self._inputs:
            return Given(self._inputs[entry.name])
        known = self.context.now(entry.name)
        if known is None and prod(self.context.shape(entry.name)) <= LARGEST_FOLDED:
            known = self.context.fixed(entry.name)
        if known is not None:
            return Fixed(known)
        return Made(results.setdefault(entry.name, len(results)))


Repeated = Callable[[Making, Steps], tuple[Entry, ...]]
"""Makes a ``scan`` of a body."""
_UNKNOWN = object()
_RANDOM = frozenset(
    ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")
)
"""No two implementations draw the same."""


def _known(value: object) -> HostValue:
    assert value is None or isinstance(value, np.ndarray | list | dict)
    return value
