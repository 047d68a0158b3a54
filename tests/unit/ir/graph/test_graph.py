"""The text of graphs, the links between nodes, and how graphs are built."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.base.dtypes import DTYPES
from dovetail.base.errors import GraphError, OperatorError, ParseError
from dovetail.ir.graph.build import Builder
from dovetail.ir.graph.graph import Attribute, Graph, Node, SmallTensor, Type, Value, node
from dovetail.ir.graph.parse import parse, parse_type
from dovetail.ir.graph.verify import verify
from dovetail.ops.table import OPERATORS
from tests.unit.ir.graph.random_graphs import random_graph

MLP = """\
graph mlp(x: f32[1, 64]) -> (y)
  const w: f32[128, 64]
  h = matmul(x, w) {transpose_b = 1}
  r = relu(h)
  y = mul(r, r)"""

names = st.text("abxy_", min_size=1, max_size=3)
numbers = st.integers(-(2**40), 2**40)
floats = st.floats(allow_nan=False, width=64)
attributes: st.SearchStrategy[Attribute] = st.one_of(
    numbers,
    floats,
    st.text(max_size=8),
    st.lists(numbers, max_size=3).map(tuple),
    st.lists(floats, min_size=1, max_size=3).map(tuple),
    st.builds(SmallTensor, st.just(DTYPES["i32"]), st.just((2,)), st.tuples(numbers, numbers)),
    st.builds(SmallTensor, st.just(DTYPES["f32"]), st.just(()), st.tuples(floats)),
)
types = st.sampled_from(["f32[]", "f32[2, 3]", "i8[N]", "bool[2 * N + 1, 0]", "bf16[(N + 1) // 2]"])


@st.composite
def graphs(draw: st.DrawFn, depth: int = 1) -> Graph:
    """Any text that can be read, valid or not."""
    sizes = parse("size N in 0..9 graph g() -> ()").sizes
    values = st.builds(Value, names, types.map(lambda text: parse_type(text, sizes)))
    some = st.lists(names, max_size=3).map(tuple)
    bodies = st.lists(graphs(0), max_size=2).map(tuple) if depth else st.just(())
    settled = st.dictionaries(names, attributes, max_size=3).map(lambda found: tuple(sorted(found.items())))
    nodes = st.builds(Node, names, some, st.lists(names, min_size=1, max_size=2).map(tuple), settled, bodies)
    return Graph(
        draw(names),
        tuple(draw(st.lists(values, max_size=2))),
        draw(some),
        tuple(draw(st.lists(nodes, max_size=3))),
        tuple(draw(st.lists(values, max_size=2))),
        sizes if depth else (),
    )


@settings(max_examples=150, deadline=None)
@given(graphs())
def test_what_is_printed_is_read_back(graph: Graph) -> None:
    again = parse(str(graph))
    assert again == graph
    assert str(again) == str(graph)


@pytest.mark.parametrize("seed", range(40))
def test_random_graphs_are_valid_and_read_back(seed: int) -> None:
    graph = random_graph(seed)
    verify(graph, OPERATORS)
    assert parse(str(graph)) == graph


def test_the_text_in_the_docstring_is_the_printed_form() -> None:
    assert str(parse(MLP)) == MLP


def test_line_breaks_and_comments_mean_nothing() -> None:
    assert parse("graph g(x: f32[2])->(y) y=relu(x) # all on one line") == parse(
        "graph g(x:f32[2]) -> (y)\n y = relu ( x )"
    )


def test_a_value_knows_who_makes_and_who_reads_it() -> None:
    graph = parse(MLP)
    assert graph.producer("x") is None and graph.producer("w") is None
    made = graph.producer("h")
    assert made is not None and made.op == "matmul" and made.attribute("transpose_b") == 1
    assert [user.op for user in graph.users("h")] == ["relu"]
    assert [user.op for user in graph.users("r")] == ["mul"]
    assert graph.uses("r") == 2 and graph.uses("y") == 1 and graph.users("y") == ()
    assert graph.is_constant("w") and not graph.is_constant("x")
    assert graph.names() == {"x", "w", "h", "r", "y"}


def test_nodes_can_be_brought_into_the_order_of_the_graph() -> None:
    graph = parse(MLP)
    assert graph.in_order(reversed(graph.nodes)) == graph.nodes


def test_a_builder_gives_names_and_types() -> None:
    b = Builder("mlp", OPERATORS)
    x, w = b.input("x", parse_type("f32[1, 64]")), b.constant("w", parse_type("f32[128, 64]"))
    h = b.add("matmul", x, w, transpose_b=1)
    assert b.types[h] == parse_type("f32[1, 128]")
    r = b.add("relu", h)
    graph = b.graph(b.add("mul", r, r))
    assert [n.op for n in graph.nodes] == ["matmul", "relu", "mul"]
    assert verify(graph, OPERATORS) == b.types


def test_a_builder_refuses_a_wrong_node_at_once() -> None:
    b = Builder("g", OPERATORS)
    x = b.input("x", parse_type("f32[2, 3]"))
    with pytest.raises(OperatorError, match="inner extents"):
        b.add("matmul", x, x)
    with pytest.raises(GraphError, match="made twice"):
        b.input("x", parse_type("f32[2]"))


def test_a_node_sorts_its_attributes() -> None:
    assert node("clip", ("x",), ("y",), low=0.0, high=1.0).attributes == (("high", 1.0), ("low", 0.0))


def test_a_commutative_operator_says_so() -> None:
    assert OPERATORS["add"].commutative and not OPERATORS["sub"].commutative


def test_settings_fill_in_defaults() -> None:
    conv = OPERATORS["conv"].settings(node("conv", ("x", "w"), ("y",), groups=2))
    assert conv == {"strides": (), "pads": (), "dilations": (), "groups": 2, "dtype": ""}


def test_a_type_has_a_rank() -> None:
    assert parse_type("f32[2, 3]").rank == 2 and Type(DTYPES["f32"], ()).rank == 0


def test_bodies_in_bodies_end_somewhere() -> None:
    opened = "y = scan(x) {steps = 1} do graph f(x: f32[2]) -> (y) " * 200
    with pytest.raises(ParseError, match="levels of nesting"):
        parse(f"graph g(x: f32[2]) -> (y) {opened}")
