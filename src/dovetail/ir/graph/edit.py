"""Graphs changed: values replaced by what new nodes make, what nothing needs left out.

    y = relu(h)            with y replaced by n, made by  n = max(h, zero)  ->    y = max(h, zero)
    z = add(y, x)                                                                 z = add(y, x)

What a new node makes in place of a value that is gone takes that value's name, so that outputs keep theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dovetail.base.errors import GraphError
from dovetail.ir.graph.graph import Graph, Node, Type, Value
from dovetail.ir.graph.verify import Operators, verify


@dataclass(frozen=True, slots=True)
class Replacement:
    """Each old value becomes another: one that ``nodes`` make, one of ``constants``, or one that is there.

    New names must be free (``free_names``); new nodes read old values, but none that they replace.
    """

    values: tuple[tuple[str, str], ...]
    nodes: tuple[Node, ...] = ()
    constants: tuple[Value, ...] = ()


def replace_values(
    graph: Graph, replacements: Iterable[Replacement], operators: Operators, types: Mapping[str, Type] | None = None
) -> Graph:
    """The graph after all ``replacements``, verified, without what nothing needs any more.

    No value is replaced twice. ``types`` are the graph's, where the caller has them. Raises a GraphError where a
    replacement has another type, or needs what it replaces.
    """
    chosen = tuple(replacements)
    types = verify(graph, operators) if types is None else types
    instead = _instead(chosen)
    nodes = [_renamed(node, instead) for node in (*graph.nodes, *(node for r in chosen for node in r.nodes))]
    constants = (*graph.constants, *(value for r in chosen for value in r.constants))
    outputs = tuple(instead.get(name, name) for name in graph.outputs)
    changed = without_dead(replace(graph, nodes=tuple(nodes), outputs=outputs, constants=constants))
    changed = replace(changed, nodes=_in_order(changed))
    names = _kept_names(changed, chosen, instead)
    changed = replace(
        changed,
        nodes=tuple(_renamed(node, names, results=True) for node in changed.nodes),
        outputs=tuple(names.get(name, name) for name in changed.outputs),
    )
    _check_types(instead, names, types, verify(changed, operators))
    return changed


def without_dead(graph: Graph) -> Graph:
    """The graph without nodes and constants that no output needs."""
    producers = {name: node for node in graph.nodes for name in node.results}
    needed, waiting = set(graph.outputs), list(graph.outputs)
    while waiting:
        node = producers.get(waiting.pop())
        for name in () if node is None else node.operands:
            if name not in needed:
                needed.add(name)
                waiting.append(name)
    nodes = tuple(node for node in graph.nodes if not needed.isdisjoint(node.results))
    return replace(graph, nodes=nodes, constants=tuple(v for v in graph.constants if v.name in needed))


def free_names(graph: Graph, prefix: str = "v") -> Iterator[str]:
    """Names that nothing in ``graph`` has."""
    taken, number = graph.names(), 0
    while True:
        if (name := f"{prefix}{number}") not in taken:
            yield name
        number += 1


def _instead(chosen: Sequence[Replacement]) -> dict[str, str]:
    """For each replaced value, what stands in its place in the end."""
    direct: dict[str, str] = {}
    for replacement in chosen:
        for old, new in replacement.values:
            if old in direct:
                raise GraphError(f"'{old}' is replaced twice", why=f"by '{direct[old]}' and by '{new}'")
            direct[old] = new
    found = {}
    for old, new in direct.items():
        seen = {old}
        while new in direct:
            if new in seen:
                raise GraphError(f"'{old}' is replaced by itself")
            seen.add(new)
            new = direct[new]
        found[old] = new
    return found


def _renamed(node: Node, names: Mapping[str, str], results: bool = False) -> Node:
    if names.keys().isdisjoint((*node.operands, *node.results)):
        return node
    operands = tuple(names.get(name, name) for name in node.operands)
    made = tuple(names.get(name, name) for name in node.results) if results else node.results
    return replace(node, operands=operands, results=made)


def _in_order(graph: Graph) -> tuple[Node, ...]:
    """The nodes, each behind those it needs, and otherwise as they are."""
    producers = {name: node for node in graph.nodes for name in node.results}
    done: dict[str, bool] = {}
    ordered: list[Node] = []
    for start in graph.nodes:
        waiting = [start]
        while waiting:
            node = waiting[-1]
            key = node.results[0]
            first = key not in done
            done.setdefault(key, False)
            makers = [p for name in node.operands if (p := producers.get(name)) is not None]
            missing = [p for p in makers if not done.get(p.results[0])]
            if first and any(p.results[0] in done for p in missing):
                raise GraphError(
                    "the graph runs in a circle", where=node.place, why="a new node needs what it replaces"
                )
            if missing and first:
                waiting += missing
                continue
            waiting.pop()
            if not done[key]:
                done[key] = True
                ordered.append(node)
    return tuple(ordered)


def _kept_names(graph: Graph, chosen: Sequence[Replacement], instead: Mapping[str, str]) -> dict[str, str]:
    """New values that take the name of one that is gone."""
    made = {name for r in chosen for node in r.nodes for name in node.results}
    left = {name for node in graph.nodes for name in node.results}
    names: dict[str, str] = {}
    for old, new in instead.items():
        if new in made and new not in names and old not in left:
            names[new] = old
    return names


def _check_types(
    instead: Mapping[str, str], names: Mapping[str, str], types: Mapping[str, Type], found: Mapping[str, Type]
) -> None:
    for old, new in instead.items():
        now = found.get(names.get(new, new))
        if now is not None and now != types[old]:
            raise GraphError(f"'{old}' is {types[old]}, its replacement is {now}")
