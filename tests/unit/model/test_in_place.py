from __future__ import annotations

import pytest

from dovetail.ir.graph.bound import BoundGraph
from dovetail.ir.graph.build import Builder
from dovetail.ir.parse import parse
from dovetail.model.build import compile_graph
from dovetail.model.in_place import may_take_over
from dovetail.ops.table import OPERATORS
from dovetail.runtime.model_image import NativeStep, Space
from tests.unit.model.graphs import kind, same, wanted, whole_numbers


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("in x: f32[8, 4]  in b: f32[4]  out y: f32[8, 4]\nfor i<8, j<4: y[i, j] = x[i, j] * 2 + b[j]", [("x", "y")]),
        ("in x: f32[8]  out y: i32[8]\nfor i<8: y[i] = i32(x[i])", [("x", "y")]),
        ("in x: f32[8]  out y: f64[8]\nfor i<8: y[i] = x[i]", []),
        ("in x: f32[8]  out y: f32[8]\nfor i<8: y[i] = x[7 - i]", []),
        ("in x: f32[8]  out y: f32[8]\nfor i<8: y[i] = x[i] + x[7 - i]", []),
        ("in x: f32[8, 8]  out y: f32[8, 8]\nfor i<8, j<8: y[i, j] = x[j, i]", []),
        ("const x: f32[8]  out y: f32[8]\nfor i<8: y[i] = x[i]", []),
        ("in x: f32[8]  out y: f32[8]\nfor i<8, k<8: y[i] += x[i]", []),
        ("in x: f32[8]  out y: f32[8]  out z: f32[8]\nfor i<8: y[i] = x[i]\nfor i<8: z[i] = x[i]", []),
    ],
)
def test_a_result_may_lie_where_only_its_own_elements_are_read(text: str, found: list[tuple[str, str]]) -> None:
    assert list(may_take_over(parse(text))) == found


@pytest.mark.parametrize("extent", [1, 7, 33, 1000])
def test_a_result_written_over_its_operand_is_right_to_the_last_element(extent: int) -> None:
    b = Builder("chain", OPERATORS)
    x = b.input("x0", kind("f32", 3, extent))
    y = b.add("relu", b.add("cumsum", x, axis=0))
    last = b.add("cumsum", b.add("add", y, b.add("cumsum", y, axis=1)), axis=0)
    bound, array = BoundGraph(b.graph(last), {}), whole_numbers(2, 3, extent)
    model = compile_graph(bound, threads=2, cache=False, jobs=1)
    assert same(model(array), wanted(bound, array))
    steps = [step for step in model.finished.image.steps if isinstance(step, NativeStep)]
    arena = [[place.at for place in step.arguments if place.space is Space.ARENA] for step in steps]
    assert any(len(set(places)) < len(places) for places in arena), "some step writes over its operand"
