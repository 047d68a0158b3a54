import ast
import itertools
import math
import re

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks import programs
from benchmarks.problems import Operands, check
from benchmarks.shapes import Conv, Gemm, Matmul

Integers = NDArray[np.int64]

CONVS = [
    Conv(1, 2, 3, (5, 6), (3, 3), (5, 6), (1, 1), (1, 1), (1, 1)),
    Conv(2, 4, 6, (7, 9), (3, 2), (4, 5), (2, 2), (1, 1), (1, 2), groups=2),
    Conv(1, 3, 3, (9,), (3,), (4,), (2,), (0,), (1,), groups=3),
    Conv(1, 2, 2, (4, 5, 3), (2, 1, 3), (3, 3, 3), (1, 2, 1), (0, 0, 1), (1, 1, 1)),
    Conv(1, 1, 2, (4,), (2,), (1,), (5,), (0,), (1,)),
    Conv(1, 1, 1, (3,), (4,), (2,), (2,), (1,), (2,)),
]


def value_of(node: ast.expr, names: dict[str, int]) -> int:
    """An index or condition of the language, which Python spells alike."""
    match node:
        case ast.Name(id=name):
            return names[name]
        case ast.Constant(value=int(value)):
            return value
        case ast.BinOp(left=left, op=op, right=right):
            a, b = value_of(left, names), value_of(right, names)
            table = {ast.Add: a + b, ast.Sub: a - b, ast.Mult: a * b}
            if isinstance(op, ast.FloorDiv | ast.Mod):
                return a // b if isinstance(op, ast.FloorDiv) else a % b
            return table[type(op)]
        case ast.Compare(left=left, ops=ops, comparators=rights):
            sides = [value_of(side, names) for side in (left, *rights)]
            tests = {ast.LtE: int.__le__, ast.Lt: int.__lt__, ast.Eq: int.__eq__}
            return int(all(tests[type(op)](a, b) for op, a, b in zip(ops, sides, sides[1:], strict=False)))
    raise AssertionError(ast.dump(node))


def parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def evaluate(text: str, arrays: dict[str, Integers]) -> Integers:
    """The one statement of a program, point by point; an index out of range is an error."""
    *declarations, statement = text.strip().splitlines()
    declared = [re.fullmatch(r"(in|const|out) (\w+): f32\[(.*)\]", line) for line in declarations]
    shapes = {m[2]: tuple(map(int, m[3].split(","))) for m in declared if m}
    assert {name: array.shape for name, array in arrays.items()} == {n: shapes[n] for n in arrays}
    match = re.fullmatch(r"for (.*?)(?: where (.*))?: (\w+)\[(.*)\] \+= (\w+)\[(.*)\] \* (\w+)\[(.*)\]", statement)
    assert match is not None
    loops = dict(loop.split("<") for loop in match[1].split(", "))
    conditions = [parsed(c) for c in match[2].split(", ")] if match[2] else []
    accesses = [(match[i], [parsed(index) for index in match[i + 1].split(",")]) for i in (3, 5, 7)]
    result = np.zeros(shapes[match[3]], np.int64)
    for point in itertools.product(*(range(int(extent)) for extent in loops.values())):
        names = dict(zip(loops, point, strict=True))
        if all(value_of(condition, names) for condition in conditions):
            places = [tuple(value_of(i, names) for i in indices) for _, indices in accesses]
            assert all(min(place) >= 0 for place in places)
            left, right = (arrays[accesses[i][0]][places[i]] for i in (1, 2))
            result[places[0]] += left * right
    return result


def integers(*shape: int) -> Integers:
    return np.random.default_rng(math.prod(shape)).integers(-3, 4, shape)


def test_a_plain_product_reads_like_the_formula() -> None:
    assert programs.gemm(Gemm(2, 3, 4)) == (
        "in a: f32[2,4]\nin b: f32[4,3]\nout c: f32[2,3]\nfor i<2, j<3, l<4: c[i,j] += a[i,l] * b[l,j]\n"
    )


def test_constants_and_wider_accumulators_are_declared() -> None:
    text = programs.gemm(Gemm(2, 3, 4), constants=("a",), dtype="i8", accumulator="i32")
    assert text.splitlines()[:3] == ["const a: i8[2,4]", "in b: i8[4,3]", "out c: i32[2,3]"]


def test_run_time_rows_are_a_size() -> None:
    assert programs.sized_gemm(8, 9, 1, 512).splitlines() == [
        "size m in 1..512",
        "in a: f32[m,9]",
        "in b: f32[9,8]",
        "out c: f32[m,8]",
        "for i<m, j<8, l<9: c[i,j] += a[i,l] * b[l,j]",
    ]


def test_padding_becomes_a_condition_and_no_padding_none() -> None:
    padded = Conv(1, 64, 64, (56, 56), (3, 3), (56, 56), (1, 1), (1, 1), (1, 1))
    assert programs.conv(padded).splitlines()[-1] == (
        "for n<1, k<64, p<56, q<56, c<64, r<3, s<3 where 0 <= p+r-1 < 56, 0 <= q+s-1 < 56: "
        "y[n,k,p,q] += x[n,c,p+r-1,q+s-1] * w[k,c,r,s]"
    )
    assert "where" not in programs.conv(Conv(1, 1, 1, (8,), (3,), (6,), (1,), (0,), (1,)))


def test_a_depthwise_convolution_has_one_channel_loop() -> None:
    assert programs.conv(CONVS[2]).splitlines()[-1] == ("for n<1, g<3, q<4, s<3: y[n,g,q] += x[n,g,q*2+s] * w[g,0,s]")


@pytest.mark.parametrize("trans_a", [False, True])
@pytest.mark.parametrize("trans_b", [False, True])
def test_every_transpose_of_a_product_computes_the_product(trans_a: bool, trans_b: bool) -> None:
    shape = Gemm(3, 5, 4, trans_a, trans_b)
    a, b = integers(*shape.a_shape), integers(*shape.b_shape)
    want = (a.T if trans_a else a) @ (b.T if trans_b else b)
    assert np.array_equal(evaluate(programs.gemm(shape), {"a": a, "b": b}), want)


@pytest.mark.parametrize(("a", "b"), [((2, 3, 4), (2, 4, 5)), ((1, 3, 4), (2, 4, 5)), ((2, 1, 3, 4), (1, 2, 4, 2))])
def test_batched_and_broadcast_products_compute_the_product(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    x, y = integers(*a), integers(*b)
    assert np.array_equal(evaluate(programs.matmul(Matmul(a, b)), {"a": x, "b": y}), x @ y)


@pytest.mark.parametrize("shape", CONVS)
def test_a_convolution_program_computes_the_convolution(shape: Conv) -> None:
    x, w = integers(*shape.x_shape), integers(*shape.w_shape)
    y = evaluate(programs.conv(shape), {"x": x, "w": w})
    inputs = Operands(x.astype(np.float32), w.astype(np.float32))
    assert check(shape, inputs, y.astype(np.float32)).error == 0.0


@pytest.mark.parametrize("shape", CONVS)
def test_the_backward_programs_are_the_adjoints_of_the_forward_one(shape: Conv) -> None:
    """<dy, conv(x, w)> = <conv_backward_data(dy, w), x> = <conv_backward_weights(x, dy), w>, exactly."""
    x, w, dy = integers(*shape.x_shape), integers(*shape.w_shape), integers(*shape.y_shape)
    forward = np.sum(evaluate(programs.conv(shape), {"x": x, "w": w}) * dy)
    dx = evaluate(programs.conv_backward_data(shape), {"dy": dy, "w": w})
    dw = evaluate(programs.conv_backward_weights(shape), {"x": x, "dy": dy})
    assert forward == np.sum(dx * x) == np.sum(dw * w)
