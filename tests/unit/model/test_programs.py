from __future__ import annotations

from dovetail.ir.graph.build import Builder
from dovetail.ir.parse import parse
from dovetail.model.programs import canonical_program
from dovetail.ops.table import OPERATORS
from tests.unit.model.graphs import kind


def test_equal_regions_of_a_graph_are_one_program() -> None:
    b = Builder("twice", OPERATORS)
    x, w = b.input("x0", kind("f32", 4, 4)), b.constant("c0", kind("f32", 4, 4))
    for _ in range(2):
        x = b.add("relu", b.add("matmul", x, w))
    graph = b.graph(x)
    first, second = (
        canonical_program(graph, nodes, OPERATORS, b.types) for nodes in (graph.nodes[:2], graph.nodes[2:])
    )
    assert str(first.program) == str(second.program)
    assert first.names == {"a0": "x0", "a1": "c0", "a2": "v1"}
    assert second.names == {"a0": "v1", "a1": "c0", "a2": "v3"}


def test_no_tensor_has_the_name_of_a_loop() -> None:
    b = Builder("steps", OPERATORS)
    y = b.add("cumsum", b.input("x0", kind("f32", 4, 4)), axis=0)
    graph = b.graph(y)
    program = canonical_program(graph, graph.nodes, OPERATORS, b.types).program
    assert parse(str(program)) == program
