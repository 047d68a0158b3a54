"""Every operator that can leave the steps computes at once what it computed step by step."""

from __future__ import annotations

import pytest

from dovetail.graph.scan_lift import RULES
from dovetail.graph.scan_tidy import ScanTidy
from dovetail.ir.graph.verify import verify
from dovetail.ops.table import OPERATORS
from tests.unit.graph.models import bound, ops, same

TEXT = """graph g(x: {x}, y: {y}, h: f32[2], w: {w}) -> (last, all)
  last, all = scan(h, x, y, w) {{carried = 1, scanned = 2}} do graph step(h: f32[2], x: {x1}, y: {y1}, w: {w}) -> (n, v)
    n = neg(h)
    v = {node}
  end
"""
CASES = {
    "relu": ("relu(x)", "2, 3", "2, 3", "3"),
    "clip": ("clip(x) {low = -1.0, high = 2.0}", "2, 3", "2, 3", "3"),
    "add of both": ("add(x, y)", "2, 3", "3", "3"),
    "add of a scalar": ("add(x, y)", "2, 3", "", "3"),
    "mul with weights": ("mul(w, x)", "2, 3", "1", "2, 1"),
    "sub from a number": ("sub(w, x)", "2, 3", "1", ""),
    "rows times weights": ("matmul(x, w)", "2, 3", "1", "3, 4"),
    "row times weights": ("matmul(x, w) {transpose_b = 1}", "3", "1", "4, 3"),
    "many rows times weights": ("matmul(x, w)", "2, 5, 3", "1", "3, 4"),
    "weights times columns": ("matmul(w, x)", "3, 2", "1", "4, 3"),
    "product of both": ("matmul(x, y)", "2, 3", "3, 2", "1"),
    "transposed product": ("matmul(x, w) {transpose_a = 1}", "3, 2", "1", "3, 4"),
    "product of many": ("matmul(x, y)", "4, 2, 3", "3, 2", "1"),
    "gemm": ("gemm(x, w)", "2, 3", "1", "3, 4"),
    "dense": ("dense(x, w)", "2, 3", "1", "4, 3"),
    "reshape": ("reshape(x) {shape = (3, -1)}", "2, 3", "1", "1"),
    "unsqueeze": ("unsqueeze(x) {axes = (1,)}", "2, 3", "1", "1"),
    "transpose": ("transpose(x) {perm = (1, 2, 0)}", "2, 3, 4", "1", "1"),
    "transpose backwards": ("transpose(x)", "2, 3", "1", "1"),
    "slice": ("slice(x) {starts = (1,), ends = (3,), axes = (-1,), steps = (1,)}", "2, 3", "1", "1"),
    "slice of the first": ("slice(x) {starts = (1,), ends = (2,)}", "2, 3", "1", "1"),
    "expand": ("expand(x) {shape = (2, 4, 3)}", "4, 1", "1", "1"),
    "concat": ("concat(x, y) {axis = -1}", "2, 3", "2, 1", "1"),
    "concat with weights": ("concat(x, w) {axis = 0}", "2, 3", "1", "1, 3"),
    "softmax": ("softmax(x) {axis = 0}", "2, 1", "1", "1"),
    "layer_norm": ("layer_norm(x, w)", "2, 1", "1", "1"),
    "reduce_sum": ("reduce_sum(x) {axes = (0,), keepdims = 0}", "2, 3", "1", "1"),
    "reduce_max of all": ("reduce_max(x)", "2, 3", "1", "1"),
    "min": ("min(x, y)", "2, 3", "2, 3", "1"),
}


def typed(shape: str, steps: bool = False) -> str:
    return f"f32[{', '.join(filter(None, ('5' if steps else '', shape)))}]"


@pytest.mark.parametrize("name", CASES)
def test_an_operator_at_all_steps_is_itself_at_each(name: str) -> None:
    node, x, y, w = CASES[name]
    text = TEXT.format(x=typed(x, True), y=typed(y, True), w=typed(w), x1=typed(x), y1=typed(y), node=node)
    found = bound(text)
    after, _ = ScanTidy()(found, OPERATORS)
    verify(after.graph, OPERATORS)
    same(found, after)
    bodies = [inner.op for outer in after.graph.nodes for body in outer.bodies for inner in body.nodes]
    assert bodies == ["neg"], bodies


def test_rows_of_a_table_are_looked_up_at_once() -> None:
    text = """graph g(x: i64[4, 2], h: f32[3]) -> (last, all)
  const w: f32[5, 3]
  last, all = scan(h, x, w) {carried = 1, scanned = 1} do graph step(h: f32[3], x: i64[2], w: f32[5, 3]) -> (n, v)
    n = neg(h)
    v = gather(w, x) {axis = 0}
  end
"""
    found = bound(text)
    after, _ = ScanTidy()(found, OPERATORS)
    same(found, after)
    assert "gather" in ops(after.graph)


def test_an_operator_without_a_rule_stays_in_the_steps() -> None:
    assert "cumsum" not in RULES
    text = TEXT.format(x="f32[5, 3]", y="f32[5, 1]", w="f32[1]", x1="f32[3]", y1="f32[1]", node="cumsum(x) {axis = 0}")
    found = bound(text)
    after, _ = ScanTidy()(found, OPERATORS)
    same(found, after)
    assert "cumsum" in [inner.op for outer in after.graph.nodes for body in outer.bodies for inner in body.nodes]
