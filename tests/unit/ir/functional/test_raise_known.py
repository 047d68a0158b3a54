"""Programs that are known, raised and normalised: those of other tests, of the benchmarks, and of operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest

from benchmarks.programs import conv, conv_backward_data, conv_backward_weights, gemm, matmul, sized_gemm
from benchmarks.shapes import SHAPES, Conv, Gemm, read_shapes
from dovetail.ir.canonical import canonicalise
from dovetail.ir.evaluate import evaluate
from dovetail.ir.fill import fill
from dovetail.ir.functional.evaluate import evaluate as evaluate_term
from dovetail.ir.functional.infer import check
from dovetail.ir.functional.normalise import normalise
from dovetail.ir.functional.raise_program import raise_program
from dovetail.ir.functional.term import Definition, Pattern, walk
from dovetail.ir.graph.parse import parse as parse_graph
from dovetail.ir.parse import parse
from dovetail.ir.program import Program
from dovetail.ir.verify import verify
from dovetail.ops.region import graph_program
from dovetail.ops.table import OPERATORS
from tests.differential import test_fusion
from tests.differential.small_programs import PROGRAMS, text_for
from tests.differential.test_found import FOUND

INDIRECT = (
    "gather",
    "scatter",
    "small floats that scatter into an inout",
    "an index read for a dimension of one element",
)
FUSED = {name: text for name, (text, _) in test_fusion.EXACT.items() if name not in INDIRECT}
WAS_WRONG = {
    name: text for name, (text, _) in FOUND.items() if name not in (*INDIRECT, "places that are computed first")
}
SMALL = (
    Conv(2, 3, 4, (7, 8), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1), 1),
    Conv(1, 3, 4, (9, 9), (3, 2), (2, 1), (1, 1), (1, 2), (1, 0), 1),
    Conv(1, 4, 6, (7, 7), (3, 3), (1, 1), (2, 2), (2, 2), (2, 2), 2),
    Conv(1, 6, 6, (7, 7), (3, 3), (2, 2), (1, 1), (1, 1), (1, 1), 6),
    Conv(2, 5, 4, (4, 4), (1, 1), (1, 1), (1, 1), (0, 0), (0, 0), 1),
)
CONVS: tuple[Callable[[Conv], str], ...] = (conv, conv_backward_weights, conv_backward_data)
GRAPHS = {
    "LSTM": """size T in 1..30
        graph lstm(x: f32[T, 2, 3], h: f32[2, 4], c: f32[2, 4]) -> (all, last)
          const w: f32[16, 3]
          const r: f32[16, 4]
          last, state, all = scan(h, c, x, w, r) {carried = 2, scanned = 1} do
            graph step(h: f32[2, 4], c: f32[2, 4], x: f32[2, 3], w: f32[16, 3], r: f32[16, 4]) -> (hn, cn, hn)
              hn, cn = lstm_cell(x, h, c, w, r)
            end""",
    "GRU": """graph gru(x: f32[2, 3], h: f32[2, 4], w: f32[12, 3], r: f32[12, 4], b: f32[12], c: f32[12]) -> (y)
          y = gru_cell(x, h, w, r, b, c)""",
    "GRU, reset after the product": """
        graph gru(x: f32[2, 3], h: f32[2, 4], w: f32[12, 3], r: f32[12, 4], b: f32[12], c: f32[12]) -> (y)
          y = gru_cell(x, h, w, r, b, c) {linear_before_reset = 1}""",
}


HARD = {
    "two loops of steps": """in x: i32[3,4] out h: i32[4,5]
for j<5: h[0,j] = 1
for i<3: h[i+1,0] = 2
seq t<3, u<4: h[t+1,u+1] = h[t,u+1] + h[t+1,u] - x[t,u]""",
    "steps that read all that went before": """size T in 0..6
in x: i32[T,3] out y: i32[T,3] temp a: i32[T,3] temp h: i32[T+1,3]
for i<3: h[0,i] = 0
seq t<T: for i<3, j<3, u<T where u<=t: a[t,i] += h[u,j]
seq t<T: for i<3 where i>=1: h[t+1,i] = a[t,i] + x[t,i]
seq t<T: h[t+1,0] = a[t,0]
for t<T, i<3: y[t,i] = h[t+1,i]""",
    "a part read while another is written": """inout c: i32[8] in x: i32[4]
for i<4: c[i] = c[i+4] + x[i]""",
    "an inout that is read later": """inout c: i32[8] out y: i32[8] in x: i32[8]
for i<8: c[i] += x[i]
for i<8: y[i] = c[7-i]""",
    "names that are words of the language": """inout map: i32[8] out get: i32[8] in let: i32[8] out zip: i32[8]
for i<8: map[i] += let[i]
for i<8: get[i] = map[7-i]
for i<8: zip[i] = get[i] * let[i]""",
    "an inout that steps write": """inout h: i32[9] in x: i32[8]
seq t<8: h[t+1] = h[t] + x[t]""",
    "parts that are read between writes": """in x: i32[8] out y: i32[8] out z: i32[8] temp t: i32[8]
for i<4: t[i] = x[i]
for i<4: y[i] = t[3-i]
for i<4: t[i+4] = y[i]
for i<4: y[i+4] = t[i+4]
for i<8: z[i] = t[i]""",
    "an accumulator of small floats": """in a: f16[5,6] in b: f16[6,7] inout c: f16[5,7]
for i<5, j<7, k<6: c[i,j] += a[i,k]*b[k,j]""",
    "a maximum in a narrow type": """in a: i8[5,6] in b: i8[6,7] out c: i8[5,7]
for i<5, j<7, k<6: c[i,j] max= i32(a[i,k])*i32(b[k,j])""",
    "integers among floats": """in a: i32[6] out c: f32[6] out e: f32[6]
for i<6: c[i] = a[i]*2 + i*0.5
for i<6: e[i] = select(i < a[i], i, a[i])""",
}


def comes_back(program: Program) -> Definition:
    raised = raise_program(program)
    assert str(normalise(raised)) == str(canonicalise(program)), str(raised)
    return raised


def agrees(program: Program, raised: Definition, sizes: Mapping[str, int] | None = None) -> None:
    """Fail unless the term computes what the program does, on data on which all arithmetic is exact."""
    arrays = fill(program, 1, sizes)
    wanted, found = evaluate(program, arrays, sizes), evaluate_term(raised, arrays, sizes)
    for name, array in wanted.items():
        np.testing.assert_array_equal(found[name], array, err_msg=str(raised))


@pytest.mark.parametrize("operand, total", (("f32", "f32"), ("i8", "i32"), ("f16", "f32")))
@pytest.mark.parametrize("name", PROGRAMS)
def test_small_programs_come_back_and_agree(name: str, operand: str, total: str) -> None:
    program = parse(text_for(name, operand, total))
    agrees(program, comes_back(program))


@pytest.mark.parametrize("name", FUSED)
def test_programs_of_several_statements_come_back(name: str) -> None:
    comes_back(parse(FUSED[name]))


@pytest.mark.parametrize("name", WAS_WRONG)
def test_programs_that_were_once_wrong_come_back(name: str) -> None:
    comes_back(parse(WAS_WRONG[name]))


@pytest.mark.parametrize("name", HARD)
def test_hard_programs_come_back_and_agree(name: str) -> None:
    program = parse(HARD[name])
    verify(program)
    agrees(program, comes_back(program), {size.name: 4 for size in program.sizes})


@pytest.mark.parametrize("name", GRAPHS)
def test_recurrent_layers_come_back(name: str) -> None:
    program = graph_program(parse_graph(GRAPHS[name]), OPERATORS)
    check(comes_back(program))


@pytest.mark.parametrize("form", CONVS)
@pytest.mark.parametrize("shape", SMALL)
def test_small_convolutions_and_their_gradients_agree(shape: Conv, form: Callable[[Conv], str]) -> None:
    program = parse(form(shape))
    agrees(program, comes_back(program))


@pytest.mark.parametrize("name", ("resnet50_convs", "vgg16", "yolov2", "deepbench", "benchdnn_convs"))
def test_benchmark_convolutions_come_back_without_views(name: str) -> None:
    convs = read_shapes(SHAPES / f"{name}.json").convs
    for shape in convs[:: max(1, len(convs) // 12)]:
        raised = comes_back(parse(conv(shape)))
        assert not [t for t in walk(raised.body) if isinstance(t, Pattern) and t.name in ("scatter", "steps")]
        assert not any(_runs(t) for t in walk(raised.body)), str(raised)
        comes_back(parse(conv_backward_weights(shape)))
        comes_back(parse(conv_backward_data(shape)))


def test_benchmark_products_come_back_without_views() -> None:
    products = read_shapes(SHAPES / "benchdnn_matmul_rnn.json").matmuls
    texts = [matmul(shape) for shape in products[:: len(products) // 20]]
    texts += [gemm(Gemm(5, 6, 7, a, b), dtype=d) for a in (False, True) for b in (False, True) for d in ("f32", "bf16")]
    texts += [gemm(Gemm(5, 6, 7, False, True), dtype="i8", accumulator="i32"), sized_gemm(8, 16, 0, 64)]
    for text in texts:
        raised = comes_back(parse(text))
        assert not any(_runs(t) for t in walk(raised.body)), str(raised)


def _runs(term: object) -> bool:
    """A view that is more than one element taken out."""
    return isinstance(term, Pattern) and term.name == "view" and bool(getattr(term.settings[0], "loops", ()))
