"""A ``scan`` taken apart: which value of its body is fed by what outside, and what of it goes where.

last, all = scan(h, x, w) {carried = 1, scanned = 1}        carried  h0 from h, n on, into last
  of graph step(h0, x0, w0) -> (n, y)                 ->    scanned  x0 from x
                                                            shared   w0 from w
                                                            stacked  y into all
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dovetail.graph.sheet import Sheet
from dovetail.ir.graph.edit import without_dead
from dovetail.ir.graph.graph import SCAN, Attribute, Graph, Node, Type, Value
from dovetail.ir.graph.scan import repetition
from dovetail.ir.graph.verify import Operators, infer, result_types


@dataclass(frozen=True, slots=True)
class State:
    """``value`` of the body is ``first`` at the first step, and then what ``next_`` was; ``result`` is the last."""

    value: Value
    first: str
    next_: str
    result: str


@dataclass(frozen=True, slots=True)
class Fed:
    """``value`` of the body, and what it is, or a part of, outside."""

    value: Value
    outer: str


@dataclass(frozen=True, slots=True)
class Stacked:
    """``value`` of the body at all steps is ``result`` outside."""

    value: str
    result: str


@dataclass(frozen=True, slots=True)
class Scan:
    """All parts; ``nodes`` in an order in which they can run."""

    states: tuple[State, ...]
    scanned: tuple[Fed, ...]
    shared: tuple[Fed, ...]
    nodes: tuple[Node, ...]
    stacks: tuple[Stacked, ...]
    steps: int
    settings: tuple[tuple[str, Attribute], ...] = ()
    """Attributes other than counts: directions."""
    name: str = "step"

    @property
    def inputs(self) -> tuple[Value, ...]:
        fed = (*self.scanned, *self.shared)
        return (*(state.value for state in self.states), *(part.value for part in fed))

    @property
    def outputs(self) -> tuple[str, ...]:
        return (*(state.next_ for state in self.states), *(stack.value for stack in self.stacks))

    @property
    def results(self) -> tuple[str, ...]:
        return (*(state.result for state in self.states), *(stack.result for stack in self.stacks))

    def body(self) -> Graph:
        return Graph(self.name, self.inputs, self.outputs, self.nodes)

    def types(self, operators: Operators) -> dict[str, Type]:
        return infer(self.body(), operators)

    def moving(self) -> set[str]:
        """Values that need a state."""
        found = {state.value.name for state in self.states}
        for node in self.nodes:
            if not found.isdisjoint(node.operands):
                found.update(node.results)
        return found

    def outer_of(self) -> dict[str, str]:
        """What each shared value is outside."""
        return {fed.value.name: fed.outer for fed in self.shared}

    def node(self) -> Node:
        """The ``scan`` again."""
        first = tuple(state.first for state in self.states)
        operands = (*first, *(fed.outer for fed in (*self.scanned, *self.shared)))
        counts: dict[str, Attribute] = {"carried": len(self.states), "scanned": len(self.scanned)}
        if not self.scanned:
            counts["steps"] = self.steps
        attributes = tuple(sorted((*counts.items(), *self.settings)))
        return Node(SCAN, operands, self.results, attributes, (self.body(),))


def opened(node: Node, types: Mapping[str, Type]) -> Scan | None:
    """The parts of a ``scan``; None where the number of its steps is not known."""
    how = repetition(node, tuple(types[name] for name in node.operands))
    if not how.steps.is_constant:
        return None
    body, count, first = node.bodies[0], how.carried, how.carried + how.scanned
    pairs = list(zip(body.inputs, node.operands, strict=True))
    states = tuple(
        State(value, outer, body.outputs[k], node.results[k]) for k, (value, outer) in enumerate(pairs[:count])
    )
    stacks = tuple(Stacked(v, r) for v, r in zip(body.outputs[count:], node.results[count:], strict=True))
    settings = tuple((name, value) for name, value in node.attributes if name not in ("carried", "scanned", "steps"))
    scanned, shared = (tuple(Fed(*pair) for pair in part) for part in (pairs[count:first], pairs[first:]))
    return Scan(states, scanned, shared, body.nodes, stacks, how.steps.const, settings, body.name)


def exchange(sheet: Sheet, old: Scan, new: Scan) -> Scan:
    """``new`` in the place of ``old``: results of the same name become those of the new node, under new names."""
    names = dict(zip(new.results, _free_names(sheet, len(new.results)), strict=True))
    states = tuple(replace(state, result=names[state.result]) for state in new.states)
    stacks = tuple(replace(stack, result=names[stack.result]) for stack in new.stacks)
    made = replace(new, states=states, stacks=stacks)
    sheet.insert(made.node())
    for result in old.results:
        if result in names:
            sheet.replace(result, names[result])
    return made


def _free_names(sheet: Sheet, count: int) -> Iterator[str]:
    number = 0
    while count:
        if (name := f"s{number}") not in sheet.types:
            count -= 1
            yield name
        number += 1


class Body:
    """The nodes of a body while they change; names are given out here."""

    def __init__(self, scan: Scan, operators: Operators) -> None:
        self.scan, self.operators = scan, operators
        self.types = scan.types(operators)
        self.nodes: dict[str, Node] = {node.results[0]: node for node in scan.nodes}
        self.shared: dict[str, Fed] = {fed.value.name: fed for fed in scan.shared}
        self._instead: dict[str, str] = {}
        self._count = 0

    def maker(self, value: str) -> Node | None:
        return next((node for node in self.nodes.values() if value in node.results), None)

    def readers(self, value: str) -> list[Node]:
        return [node for node in self.nodes.values() if value in node.operands]

    def uses(self, value: str) -> int:
        outputs = [self._instead.get(name, name) for name in self.scan.outputs]
        return sum(node.operands.count(value) for node in self.nodes.values()) + outputs.count(value)

    def add(self, op: str, *operands: str, **attributes: Attribute) -> str:
        """What a new node makes."""
        return self.insert(Node(op, operands, (self.fresh(),), tuple(sorted(attributes.items()))))[0]

    def insert(self, node: Node) -> tuple[str, ...]:
        self.types.update(zip(node.results, result_types(node, self.types, self.operators, {}), strict=True))
        self.nodes[node.results[0]] = node
        return node.results

    def share(self, outer: str, t: Type) -> str:
        """A value outside, at every step."""
        for name, fed in self.shared.items():
            if fed.outer == outer:
                return name
        name = self.fresh()
        self.shared[name] = Fed(Value(name, t), outer)
        self.types[name] = t
        return name

    def replace(self, old: str, new: str) -> None:
        """Everything that reads ``old`` reads ``new``."""
        for key, node in list(self.nodes.items()):
            if old in node.operands:
                names = tuple(new if name == old else name for name in node.operands)
                self.nodes[key] = replace(node, operands=names)
        self._instead = {name: new if to == old else to for name, to in self._instead.items()} | {old: new}

    def fresh(self) -> str:
        while (name := f"b{self._count}") in self.types:
            self._count += 1
        return name

    def finish(self) -> Scan:
        """The scan with the body as it is now, without what nothing needs."""
        states = tuple(replace(s, next_=self._instead.get(s.next_, s.next_)) for s in self.scan.states)
        stacks = tuple(replace(s, value=self._instead.get(s.value, s.value)) for s in self.scan.stacks)
        made = replace(self.scan, states=states, stacks=stacks, shared=tuple(self.shared.values()))
        return tidy(replace(made, nodes=tuple(self.nodes.values())))


def tidy(scan: Scan) -> Scan:
    """Without nodes and operands that nothing needs, and in order."""
    graph = without_dead(Graph(scan.name, (), scan.outputs, scan.nodes))
    nodes = tuple(_in_order(graph.nodes))
    read = {name for node in nodes for name in node.operands} | set(scan.outputs)
    shared = tuple(fed for fed in scan.shared if fed.value.name in read)
    scanned = tuple(fed for fed in scan.scanned if fed.value.name in read)
    return replace(scan, nodes=nodes, shared=shared, scanned=scanned)


def _in_order(nodes: Sequence[Node]) -> Iterable[Node]:
    makers = {name: node for node in nodes for name in node.results}
    done: set[str] = set()
    for start in nodes:
        waiting = [start]
        while waiting:
            node = waiting[-1]
            missing = [m for name in node.operands if (m := makers.get(name)) is not None and m.results[0] not in done]
            if not missing or node.results[0] in done:
                waiting.pop()
                if node.results[0] not in done:
                    done.add(node.results[0])
                    yield node
            else:
                waiting += missing
