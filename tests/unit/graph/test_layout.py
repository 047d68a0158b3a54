"""Orders of axes between layers."""

from __future__ import annotations

from dovetail.graph.grouping import regions
from dovetail.graph.layout import Layout
from dovetail.graph.optimise import optimise
from dovetail.ir.graph.bound import BoundGraph
from dovetail.ir.graph.verify import verify
from dovetail.ir.inline import inline
from dovetail.ir.program import Program
from dovetail.ops.region import region_program
from dovetail.ops.table import OPERATORS
from tests.unit.graph.models import bound, ops, same

BLOCK = """
graph block(x: f32[1, 3, 8, 8]) -> (y)
  const w: f32[16, 3, 3, 3]
  const v: f32[16, 1, 3, 3]
  const u: f32[16, 16, 1, 1]
  a = conv(x, w) {pads = (1, 1, 1, 1)}
  b = relu(a)
  c = conv(b, v) {pads = (1, 1, 1, 1), groups = 16}
  d = clip(c) {low = 0.0, high = 6.0}
  e = conv(d, u)
  f = add(e, b)
  g1 = max_pool(f) {kernel = (2, 2), strides = (2, 2)}
  h = global_average_pool(g1)
  y = flatten(h)
"""


def programs(found: BoundGraph) -> list[Program]:
    types = verify(found.graph, OPERATORS)
    every = regions(found.graph, OPERATORS, types)
    return [inline(region_program(found.graph, r.nodes, OPERATORS, types)) for r in every if r.kind == "compiled"]


def test_images_between_layers_lie_channels_last_and_nothing_is_copied() -> None:
    before = bound(BLOCK)
    after, records = Layout()(before, OPERATORS)
    same(before, after)
    assert [record.what for record in records] == ["4 of 4 images around conv and 4 other regions: channels last"]
    found = programs(after)
    assert len(found) == 5
    shapes = [[str(e) for e in t.shape] for program in found for t in program.outputs]
    assert shapes == [["1", "8", "8", "16"]] * 3 + [["1", "4", "4", "16"], ["1", "16"]]
    assert [len(program.statements) for program in found] == [2, 2, 2, 1, 2]


def test_an_image_that_two_layers_read_is_written_once_in_their_order_by_its_maker() -> None:
    before = bound("""
graph fork(x: f32[1, 16, 8, 8]) -> (y)
  const w: f32[16, 16, 3, 3]
  const v: f32[32, 16, 1, 1]
  const u: f32[32, 16, 3, 3]
  a = conv(x, w) {pads = (1, 1, 1, 1)}
  b = relu(a)
  c = conv(b, v)
  d = conv(b, u) {pads = (1, 1, 1, 1)}
  e = add(c, d)
  h = global_average_pool(e)
  y = flatten(h)
""")
    after, _ = optimise(before, OPERATORS)
    same(before, after)
    kinds = {r.title for r in regions(after.graph, OPERATORS, verify(after.graph, OPERATORS))}
    assert "transpose" not in kinds
    assert ["1", "8", "8", "16"] in [[str(e) for e in t.shape] for found in programs(after) for t in found.outputs]


def test_an_image_that_somebody_needs_as_it_is_keeps_its_order() -> None:
    before = bound("""
graph head(x: f32[1, 3, 8, 8]) -> (y)
  const w: f32[8, 3, 3, 3]
  const v: f32[4, 8, 1, 1]
  a = conv(x, w)
  b = conv(a, v)
  c = reshape(b) {shape = (4, 36)}
  y = softmax(c)
""")
    after, records = Layout()(before, OPERATORS)
    same(before, after)
    assert ops(after.graph) == ["conv", "transpose", "transpose", "conv", "reshape", "softmax"]
    assert records[0].what.startswith("1 of 1 image")


def test_outputs_and_inputs_keep_their_order() -> None:
    before = bound("graph g(x: f32[1, 3, 8, 8]) -> (a)\n  const w: f32[4, 3, 3, 3]\n  a = conv(x, w)")
    after, records = Layout()(before, OPERATORS)
    assert after is before and not records


def test_tensors_of_other_layers_are_no_images() -> None:
    before = bound("""
graph g(x: f32[2, 3, 8]) -> (y)
  const w: f32[8, 8]
  a = matmul(x, w)
  b = relu(a)
  y = matmul(b, w)
""")
    assert Layout()(before, OPERATORS)[0] is before


def test_a_cost_decides_for_each_image() -> None:
    def cost(program: Program) -> float:
        """Channels first for what is 8 x 8, last for what is 4 x 4."""
        shapes = [tuple(map(str, t.shape)) for t in program.tensors]
        return 10.0 + 10.0 * sum(shape in (("1", "8", "8", "16"), ("1", "16", "4", "4")) for shape in shapes)

    before = bound(BLOCK)
    after, records = Layout(estimate=cost)(before, OPERATORS)
    same(before, after)
    shapes = [[str(e) for e in t.shape] for program in programs(after) for t in program.outputs]
    assert shapes == [["1", "16", "8", "8"]] * 3 + [["1", "4", "4", "16"], ["1", "16"]]
    assert "cycles estimated" in records[0].why


def test_a_cost_that_sees_no_difference_leaves_all_as_it_is() -> None:
    before = bound(BLOCK)
    after, records = Layout(estimate=lambda _: 1.0)(before, OPERATORS)
    assert after is before
    assert records[0].what == "0 of 4 images around conv and 4 other regions: channels last"


def test_parts_are_put_together_in_the_order_they_lie_in() -> None:
    before = bound("""
graph dense(x: f32[1, 3, 8, 8]) -> (y)
  const w: f32[8, 3, 3, 3]
  const v: f32[9, 16, 3, 3]
  a = conv(x, w)
  b = relu(a)
  c = conv(x, w) {strides = (1, 1)}
  d = concat(b, c) {axis = 1}
  e = conv(d, v)
  y = global_average_pool(e)
""")
    after, records = Layout()(before, OPERATORS)
    same(before, after)
    assert records[0].what.startswith("4 of 4 images")
    found = programs(after)
    assert [len(program.statements) for program in found] == [1, 2, 2, 1, 2]
    assert [str(t.shape[-1]) for program in found[:4] for t in program.outputs] == ["8", "8", "16", "9"]


def test_images_of_few_channels_keep_their_order() -> None:
    before = bound("""
graph g(x: f32[1, 3, 8, 8]) -> (y)
  const w: f32[3, 3, 3, 3]
  a = conv(x, w)
  y = conv(a, w)
""")
    after, records = Layout()(before, OPERATORS)
    assert after is before
    assert records[0].why == "few channels"


def test_images_between_moves_alone_have_a_title() -> None:
    text = """graph g(x: f32[1, 8, 4, 3]) -> (a, p)
      e = erf(x)
      a = abs(e)
      p = pad(e) {pads = (0, 1, 2, 1, 0, 1, 1, 0)}
    """
    same(bound(text), optimise(bound(text), OPERATORS)[0])
