"""Patterns found by brute force: every subgraph isomorphism that networkx finds, then every rule of a match by itself.

A graph becomes operations and operand slots: producer -> slot -> operation. Holes are no nodes: two of them may be one
value. What is left is checked by hand: holes that stand for one value, values that others read, circles.
"""

from collections.abc import Iterator

import networkx as nx
from networkx.algorithms.isomorphism import DiGraphMatcher

from dovetail.ir.graph.graph import Graph, Node
from dovetail.ops.table import OPERATORS
from dovetail.rewrite.patterns.form import Chain, Form, FormBuilder, Hole, Item, Operation, Part, Result

Key = tuple[tuple[str, ...], frozenset[tuple[str, str]], frozenset[str]]
"""Sinks, holes, and the nodes inside."""


def brute_matches(graph: Graph, form: Form) -> set[Key]:
    """Every match of a form without repetitions."""
    whole, wanted = _graph(graph), _form(form)
    matcher = DiGraphMatcher(whole, wanted, _same_node, _same_edge)
    found = (_match(graph, form, {small: large for large, small in one.items()}, whole) for one in _maps(matcher))
    return {key for key in found if key is not None}


def unrolled(chain: Chain, count: int) -> Form:
    """A form that is a repetition, as so many steps; what each step has of its own is called b_0, b_1, ..."""
    builder = FormBuilder()
    value = builder.add(Hole("start"))
    for step in range(count):
        places: list[int] = []
        for part in chain.step.parts:
            places.append(_step_part(builder, part, places, chain.previous, value, step))
        value = places[chain.step.sinks[0]]
    return builder.form(value)


def _step_part(builder: FormBuilder, part: Part, places: list[int], previous: str, value: int, step: int) -> int:
    match part:
        case Hole(name):
            return value if name == previous else builder.add(part)
        case Item(name):
            return builder.add(Hole(f"{name}_{step}"))
        case Operation(op, operands, attributes, results):
            return builder.add(Operation(op, tuple(places[one] for one in operands), attributes, results))
    raise AssertionError("steps of these tests are plain")


def _maps(matcher: DiGraphMatcher) -> Iterator[dict[object, object]]:
    yield from matcher.subgraph_monomorphisms_iter()


def _graph(graph: Graph) -> nx.DiGraph:
    made: dict[str, tuple[str, int]] = {}
    found = nx.DiGraph()
    for node in graph.nodes:
        _add(found, node.results[0], node.op, len(node.operands), len(node.results))
        for place, value in enumerate(node.operands):
            if value in made:
                producer, number = made[value]
                found.add_edge(producer, (node.results[0], place), number=number)
        made.update((name, (node.results[0], number)) for number, name in enumerate(node.results))
    return found


def _form(form: Form) -> nx.DiGraph:
    found = nx.DiGraph()
    for place, part in enumerate(form.parts):
        if isinstance(part, Operation):
            _add(found, place, part.op, len(part.operands), part.results)
            for slot, operand in enumerate(part.operands):
                made = form.parts[operand]
                if isinstance(made, Operation):
                    found.add_edge(operand, (place, slot), number=0)
                elif isinstance(made, Result):
                    found.add_edge(made.operation, (place, slot), number=made.number)
    return found


def _add(graph: nx.DiGraph, name: object, op: str, operands: int, results: int) -> None:
    graph.add_node(name, label=(op, operands, results))
    exchanged = OPERATORS[op].commutative
    for slot in range(operands):
        graph.add_node((name, slot), label=("slot", "either" if exchanged and slot < 2 else slot, op))
        graph.add_edge((name, slot), name, number=-1)


def _same_node(first: dict[str, object], second: dict[str, object]) -> bool:
    return first["label"] == second["label"]


def _same_edge(first: dict[str, object], second: dict[str, object]) -> bool:
    return first["number"] == second["number"]


def _match(graph: Graph, form: Form, at: dict[object, object], whole: nx.DiGraph) -> Key | None:
    holes: dict[str, str] = {}
    nodes = {place: _node(graph, at[place]) for place, part in enumerate(form.parts) if isinstance(part, Operation)}
    reads: dict[tuple[int, int], int] = {}
    for place, part in enumerate(form.parts):
        if not isinstance(part, Operation):
            continue
        for slot, operand in enumerate(part.operands):
            target = at[(place, slot)]
            assert isinstance(target, tuple)
            value, wanted = nodes[place].operands[target[1]], form.parts[operand]
            if isinstance(wanted, Hole) and holes.setdefault(wanted.name, value) != value:
                return None
            if isinstance(wanted, Operation | Result):
                source = (operand, 0) if isinstance(wanted, Operation) else (wanted.operation, wanted.number)
                reads[source] = reads.get(source, 0) + 1
    sinks = {_source(form, sink) for sink in form.sinks}
    for place, node in nodes.items():
        for number, value in enumerate(node.results):
            if (place, number) not in sinks and _uses(graph, value) != reads.get((place, number), 0):
                return None
    inside = frozenset(node.results[0] for node in nodes.values())
    if any(_is_made_of(graph, value, inside) for value in holes.values()):
        return None
    values = tuple(nodes[place].results[number] for place, number in (_source(form, sink) for sink in form.sinks))
    return values, frozenset(holes.items()), inside


def _source(form: Form, sink: int) -> tuple[int, int]:
    part = form.parts[sink]
    return (part.operation, part.number) if isinstance(part, Result) else (sink, 0)


def _node(graph: Graph, name: object) -> Node:
    assert isinstance(name, str)
    found = graph.producer(name)
    assert found is not None
    return found


def _uses(graph: Graph, value: str) -> int:
    return sum(node.operands.count(value) for node in graph.nodes) + graph.outputs.count(value)


def _is_made_of(graph: Graph, value: str, inside: frozenset[str]) -> bool:
    node = graph.producer(value)
    if node is None:
        return False
    return node.results[0] in inside or any(_is_made_of(graph, one, inside) for one in node.operands)


def longest(graph: Graph, chain: Chain, most: int) -> dict[str, tuple[int, set[Key]]]:
    """For each value that a repetition ends at: how many steps it has at most, and the matches that have them."""
    found: dict[str, tuple[int, set[Key]]] = {}
    for count in range(1, most + 1):
        matches = brute_matches(graph, unrolled(chain, count))
        if not matches:
            break
        for sink in {key[0][0] for key in matches}:
            found[sink] = (count, {key for key in matches if key[0][0] == sink})
    return found
