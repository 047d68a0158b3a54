"""Graphs run: node by node, repeated by scan, and on the host."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from dovetail.base.errors import CallError, GraphError
from dovetail.ir.evaluate import evaluate as evaluate_program
from dovetail.ir.graph.evaluate import evaluate
from dovetail.ir.graph.graph import Type
from dovetail.ir.graph.operator import Array, operator
from dovetail.ir.graph.parse import parse
from dovetail.ir.graph.verify import verify
from dovetail.ir.program import Combine
from dovetail.ops.region import graph_program
from dovetail.ops.table import OPERATORS

RNN = """
size T in 0..50
graph rnn(x: f32[T, 4], h: f32[3]) -> (last, all)
  const w: f32[3, 4]
  const r: f32[3, 3]
  last, all = scan(h, x, w, r) {carried = 1, scanned = 1%s} do
    graph step(h: f32[3], x: f32[4], w: f32[3, 4], r: f32[3, 3]) -> (n, n)
      a = matmul(w, x)
      b = matmul(r, h)
      s = add(a, b)
      n = clip(s) {low = -8.0, high = 8.0}
    end
"""


def drawn(*shape: int) -> npt.NDArray[np.float32]:
    return np.random.default_rng(list(shape)).integers(-2, 3, shape).astype(np.float32)


@pytest.mark.parametrize("steps", [0, 1, 6])
@pytest.mark.parametrize("reverse", [False, True])
def test_scan_carries_a_state_from_step_to_step(steps: int, reverse: bool) -> None:
    graph = parse(RNN % (", reverse = 1" if reverse else ""))
    verify(graph, OPERATORS)
    x, h, w, r = drawn(steps, 4), drawn(3), drawn(3, 4), drawn(3, 3)
    found = evaluate(graph, OPERATORS, {"x": x, "h": h}, {"w": w, "r": r}, {"T": steps})
    state, states = h, np.zeros((steps, 3), np.float32)
    for t in reversed(range(steps)) if reverse else range(steps):
        state = np.clip(w @ x[t] + r @ state, -8, 8)
        states[t] = state
    np.testing.assert_array_equal(found["last"], state)
    np.testing.assert_array_equal(found["all"], states)
    joined = evaluate_program(graph_program(graph, OPERATORS), {"x": x, "h": h, "w": w, "r": r}, {"T": steps})
    np.testing.assert_array_equal(joined["last"], state)
    np.testing.assert_array_equal(joined["all"], states)


def test_scan_can_count_its_steps_itself() -> None:
    graph = parse(
        """graph doubling(x: i32[2]) -> (y)
             y = scan(x) {carried = 1, steps = 5} do graph twice(x: i32[2]) -> (d) d = add(x, x) end"""
    )
    verify(graph, OPERATORS)
    assert evaluate(graph, OPERATORS, {"x": np.array([1, 3], np.int32)})["y"].tolist() == [32, 96]


def test_scan_in_scan_runs() -> None:
    graph = parse(
        """graph sums(x: i32[3, 4], z: i32[]) -> (total)
             total = scan(z, x) {carried = 1, scanned = 1} do graph row(s: i32[], r: i32[4]) -> (n)
               n = scan(s, r) {carried = 1, scanned = 1} do graph one(s: i32[], e: i32[]) -> (m) m = add(s, e) end
             end"""
    )
    verify(graph, OPERATORS)
    x = np.arange(12, dtype=np.int32).reshape(3, 4)
    given = {"x": x, "z": np.array(0, np.int32)}
    assert evaluate(graph, OPERATORS, given)["total"] == 66
    with pytest.raises(GraphError, match="repeats something itself"):
        graph_program(graph, OPERATORS)


def test_a_state_that_a_sum_makes_is_carried() -> None:
    graph = parse(
        """graph powers(h: f32[2], w: f32[2, 2]) -> (y)
             y = scan(h, w) {carried = 1, steps = 3} do graph f(h: f32[2], w: f32[2, 2]) -> (n) n = matmul(w, h) end"""
    )
    verify(graph, OPERATORS)
    h, w = drawn(2), drawn(2, 2)
    expected = w @ (w @ (w @ h))
    np.testing.assert_array_equal(evaluate(graph, OPERATORS, {"h": h, "w": w})["y"], expected)
    program = graph_program(graph, OPERATORS)
    np.testing.assert_array_equal(evaluate_program(program, {"h": h, "w": w})["y"], expected)
    set_or_summed = {(s.out.tensor, s.combine is Combine.SET) for s in program.statements}
    assert len({tensor for tensor, _ in set_or_summed}) == len(set_or_summed)


def test_a_host_operator_is_run_by_its_own_function() -> None:
    def sort(x: Type) -> str:
        return f"out y: {x}"

    def run(x: Array) -> tuple[Array, ...]:
        return (np.sort(x),)

    known = {**OPERATORS, "sort": replace(operator(sort), run=run)}
    graph = parse("graph g(x: f32[4]) -> (y) s = sort(x) y = neg(s)")
    verify(graph, known)
    given = {"x": np.array([3, 1, 4, 1], np.float32)}
    assert evaluate(graph, known, given)["y"].tolist() == [-1, -1, -3, -4]
    with pytest.raises(GraphError, match="sort runs on the host"):
        graph_program(graph, known)


def test_missing_data_and_wrong_inputs_are_named() -> None:
    graph = parse("graph g(x: f32[2]) -> (y) const c: f32[2] y = add(x, c)")
    x = np.zeros(2, np.float32)
    with pytest.raises(CallError, match="the data of constant 'c' is missing"):
        evaluate(graph, OPERATORS, {"x": x})
    with pytest.raises(CallError, match="'x' has dtype f64"):
        evaluate(graph, OPERATORS, {"x": np.zeros(2)}, {"c": x})
    assert evaluate(graph, OPERATORS, {"x": x}, {"c": x, "other": x})["y"].tolist() == [0, 0]
