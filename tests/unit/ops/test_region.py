"""Nodes joined into one program: the same bits as node by node."""

from __future__ import annotations

import numpy as np
import pytest

from dovetail.ir.evaluate import evaluate as evaluate_program
from dovetail.ir.graph.evaluate import evaluate
from dovetail.ir.graph.parse import parse
from dovetail.ir.graph.verify import verify
from dovetail.ir.parse import parse as parse_program
from dovetail.ir.program import Role
from dovetail.ir.verify import verify as verify_program
from dovetail.ops.region import graph_program, region_program
from dovetail.ops.table import OPERATORS
from tests.unit.ir.graph.random_graphs import inputs_for, random_graph
from tests.unit.ops.single import Given


@pytest.mark.parametrize("seed", range(40))
def test_a_graph_and_its_program_give_the_same_bits(seed: int) -> None:
    graph = random_graph(seed)
    inputs, data = inputs_for(graph)
    program = graph_program(graph, OPERATORS)
    verify_program(program)
    assert parse_program(str(program)) == program
    found, joined = evaluate(graph, OPERATORS, inputs, data), evaluate_program(program, {**inputs, **data})
    for name, tensor in zip(graph.outputs, program.outputs, strict=True):
        np.testing.assert_array_equal(joined[tensor.name], found[name])


@pytest.mark.parametrize("seed", range(20))
def test_a_graph_cut_in_two_gives_what_the_whole_gives(seed: int) -> None:
    graph = random_graph(seed, nodes=10)
    inputs, data = inputs_for(graph)
    types = verify(graph, OPERATORS)
    expected = evaluate(graph, OPERATORS, inputs, data)
    known: dict[str, Given] = {**inputs, **data}
    for nodes in (graph.nodes[:5], graph.nodes[5:]):
        program = region_program(graph, nodes, OPERATORS, types)
        verify_program(program)
        known.update(evaluate_program(program, {tensor.name: known[tensor.name] for tensor in program.inputs}))
    for name in graph.outputs:
        np.testing.assert_array_equal(known[name], expected[name])


def test_intermediates_are_temporaries_and_constants_stay_constants() -> None:
    graph = parse(
        """graph mlp(x: f32[1, 4]) -> (y)
             const w: f32[3, 4]
             h = matmul(x, w) {transpose_b = 1}
             y = softmax(h)"""
    )
    program = graph_program(graph, OPERATORS)
    roles = {tensor.name: tensor.role for tensor in program.tensors}
    assert roles["x"] is Role.IN and roles["w"] is Role.CONST and roles["h"] is Role.TEMP and roles["y"] is Role.OUT
    assert {name for name, role in roles.items() if role is Role.TEMP} == {"h", "y_top", "y_e", "y_total"}


def test_outputs_that_are_inputs_or_twice_the_same_are_copies() -> None:
    graph = parse("graph g(x: f32[2]) -> (y, x, y) y = neg(x)")
    program = graph_program(graph, OPERATORS)
    verify_program(program)
    found = evaluate_program(program, {"x": np.array([1, 2], np.float32)})
    assert [found[t.name].tolist() for t in program.outputs] == [[-1, -2], [1, 2], [-1, -2]]


def test_loops_give_way_to_values_of_the_same_name() -> None:
    graph = parse("size n in 1..9 graph g(d0: f32[n, 2], l: f32[2, 3]) -> (i) i = matmul(d0, l)")
    program = graph_program(graph, OPERATORS)
    assert parse_program(str(program)) == program
    verify_program(program)
    a, b = np.ones((4, 2), np.float32), np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(evaluate_program(program, {"d0": a, "l": b})["i"], a @ b)


def test_scans_side_by_side_stay_apart() -> None:
    graph = parse(
        """graph g(x: i32[5]) -> (y)
             a = scan(x) {scanned = 1} do graph f(e: i32[]) -> (n) n = neg(e) end
             y = scan(a, a) {scanned = 1, reverse = 1} do graph f(e: i32[], a: i32[5]) -> (n)
               t = reduce_sum(a) {keepdims = 0}
               n = add(e, t)
             end"""
    )
    program = graph_program(graph, OPERATORS)
    verify_program(program)
    x = np.arange(5, dtype=np.int32)
    np.testing.assert_array_equal(evaluate_program(program, {"x": x})["y"], -x - x.sum())


def test_recurrences_side_by_side_stay_apart() -> None:
    graph = parse("graph g(x: i32[5]) -> (y) s = cumsum(x) y = cumsum(s) {reverse = 1}")
    program = graph_program(graph, OPERATORS)
    verify_program(program)
    x = np.arange(5, dtype=np.int32)
    expected = np.flip(np.cumsum(np.flip(np.cumsum(x))))
    np.testing.assert_array_equal(evaluate_program(program, {"x": x})["y"], expected)


def test_a_region_has_the_sizes_it_uses() -> None:
    graph = parse("size N in 1..9 graph g(x: f32[N], z: f32[3]) -> (y, w) y = relu(x) w = relu(z)")
    first, second = (region_program(graph, [node], OPERATORS) for node in graph.nodes)
    assert [size.name for size in first.sizes] == ["N"] and second.sizes == ()


def test_a_scan_of_an_lstm_is_one_program() -> None:
    graph = parse(
        """size T in 1..30
        graph lstm(x: f32[T, 2, 3], h: f32[2, 4], c: f32[2, 4]) -> (all, last)
          const w: f32[16, 3]
          const r: f32[16, 4]
          last, state, all = scan(h, c, x, w, r) {carried = 2, scanned = 1} do
            graph step(h: f32[2, 4], c: f32[2, 4], x: f32[2, 3], w: f32[16, 3], r: f32[16, 4]) -> (hn, cn, hn)
              hn, cn = lstm_cell(x, h, c, w, r)
            end"""
    )
    verify(graph, OPERATORS)
    program = graph_program(graph, OPERATORS)
    verify_program(program)
    rng = np.random.default_rng(0)
    shapes = {"x": (5, 2, 3), "h": (2, 4), "c": (2, 4), "w": (16, 3), "r": (16, 4)}
    arrays = {name: rng.uniform(-1, 1, shape).astype(np.float32) for name, shape in shapes.items()}
    inputs, data = {n: arrays[n] for n in "xhc"}, {n: arrays[n] for n in "wr"}
    found, joined = evaluate(graph, OPERATORS, inputs, data), evaluate_program(program, arrays)
    np.testing.assert_array_equal(joined["all"], found["all"])
    np.testing.assert_array_equal(joined["last"], found["last"])


def test_a_size_that_is_called_like_a_loop_is_not_taken_for_it() -> None:
    graph = parse("size d0 in 1..8 graph g(x: f32[d0, 3]) -> (y) y = cumsum(x) {reverse = 1}")
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    found = evaluate_program(graph_program(graph, OPERATORS), {"x": x})["y"]
    np.testing.assert_array_equal(found, np.flip(np.cumsum(np.flip(x, 0), 0), 0))
