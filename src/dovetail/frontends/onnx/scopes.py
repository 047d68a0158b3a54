"""Names in graphs: each made once, before it is read, and seen by the graphs inside.

A node may stand before one that makes what it reads, as some exporters write them; such graphs are put in order. A name
that is made in a body hides nothing: what a graph around it made before cannot be made again inside.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import replace

from dovetail.base.errors import ModelError
from dovetail.base.words import printable
from dovetail.frontends.onnx.model import Attribute, OnnxGraph, OnnxNode

Scopes = tuple[set[str], ...]
"""Names made so far, of each graph from the outermost to the one at hand."""
CheckNode = Callable[[OnnxNode, str], None]
"""What else is asked of each node: the node and where it is."""


def ordered_graph(graph: OnnxGraph, outer: Scopes, check: CheckNode) -> OnnxGraph:
    """``graph`` with its nodes, and those of the graphs inside, each after those it reads from."""
    where = f"graph '{printable(graph.name)}'" if graph.name else "a graph"
    made: set[str] = set()
    for value in graph.inputs:
        if value.name in made:
            raise ModelError(f"two inputs have the name '{printable(value.name)}'", where=where)
        made.add(value.name)
    made.update(graph.initializers)
    nodes = ordered_nodes(graph.nodes, (*outer, made), check)
    for value in graph.outputs:
        if not _seen(value.name, (*outer, made)):
            raise ModelError(f"the output '{printable(value.name)}' is made by nothing", where=where)
    return replace(graph, nodes=nodes)


def ordered_nodes(nodes: tuple[OnnxNode, ...], scopes: Scopes, check: CheckNode) -> tuple[OnnxNode, ...]:
    """``nodes`` in an order of reading; the names they make are added to the innermost of ``scopes``."""
    if not _in_order(nodes, scopes):
        nodes = _sorted(nodes, scopes)
    done: list[OnnxNode] = []
    for node in nodes:
        check(node, describe(node))
        if any(True for _ in graphs_of(node)):
            attributes = {name: _ordered_attribute(value, scopes, check) for name, value in node.attributes.items()}
            node = replace(node, attributes=attributes)
        for name in node.outputs:
            _make(name, node, scopes)
        done.append(node)
    return tuple(done)


def describe(node: OnnxNode) -> str:
    """What a message calls a node."""
    named = node.name or next((name for name in node.outputs if name), "")
    return f"node '{printable(named)}' ({printable(node.op)})" if named else f"a node ({printable(node.op)})"


def graphs_of(node: OnnxNode) -> Iterator[OnnxGraph]:
    """The graphs among a node's attributes."""
    for value in node.attributes.values():
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, OnnxGraph):
                yield part


def _ordered_attribute(value: Attribute, scopes: Scopes, check: CheckNode) -> Attribute:
    if isinstance(value, OnnxGraph):
        return ordered_graph(value, scopes, check)
    if isinstance(value, tuple) and value and isinstance(value[0], OnnxGraph):
        return tuple(ordered_graph(graph, scopes, check) for graph in value if isinstance(graph, OnnxGraph))
    return value


def _make(name: str, node: OnnxNode, scopes: Scopes) -> None:
    if not name:
        return
    if _seen(name, scopes):
        raise ModelError(f"the name '{printable(name)}' is made twice", where=describe(node))
    scopes[-1].add(name)


def _seen(name: str, scopes: Scopes) -> bool:
    return any(name in made for made in scopes)


def _in_order(nodes: tuple[OnnxNode, ...], scopes: Scopes) -> bool:
    made: set[str] = set()
    for node in nodes:
        if any(name not in made and not _seen(name, scopes) for name in _reads(node)):
            return False
        made.update(node.outputs)
    return True


def _sorted(nodes: tuple[OnnxNode, ...], scopes: Scopes) -> tuple[OnnxNode, ...]:
    """The order of the file wherever what is read allows it."""
    maker = {name: at for at, node in enumerate(nodes) for name in node.outputs if name}
    waiting: list[int] = []
    readers: dict[int, list[int]] = {}
    for at, node in enumerate(nodes):
        needs = set()
        for name in _reads(node):
            if name in maker:
                needs.add(maker[name])
            elif not _seen(name, scopes):
                raise ModelError(f"the value '{printable(name)}' is read but made by nothing", where=describe(node))
        waiting.append(len(needs))
        for need in needs:
            readers.setdefault(need, []).append(at)
    ready = [at for at, count in enumerate(waiting) if not count]
    done: list[OnnxNode] = []
    while ready:
        at = heapq.heappop(ready)
        done.append(nodes[at])
        for reader in readers.get(at, ()):
            waiting[reader] -= 1
            if not waiting[reader]:
                heapq.heappush(ready, reader)
    if len(done) < len(nodes):
        stuck = next(node for node, count in zip(nodes, waiting, strict=True) if count)
        raise ModelError(
            "the graph is cyclic: a node needs its own result",
            where=describe(stuck),
            hint="a loop is the operator Loop or Scan",
        )
    return tuple(done)


def _reads(node: OnnxNode) -> set[str]:
    """The names that a node needs from around it: its inputs, and what graphs inside it do not make themselves."""
    names = {name for name in node.inputs if name}
    for graph in graphs_of(node):
        inner = {value.name for value in graph.outputs}
        made = {value.name for value in graph.inputs} | set(graph.initializers)
        for inside in graph.nodes:
            inner |= _reads(inside)
            made.update(inside.outputs)
        names |= inner - made
    return names
