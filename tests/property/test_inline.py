"""A program without its moves computes the same bits, and so does one with fewer statements on whole numbers."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.graph.grouping import regions
from dovetail.ir.evaluate import evaluate
from dovetail.ir.fill import fill
from dovetail.ir.graph.bound import BoundGraph
from dovetail.ir.graph.verify import verify
from dovetail.ir.inline import inline
from dovetail.ir.merge import merge
from dovetail.ir.program import Program
from dovetail.ops.region import graph_program, region_program
from dovetail.ops.table import OPERATORS
from tests.property.graphs import graphs
from tests.property.programs import Case, programs
from tests.property.wide_programs import wide_programs


def check(program: Program, sizes: dict[str, int], seed: int) -> None:
    arrays = fill(program, seed, sizes)
    shorter = inline(program)
    expected, found = evaluate(program, arrays, sizes), evaluate(shorter, arrays, sizes)
    assert len(shorter.statements) <= len(program.statements)
    merged = merge(shorter)
    fewer = evaluate(merged, arrays, sizes)
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, err_msg=f"{program}\n->\n{shorter}")
        np.testing.assert_array_equal(fewer[name], array, err_msg=f"{shorter}\n->\n{merged}")


@given(graphs(), st.integers(0, 3))
@settings(max_examples=150, deadline=None)
def test_the_program_of_a_graph_is_the_same_without_its_moves(found: BoundGraph, seed: int) -> None:
    check(graph_program(found.graph, OPERATORS), {}, seed)


@given(graphs(), st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_the_program_of_a_region_is_the_same_without_its_moves(found: BoundGraph, seed: int) -> None:
    types = verify(found.graph, OPERATORS)
    for region in regions(found.graph, OPERATORS, types):
        if region.kind == "compiled":
            check(region_program(found.graph, region.nodes, OPERATORS, types), {}, seed)


@given(st.one_of(programs(indirect=True), wide_programs()), st.integers(0, 3))
@settings(max_examples=150, deadline=None)
def test_any_program_is_the_same_without_its_moves(case: Case, seed: int) -> None:
    check(case.program, case.sizes, seed)
