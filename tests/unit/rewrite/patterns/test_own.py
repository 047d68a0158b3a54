"""Operators that patterns bring along: programs of the user, and what instructions of a target file compute."""

import numpy as np
import pytest

from dovetail.base.dtypes import DTYPES
from dovetail.base.errors import OperatorError, PatternError
from dovetail.ir.graph.evaluate import run_node
from dovetail.ir.graph.graph import Node, Type
from dovetail.ir.graph.verify import result_types
from dovetail.ir.index import constant
from dovetail.ir.parse import parse
from dovetail.rewrite.patterns.apply import map_patterns
from dovetail.rewrite.patterns.file import gathered
from dovetail.rewrite.patterns.own import call_operator, program_operator, read_source
from dovetail.rewrite.patterns.pattern import Pattern
from dovetail.targets.model import Instruction, Operand
from tests.unit.rewrite.patterns.graphs import bound

F32 = DTYPES["f32"]
GEMM = Instruction(
    "gemm6x16",
    parse("in a: f32[6, 8]  in b: f32[8, 16]  inout c: f32[6, 16]\nfor i<6, j<16, k<8: c[i, j] += a[i, k] * b[k, j]"),
    tuple(Operand(name, F32, "memory") for name in "cab"),
    call="gemm",
)


def kind(*shape: int) -> Type:
    return Type(F32, tuple(map(constant, shape)))


def test_an_instruction_is_an_operator_on_tensors_of_any_extents() -> None:
    known = call_operator(GEMM)
    node = Node(known.name, ("x", "y"), ("z",))
    types = {"x": kind(5, 7), "y": kind(7, 3)}
    assert result_types(node, types, {known.name: known}, {}) == (kind(5, 3),)
    x, y = np.arange(35, dtype=np.float32).reshape(5, 7), np.ones((7, 3), np.float32)
    (z,) = run_node(node, types, {known.name: known}, {"x": x, "y": y}, {}, {})
    np.testing.assert_array_equal(z, x @ y)


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [((5, 7, 1), (7, 3), "of rank 2"), ((5, 7), (8, 3), "one extent for k")],
)
def test_an_instruction_refuses_what_it_cannot_take(x: tuple[int, ...], y: tuple[int, ...], words: str) -> None:
    known = call_operator(GEMM)
    with pytest.raises(OperatorError, match=words):
        result_types(Node(known.name, ("x", "y"), ("z",)), {"x": kind(*x), "y": kind(*y)}, {known.name: known}, {})


def test_a_pattern_calls_an_instruction() -> None:
    graph = bound("z = matmul(x, w)", "x: f32[4, 6], w: f32[6, 3]")
    mapped = map_patterns(
        graph, [Pattern("own", "matmul(?x, ?w)", "call(?x, ?w)", call="gemm6x16")], calls={"gemm6x16": GEMM}
    )
    assert [node.op for node in mapped.bound.graph.nodes] == [call_operator(GEMM).name]


def test_an_instruction_that_computes_something_else_is_refused() -> None:
    graph = bound("z = matmul(x, w) {transpose_b = 1}", "x: f32[6, 6], w: f32[6, 6]")
    pattern = Pattern("own", "matmul(?x, ?w){transpose_b = 1}", "call(?x, ?w)", call="gemm6x16")
    with pytest.raises(PatternError, match="another computation"):
        map_patterns(graph, [pattern], calls={"gemm6x16": GEMM})


def test_programs_of_equal_text_are_one_operator() -> None:
    text = "in x: f32[?n]  out y: f32[?n]  for i<?n: y[i] = x[i]"
    assert program_operator(read_source("p", text), ()) is program_operator(read_source("p", text), ())
    assert program_operator(read_source("p", text), ()).name != program_operator(read_source("p", text + " "), ()).name


def test_an_attribute_may_stand_in_a_program() -> None:
    text = "in x: f32[?n]  out y: f32[?n]  for i<?n: y[i] = max(x[i], ?a * x[i])"
    pattern = Pattern("leaky", "leaky_relu(?x){alpha = ?a}", program=text)
    mapped = map_patterns(bound("z = leaky_relu(x) {alpha = 0.25}", "x: f32[9]"), [pattern])
    assert len(mapped.steps) == 1


def test_places_in_a_table_are_filled_with_places_that_are_there() -> None:
    pattern = Pattern("rows", "relu(gather(?t, ?i){axis = 0})", "gather(relu(?t), ?i){axis = 0}")
    graph = bound("g = gather(x, i) {axis = 0}\nz = relu(g)", "x: f32[2, 6], i: i64[5]")
    assert len(map_patterns(graph, [pattern]).steps) == 1


def test_two_patterns_of_one_name_are_an_error() -> None:
    pattern = Pattern("p", "relu(?x)", "?x")
    with pytest.raises(PatternError, match="two patterns are called 'p'"):
        gathered([pattern, pattern])
    assert gathered(pattern) == (pattern,)
    assert gathered(None) == ()
