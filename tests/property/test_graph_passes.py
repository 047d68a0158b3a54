"""Passes keep what a graph computes; regions cover it, in order, and compute it piece by piece."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.graph.grouping import regions
from dovetail.graph.optimise import FINISH, PASSES, optimise
from dovetail.graph.record import Pass
from dovetail.ir.evaluate import evaluate as evaluate_program
from dovetail.ir.graph.bound import BoundGraph
from dovetail.ir.graph.evaluate import Array, evaluate, run_node
from dovetail.ir.graph.verify import infer, verify
from dovetail.ir.inline import inline
from dovetail.ops.region import region_program
from dovetail.ops.table import OPERATORS
from tests.property.graphs import graphs
from tests.unit.graph.models import numbers_of


def inputs_of(found: BoundGraph, seed: int) -> dict[str, Array]:
    numbers = np.random.default_rng(seed)
    return {value.name: numbers_of(value.type, numbers) for value in found.graph.inputs}


def same(before: BoundGraph, after: BoundGraph, seed: int) -> None:
    verify(after.graph, OPERATORS)
    assert after.graph.outputs == before.graph.outputs
    assert {value.name for value in after.graph.constants} == set(after.data)
    inputs = inputs_of(before, seed)
    expected = evaluate(before.graph, OPERATORS, inputs, before.data)
    found = evaluate(after.graph, OPERATORS, inputs, after.data)
    for name, array in expected.items():
        assert found[name].shape == array.shape
        np.testing.assert_array_equal(found[name], array, err_msg=f"{before.graph}\n->\n{after.graph}")


@pytest.mark.parametrize("one", (*PASSES, *FINISH), ids=[one.name for one in (*PASSES, *FINISH)])
@given(graphs(), st.integers(0, 3))
@settings(max_examples=40, deadline=None)
def test_a_pass_keeps_what_a_graph_computes(one: Pass, found: BoundGraph, seed: int) -> None:
    after, records = one(found, OPERATORS)
    same(found, after, seed)
    assert (after is found) or records
    assert all(record.pass_ == one.name for record in records)


@given(graphs(), st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_all_passes_keep_what_a_graph_computes(found: BoundGraph, seed: int) -> None:
    same(found, optimise(found, OPERATORS)[0], seed)


@given(graphs(most_nodes=14), st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_regions_one_after_the_other_compute_the_graph(found: BoundGraph, seed: int) -> None:
    found = optimise(found, OPERATORS)[0] if seed % 2 else found
    graph = found.graph
    types = infer(graph, OPERATORS)
    inputs = inputs_of(found, seed)
    values = {**inputs, **found.data}
    met: list[str] = []
    for region in regions(graph, OPERATORS, types):
        met += [node.results[0] for node in region.nodes]
        if region.kind == "compiled":
            program = inline(region_program(graph, region.nodes, OPERATORS, types))
            values.update(evaluate_program(program, {t.name: values[t.name] for t in program.inputs}))
            continue
        (node,) = region.nodes
        values.update(zip(node.results, run_node(node, types, OPERATORS, values, {}, {}), strict=True))
    assert sorted(met) == sorted(node.results[0] for node in graph.nodes)
    for name, array in evaluate(graph, OPERATORS, inputs, found.data).items():
        np.testing.assert_array_equal(values[name], array, err_msg=str(graph))
