"""Nodes and constants that no output needs are left out."""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.graph.record import Passed, Record, counted
from dovetail.ir.graph.bound import BoundGraph
from dovetail.ir.graph.edit import without_dead
from dovetail.ir.graph.verify import Operators


@dataclass(frozen=True, slots=True)
class DeadCode:
    """y = relu(x); z = exp(x); -> (y)        ->        y = relu(x); -> (y)"""

    name: str = "dead-code"

    def __call__(self, bound: BoundGraph, operators: Operators) -> Passed:
        graph = without_dead(bound.graph)
        gone = len(bound.graph.nodes) - len(graph.nodes)
        unread = len(bound.graph.constants) - len(graph.constants)
        if not gone and not unread:
            return bound, ()
        data = {value.name: bound.data[value.name] for value in graph.constants}
        what = f"{counted(gone, 'node')} and {counted(unread, 'constant')} left out"
        return BoundGraph(graph, data, bound.names), (Record(self.name, what, "no output needs them"),)
