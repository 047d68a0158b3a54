"""Passes take time in proportion to the nodes of a graph, whatever its form."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

import pytest

from dovetail.graph.grouping import regions
from dovetail.graph.optimise import FINISH, PASSES
from dovetail.ir.graph.bound import BoundGraph
from dovetail.ir.graph.verify import verify
from dovetail.model.programs import canonical_program
from dovetail.ops.table import OPERATORS
from tests.unit.graph.large import answered, emptied, fanned, mixed

SMALL, LARGE = 500, 4000
MOST = 3.0
"""Time for each node of the larger graph over that of the smaller: 8 where pairs of nodes are looked at, 1.0 to 1.8 as
it is, since the larger graph does not fit the caches of a processor."""
REPEATS, ATTEMPTS = 2, 3
"""Another process may take half of a core meanwhile: once is enough to show that it can be done."""


def _all_passes(bound: BoundGraph) -> None:
    for one in (*PASSES, *FINISH):
        bound, _ = one(bound, OPERATORS)
    types = verify(bound.graph, OPERATORS)
    for region in regions(bound.graph, OPERATORS, types):
        if region.kind == "compiled":
            canonical_program(bound.graph, region.nodes, OPERATORS, types)


def _seconds_a_node(make: Callable[[int], BoundGraph], count: int) -> float:
    """The least of several runs, of this process's own time; each run has a graph of its own, which knows nothing."""
    best = float("inf")
    for _ in range(REPEATS):
        bound = make(count)
        gc.collect()
        begun = time.process_time()
        _all_passes(bound)
        best = min(best, time.process_time() - begun)
    return best / len(bound.graph.nodes)


@pytest.mark.parametrize("make", [mixed, fanned, answered, emptied])
def test_a_node_of_a_large_graph_takes_as_long_as_one_of_a_small_graph(make: Callable[[int], BoundGraph]) -> None:
    _all_passes(make(SMALL // 10))
    seen = []
    for _ in range(ATTEMPTS):
        small, large = _seconds_a_node(make, SMALL), _seconds_a_node(make, LARGE)
        seen.append(f"{1e6 * small:.0f} us a node of {SMALL}, {1e6 * large:.0f} us of {LARGE}")
        if large < MOST * small:
            return
    raise AssertionError("; ".join(seen))
