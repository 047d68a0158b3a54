"""Loops that were unrolled are loops again."""

from __future__ import annotations

import time

import numpy as np
import pytest

from dovetail.graph.dead_code import DeadCode
from dovetail.graph.record import Record
from dovetail.graph.reroll import ReRoll
from dovetail.ir.graph.bound import BoundGraph
from dovetail.ir.graph.graph import Node
from dovetail.ir.graph.verify import verify
from dovetail.ops.table import OPERATORS
from tests.unit.graph.cells import Layer, Unrolled, f32, lstm, random_cell, unroll
from tests.unit.graph.models import bound, ops, same


def rolled(found: BoundGraph) -> tuple[BoundGraph, tuple[Record, ...], list[Node]]:
    after, records = ReRoll()(DeadCode()(found, OPERATORS)[0], OPERATORS)
    verify(after.graph, OPERATORS)
    same(found, after)
    return after, records, [node for node in after.graph.nodes if node.op == "scan"]


def layer_of(layer: Layer, seed: int = 0, initial: str = "input") -> BoundGraph:
    g = Unrolled(seed)
    shape = (layer.steps, 2, 3) if layer.axis == 0 else (2, layer.steps, 3)
    x = g.builder.input("x", f32(*shape))
    cell = lstm(g, 3, 4)
    states = [
        g.builder.input(f"s{k}", f32(2, 4)) if initial == "input" else g.constant(array=np.zeros((2, 4), np.float32))
        for k in range(2)
    ]
    return g.bound(*unroll(g, layer, x, states, cell))


@pytest.mark.parametrize("initial", ["input", "zero"])
@pytest.mark.parametrize(
    "layer",
    [
        Layer(3),
        Layer(5, axis=1),
        Layer(4, backwards=True),
        Layer(6, how="gather", collect="concat"),
        Layer(25, collect="last"),
        Layer(7, axis=1, backwards=True, how="gather"),
    ],
)
def test_an_unrolled_layer_is_one_scan(layer: Layer, initial: str) -> None:
    after, records, scans = rolled(layer_of(layer, initial=initial))
    (scan,) = scans
    assert f"recurrence of T={layer.steps} steps found: body of 19 nodes" in records[0].what
    assert len(scan.bodies[0].nodes) == 19
    assert dict(scan.attributes)["carried"] == 2
    assert dict(scan.attributes)["scanned"] == 1
    assert dict(scan.attributes).get("reverse", 0) == int(layer.backwards)
    assert set(ops(after.graph)) <= {"scan", "transpose", "reshape"}


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_fewer_than_three_steps_are_left_alone(steps: int) -> None:
    found = layer_of(Layer(steps, collect="last")) if steps else bound("graph g(x: f32[2]) -> (y)\n  y = relu(x)")
    after, records = ReRoll()(found, OPERATORS)
    assert after is found
    assert not any("found" in record.what for record in records)


@pytest.mark.parametrize("seed", range(24))
def test_random_cells_are_found_and_compute_the_same(seed: int) -> None:
    g = Unrolled(seed)
    steps, states = int(g.numbers.integers(3, 13)), int(g.numbers.integers(1, 4))
    layer = Layer(
        steps,
        axis=int(g.numbers.integers(2)),
        backwards=bool(g.numbers.integers(2)),
        how=("slice", "gather")[int(g.numbers.integers(2))],
        collect=("stack", "concat", "last")[int(g.numbers.integers(3))],
    )
    x = g.builder.input("x", f32(*((steps, 2, 3) if layer.axis == 0 else (2, steps, 3))))
    cell = random_cell(g, 3, 4, states, int(g.numbers.integers(1, 15)))
    first = [g.builder.input(f"s{k}", f32(2, 4)) for k in range(states)]
    _, records, scans = rolled(g.bound(*unroll(g, layer, x, first, cell)))
    assert all(f"T={steps}" in record.what for record in records), records
    assert len(scans) == len(records) >= 1


def test_layers_one_above_the_other_are_a_scan_each() -> None:
    g = Unrolled(3)
    x = g.builder.input("x", f32(5, 2, 3))
    zeros = [g.constant(array=np.zeros((2, 4), np.float32)) for _ in range(4)]
    lower, upper = lstm(g, 3, 4), lstm(g, 4, 4)
    below, above, every = zeros[:2], zeros[2:], []
    for t in range(5):  # both layers in one loop
        below = list(lower(g, t, g.cut(x, t), below))
        above = list(upper(g, t, below[0], above))
        every.append(g.add("unsqueeze", above[0], axes=(0,)))
    _, records, scans = rolled(g.bound(g.add("concat", *every, axis=0), *below))
    assert len(scans) == 2
    assert len(records) == 2


def test_both_directions_are_found_and_what_reads_both() -> None:
    g = Unrolled(4)
    x = g.builder.input("x", f32(6, 2, 3))
    zeros = [g.constant(array=np.zeros((2, 4), np.float32)) for _ in range(2)]
    there, _, _ = unroll(g, Layer(6), x, zeros, lstm(g, 3, 4))
    back, _, _ = unroll(g, Layer(6, backwards=True), x, zeros, lstm(g, 3, 4))
    both = g.add("concat", there, back, axis=2)
    last, _ = unroll(g, Layer(6, collect="last"), both, zeros, lstm(g, 8, 4))
    _, _, scans = rolled(g.bound(last))
    assert len(scans) == 3
    assert [dict(scan.attributes).get("reverse", 0) for scan in scans].count(1) == 1


def test_a_sequence_given_as_separate_inputs_is_stacked() -> None:
    g = Unrolled(5)
    xs = [g.builder.input(f"x{t}", f32(2, 3)) for t in range(4)]
    cell, states = lstm(g, 3, 4), [g.builder.input(f"s{k}", f32(2, 4)) for k in range(2)]
    for t, x in enumerate(xs):
        states = list(cell(g, t, x, states))
    after, _, scans = rolled(g.bound(*states))
    assert len(scans) == 1
    assert "concat" in ops(after.graph)


def test_a_copy_of_the_weights_for_each_step_is_one_constant() -> None:
    g = Unrolled(6)
    x = g.builder.input("x", f32(4, 2, 4))
    weights = g.numbers.integers(-1, 2, (4, 4)).astype(np.float32)
    h = g.builder.input("h", f32(2, 4))
    for t in range(4):
        h = g.clipped(g.add("add", g.cut(x, t), g.add("matmul", h, g.constant(array=weights.copy()))))
    after, _, scans = rolled(g.bound(h))
    assert len(scans) == 1
    assert len(after.graph.constants) == 1


def test_a_value_of_one_step_that_is_read_outside_comes_from_a_stack() -> None:
    g = Unrolled(7)
    x, r = g.builder.input("x", f32(5, 2, 4)), g.constant(4, 4)
    h, seen = g.builder.input("h", f32(2, 4)), ""
    for t in range(5):
        product = g.add("matmul", h, r)
        seen = product if t == 2 else seen
        h = g.clipped(g.add("add", g.cut(x, t), product))
    _, records, scans = rolled(g.bound(h, g.add("relu", seen)))
    assert len(scans) == 1
    assert records[0].why == "1 last state and 1 value of all steps are read outside"


def test_a_step_that_reads_what_another_made_of_its_state_is_left_with_the_reason() -> None:
    g = Unrolled(8)
    x, r = g.builder.input("x", f32(4, 2, 4)), g.constant(4, 4)
    h = g.builder.input("h", f32(2, 4))
    states = [h]
    for t in range(4):  # each step adds the state two steps before in another way
        extra = g.add(("neg", "relu", "abs", "sign")[t], states[max(len(states) - 2, 0)])
        h = g.clipped(g.add("add", g.add("add", g.cut(x, t), extra), g.add("matmul", h, r)))
        states.append(h)
    found = g.bound(h)
    after, records = ReRoll()(found, OPERATORS)
    assert after is found
    assert any("step" in record.why for record in records), records


def test_layers_with_weights_of_their_own_are_no_recurrence() -> None:
    g = Unrolled(9)
    h = g.builder.input("x", f32(2, 16))
    for _ in range(6):
        h = g.add("relu", g.add("matmul", h, g.constant(16, 16)))
    found = g.bound(h)
    after, records = ReRoll()(found, OPERATORS)
    assert after is found
    assert not records


def test_a_step_that_differs_in_the_middle_parts_the_loop() -> None:
    g = Unrolled(10)
    x, r = g.builder.input("x", f32(10, 2, 4)), g.constant(4, 4)
    h = g.builder.input("h", f32(2, 4))
    for t in range(10):
        total = g.add("add", g.cut(x, t), g.add("matmul", h, r))
        h = g.clipped(g.add("neg", total) if t == 5 else g.add("relu", total))
    _, records, scans = rolled(g.bound(h))
    assert [node.op for node in scans] == ["scan", "scan"]
    assert {record.what.split(" steps")[0] for record in records} == {"recurrence of T=6", "recurrence of T=4"}


def test_number_of_the_step_is_scanned() -> None:
    g = Unrolled(11)
    x, r = g.builder.input("x", f32(5, 2, 4)), g.constant(4, 4)
    h = g.builder.input("h", f32(2, 4))
    for t in range(5):
        number = g.constant(array=np.array(float(t), np.float32))
        h = g.clipped(g.add("add", g.add("add", g.cut(x, t), number), g.add("matmul", h, r)))
    _, _, scans = rolled(g.bound(h))
    assert len(scans) == 1
    assert dict(scans[0].attributes)["scanned"] == 2


def test_what_is_made_of_each_step_by_itself_is_made_at_once() -> None:
    g = Unrolled(12)
    x = g.builder.input("x", f32(5, 2, 3))
    zeros = [g.constant(array=np.zeros((2, 4), np.float32)) for _ in range(2)]
    cell, v, b = lstm(g, 3, 4), g.constant(4, 7), g.constant(7)
    states, rows = zeros, []
    for t in range(5):
        states = list(cell(g, t, g.cut(x, t), states))
        y = g.add("relu", g.add("add", g.add("matmul", states[0], v), b))
        rows.append(g.add("unsqueeze", y, axes=(1,)))
    after, records, scans = rolled(g.bound(g.add("concat", *rows, axis=1)))
    assert len(scans) == 1
    assert ops(after.graph).count("matmul") == ops(after.graph).count("relu") == 1
    assert "3 nodes of each of T=5 steps computed for all at once" in [record.what for record in records]


def test_both_directions_put_together_at_each_step_are_put_together_at_once() -> None:
    g = Unrolled(13)
    x = g.builder.input("x", f32(4, 2, 3))
    there, back = ([g.constant(array=np.zeros((2, 4), np.float32)) for _ in range(2)] for _ in range(2))
    cells = lstm(g, 3, 4), lstm(g, 3, 4)
    ahead: list[str] = []
    behind: list[str] = []
    for t in range(4):
        there = list(cells[0](g, t, g.cut(x, t), there))
        back = list(cells[1](g, t, g.cut(x, 3 - t), back))
        ahead.append(there[0])
        behind.insert(0, back[0])
    both = [g.add("concat", a, b, axis=1) for a, b in zip(ahead, behind, strict=True)]
    after, _, scans = rolled(g.bound(g.add("concat", *(g.add("unsqueeze", y, axes=(0,)) for y in both), axis=0)))
    assert len(scans) == 2
    assert ops(after.graph).count("concat") == 1


def test_several_thousand_nodes_take_well_under_a_second() -> None:
    found = layer_of(Layer(250, collect="stack"))
    assert len(found.graph.nodes) > 5000
    begun = time.process_time()
    after, _ = ReRoll()(found, OPERATORS)
    assert time.process_time() - begun < 1.0
    assert len(after.graph.nodes) < 10
