"""A form made ready for the search: what can be worked out once, for all graphs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

from dovetail.base.errors import PatternError
from dovetail.ir.graph.graph import Node
from dovetail.ops.table import OPERATORS
from dovetail.rewrite.graph_host import as_value
from dovetail.rewrite.graph_rule import attribute_pattern
from dovetail.rewrite.patterns.form import Chain, Form, Hole, Item, Number, Operation, Part, Result, reads
from dovetail.rewrite.patterns.index import GraphIndex, Label, Step

Route = tuple[int, tuple[int, ...]]
"""A part that is bound before, and the parts that lead down from it to a sink, which is the last."""


@dataclass(frozen=True, slots=True, eq=False)
class Needle:
    """``reads`` says how often each part is read inside the form; ``sinks`` are in the order of the search."""

    form: Form
    parts: tuple[Part, ...]
    steps: tuple[Step | None, ...]
    reads: tuple[int, ...]
    is_sink: tuple[bool, ...]
    sinks: tuple[int, ...]
    routes: tuple[Route | None, ...]
    """For each sink how to come to it; None for the first, and for one that is bound already."""
    operation_at: tuple[int | None, ...]
    """For each part the operation that makes it; None for a hole, a number or a chain."""
    labels: tuple[Label | None, ...]
    """For each part what it must be made by; None where it may be anything."""
    operands: tuple[tuple[int, ...], ...]
    """For each part the operands of the operation that makes it."""
    is_leaf: tuple[bool, ...]
    """Holes and numbers."""

    @property
    def anchor(self) -> Label:
        """What the node of the first sink looks like."""
        found = self.labels[self.sinks[0]]
        assert found is not None, "sinks are made by operators"
        return found

    def may_be(self, place: int, value: str, index: GraphIndex) -> bool:
        """Whether a value can be a part, by what it and its operands are made by and how often they are read."""
        wanted = self.labels[place]
        if wanted is None:
            return True
        if index.labels.get(value) != wanted:
            return False
        if not self.is_sink[place] and index.uses[value] != self.reads[place]:
            return False
        operation = self.operation_at[place]
        if operation is None:
            return True
        step, node = self.steps[operation], index.makers[value]
        parts, operands = self.operands[place], node.operands
        if self.may_be_all(parts, operands, index):
            return True
        if step is None or not step.commutative:
            return False
        return self.may_be_all(parts, (operands[1], operands[0], *operands[2:]), index)

    def may_read(self, place: int, node: Node, index: GraphIndex) -> bool:
        """``may_be`` of the operands alone, one level deep: the same for all nodes of one signature."""
        operation = self.operation_at[place]
        assert operation is not None
        step, given = self.steps[operation], node.operands
        if self._alike(self.operands[place], given, index):
            return True
        if step is None or not step.commutative:
            return False
        return self._alike(self.operands[place], (given[1], given[0], *given[2:]), index)

    def _alike(self, parts: tuple[int, ...], values: tuple[str, ...], index: GraphIndex) -> bool:
        for place, value in zip(parts, values, strict=True):
            wanted = self.labels[place]
            if wanted is None:
                continue
            if index.labels.get(value) != wanted:
                return False
            if not self.is_sink[place] and index.uses[value] != self.reads[place]:
                return False
        return True

    def may_be_all(self, parts: tuple[int, ...], values: tuple[str, ...], index: GraphIndex) -> bool:
        """Whether each value can be its part."""
        for place, value in zip(parts, values, strict=True):
            if self.labels[place] is not None and not self.may_be(place, value, index):
                return False
        return True


@lru_cache(maxsize=4096)
def needle(form: Form, name: str = "") -> Needle:
    """A PatternError where sinks have nothing in common."""
    counted = Counter(place for part in form.parts for place in reads(part) if not isinstance(part, Result))
    results: dict[int, dict[int, int]] = {}
    for place, part in enumerate(form.parts):
        if isinstance(part, Result):
            results.setdefault(part.operation, {})[part.number] = place
    steps = tuple(_step(place, part, results.get(place, {})) for place, part in enumerate(form.parts))
    order, routes = _ordered(form, name)
    makers = tuple(_operation_at(place, part) for place, part in enumerate(form.parts))
    return Needle(
        form,
        form.parts,
        steps,
        tuple(counted[place] for place in range(len(form.parts))),
        tuple(place in form.sinks for place in range(len(form.parts))),
        order,
        routes,
        makers,
        tuple(_label(part, steps, maker) for part, maker in zip(form.parts, makers, strict=True)),
        tuple(() if maker is None else reads(form.parts[maker]) for maker in makers),
        tuple(isinstance(part, Hole | Item | Number) for part in form.parts),
    )


def _step(place: int, part: Part, results: dict[int, int]) -> Step | None:
    if not isinstance(part, Operation):
        return None
    known = OPERATORS[part.op]
    named = {name: attribute_pattern(term) for name, term in part.attributes}
    defaults = {name: as_value(p.default) for name, p in known.attributes.items() if name not in named}
    label = (part.op, len(part.operands), part.results)
    makes = (place,) if part.results == 1 else tuple(results.get(number) for number in range(part.results))
    return Step(label, tuple({**named, **defaults}.items()), known.commutative and len(part.operands) > 1, makes)


def _operation_at(place: int, part: Part) -> int | None:
    if isinstance(part, Result):
        return part.operation
    return place if isinstance(part, Operation) else None


def _label(part: Part, steps: tuple[Step | None, ...], maker: int | None) -> Label | None:
    """A chain is made by what its step is made by."""
    if isinstance(part, Chain):
        return needle(part.step).anchor
    step = None if maker is None else steps[maker]
    return None if step is None else step.label


def _ordered(form: Form, name: str) -> tuple[tuple[int, ...], tuple[Route | None, ...]]:
    """The sinks, each connected with those before it, and the way to it."""
    order, routes = [form.sinks[0]], list[Route | None]([None])
    bound = _above(form, form.sinks[0])
    waiting = list(form.sinks[1:])
    while waiting:
        for sink in waiting:
            if sink in bound:
                order.append(sink)
                routes.append(None)
                break
            route = _route(form, sink, bound)
            if route is not None:
                order.append(sink)
                routes.append(route)
                break
        else:
            why = "they are found by walking up from one, and down to the next, from what both read"
            raise PatternError("the values that the pattern makes share nothing", where=f"pattern '{name}'", why=why)
        bound |= _above(form, order[-1])
        waiting.remove(order[-1])
    return tuple(order), tuple(routes)


def _above(form: Form, sink: int) -> set[int]:
    found, waiting = set[int](), [sink]
    while waiting:
        place = waiting.pop()
        if place not in found:
            found.add(place)
            waiting += reads(form.parts[place])
    return found


def _route(form: Form, sink: int, bound: set[int]) -> Route | None:
    """The shortest way up from a sink to what is bound, turned round; not through a repetition."""
    waiting: list[tuple[int, tuple[int, ...]]] = [(sink, (sink,))]
    while waiting:
        place, path = waiting.pop(0)
        part = form.parts[place]
        if place in bound and not isinstance(part, Number | Item):
            return place, path[1:]
        if isinstance(part, Chain | Hole):
            continue
        waiting += [(above, (above, *path)) for above in reads(part)]
    return None
