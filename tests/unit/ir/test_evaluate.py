"""What programs mean, against NumPy written by hand."""

import time

import numpy as np
import numpy.typing as npt
import pytest

from dovetail.base.errors import CallError, IndexRangeError
from dovetail.ir.evaluate import evaluate
from dovetail.ir.fill import fill
from dovetail.ir.parse import parse
from dovetail.ir.verify import verify

Array = npt.NDArray[np.generic]


def run(text: str, sizes: dict[str, int] | None = None, **arrays: Array) -> dict[str, Array]:
    program = parse(text)
    verify(program)
    return evaluate(program, arrays, sizes)


def whole(shape: tuple[int, ...], dtype: str = "float32", seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


def test_integers_wrap_at_the_width_of_the_statement() -> None:
    x = np.array([100, -128, 127], np.int8)
    text = "in x: i8[3] out y: i8[3] for i<3: y[i] = x[i] + x[i]"
    assert run(text, x=x)["y"].tolist() == [-56, 0, -2]
    assert run(text.replace("out y: i8", "out y: i32"), x=x)["y"].tolist() == [200, -256, 254]


def test_sums_wrap_whatever_path_they_take() -> None:
    a, b = (np.full((2, 300), value, np.int64) for value in (2**40 + 1, 2**33 - 1))
    y = run("in a: i64[2, 300] in b: i64[2, 300] out y: i64[2, 2]"
            " for i<2, j<2, k<300: y[i, j] += a[i, k] * b[j, k]", a=a, b=b)["y"]  # fmt: skip
    exact = 300 * (2**40 + 1) * (2**33 - 1)
    assert y.tolist() == [[(exact + 2**63) % 2**64 - 2**63] * 2] * 2


def test_casts_of_floats_truncate_and_saturate() -> None:
    x = np.array([1.9, -1.9, 1e30, -1e30, np.nan, 127.5], np.float32)
    assert run("in x: f32[6] out y: i8[6] for i<6: y[i] = i8(x[i])", x=x)["y"].tolist() == [1, -1, 127, -128, 0, 127]
    assert run("in x: f32[6] out y: u64[6] for i<6: y[i] = x[i]", x=x)["y"].tolist() == [1, 0, 2**64 - 1, 0, 0, 127]


def test_small_floats_are_summed_unrounded_and_rounded_once() -> None:
    x = np.full(4096, 1, np.float16)
    assert run("in x: f16[4096] out y: f16[] for i<4096: y[] += x[i]", x=x)["y"] == 4096


def test_a_false_condition_leaves_the_point_out() -> None:
    x = np.array([np.inf, 1, 2], np.float32)
    assert run("in x: f32[3] out y: f32[] for i<4 where i >= 1, i < 3: y[] += x[i]", x=x)["y"] == 3


def test_masked_zeros_do_not_meet_infinities() -> None:
    x, w = np.ones((3, 4), np.float32), np.full((4, 2), np.inf, np.float32)
    y = run("in x: f32[3, 4] in w: f32[4, 2] out y: f32[3, 2]"
            " for i<3, j<2, k<4 where k < i: y[i, j] += x[i, k] * w[k, j]", x=x, w=w)["y"]  # fmt: skip
    assert y.tolist() == [[0, 0], [np.inf, np.inf], [np.inf, np.inf]]


@pytest.mark.parametrize(("combine", "expected"), [("+=", 9), ("*=", -60), ("max=", 5), ("min=", -3)])
def test_every_combine_starts_at_its_neutral_element_or_at_the_inout(combine: str, expected: int) -> None:
    x = np.array([4, 5, -3], np.int32)
    total = {"+=": 6, "*=": -60, "max=": 5, "min=": -3}[combine]
    assert run(f"in x: i32[3] out y: i32[] for i<3: y[] {combine} x[i]", x=x)["y"] == total
    start = np.array(1 if combine == "*=" else 3, np.int32)
    assert run(f"in x: i32[3] inout y: i32[] for i<3: y[] {combine} x[i]", x=x, y=start)["y"] == expected


def test_a_recurrence_runs_step_by_step() -> None:
    text = """size T in 0..100
    in h0: i32[8] in W: i32[8, 8] in x: i32[T, 8] out h: i32[T + 1, 8] temp a: i32[T, 8]
    for i<8: h[0, i] = h0[i]
    seq t<T: for i<8, j<8: a[t, i] += W[i, j] * h[t, j]
    seq t<T: for i<8: h[t + 1, i] = max(a[t, i] + x[t, i], 0)"""
    w, h0, x = whole((8, 8), "int32"), whole((8,), "int32", 1), whole((20, 8), "int32", 2)
    expected = [h0]
    for step in x:
        expected.append(np.maximum(np.matmul(w, expected[-1]) + step, 0))
    np.testing.assert_array_equal(run(text, W=w, h0=h0, x=x)["h"], np.array(expected))
    np.testing.assert_array_equal(run(text, W=w, h0=h0, x=x[:0])["h"], h0[None])


def test_gather_and_scatter_are_bounds_checked() -> None:
    x, f = whole((5, 3)), np.array([4, 0, 4], np.int32)
    gather = "in x: f32[5, 3] in f: i32[3] out y: f32[3, 3] for i<3, j<3: y[i, j] = x[f[i], j]"
    np.testing.assert_array_equal(run(gather, x=x, f=f)["y"], x[f])
    with pytest.raises(IndexRangeError, match="index 5 is outside dimension 0 of 'x'"):
        run(gather, x=x, f=f + 1)
    scatter = "in x: f32[3] in f: i32[3] inout y: f32[5] for i<3: y[f[i]] += x[i]"
    y = np.zeros(5, np.float32)
    assert run(scatter, x=np.ones(3, np.float32), f=f, y=y)["y"].tolist() == [1, 0, 0, 0, 2]
    assert not y.any()


def test_a_condition_on_data_guards_the_indirect_read() -> None:
    f = np.array([2, -7, 0], np.int64)
    text = "in x: f32[3] in f: i64[3] out y: f32[3] for i<3 where f[i] >= 0: y[i] += x[f[i]]"
    assert run(text, x=np.array([1, 2, 3], np.float32), f=f)["y"].tolist() == [3, 0, 1]


def test_zero_sized_dimensions_are_legal() -> None:
    y = run("in x: f32[0, 4] out y: f32[4] out z: f32[0] for i<0, j<4: y[j] += x[i, j] for i<0: z[i] = x[i, 0]",
            x=np.zeros((0, 4), np.float32))  # fmt: skip
    assert y["y"].tolist() == [0] * 4
    assert y["z"].shape == (0,)


def test_sizes_come_from_the_shapes_or_from_the_caller() -> None:
    text = "size n in 1..9 size m in 0..9 in x: f32[2 * n + m] in z: f32[m] out y: f32[n] for i<n: y[i] = x[2 * i]"
    assert run(text, x=whole((13,)), z=whole((3,)))["y"].shape == (5,)
    with pytest.raises(CallError, match=r"outside 1\.\.9"):
        run(text, {"n": 10}, x=whole((23,)), z=whole((3,)))


def convolution(channels: int, size: int, out: int, kernel: int, stride: int, pad: int) -> str:
    o = (size + 2 * pad - kernel) // stride + 1
    h, w = f"{stride} * p + r - {pad}", f"{stride} * q + s - {pad}"
    return (
        f"in x: f32[1, {channels}, {size}, {size}] const w: f32[{out}, {channels}, {kernel}, {kernel}]"
        f" out y: f32[1, {out}, {o}, {o}] for n<1, k<{out}, p<{o}, q<{o}, c<{channels}, r<{kernel}, s<{kernel}"
        f" where 0 <= {h} < {size}, 0 <= {w} < {size}: y[n, k, p, q] += x[n, c, {h}, {w}] * w[k, c, r, s]"
    )


@pytest.mark.parametrize(("kernel", "stride", "pad"), [(3, 1, 1), (7, 2, 3), (1, 1, 0), (2, 3, 0)])
def test_convolutions_equal_the_sum_over_taps(kernel: int, stride: int, pad: int) -> None:
    program = parse(convolution(3, 15, 4, kernel, stride, pad))
    verify(program)
    arrays = fill(program, 3)
    x, w = (arrays[name].astype(np.float64) for name in ("x", "w"))
    y = evaluate(program, arrays)["y"]
    padded = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    expected = np.zeros(y.shape)
    for r in range(kernel):
        for s in range(kernel):
            taps = padded[:, :, r::stride, s::stride][:, :, : y.shape[2], : y.shape[3]]
            expected += np.einsum("ncpq,kc->nkpq", taps, w[:, :, r, s])
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("layer", [(3, 224, 64, 7, 2, 3), (64, 56, 64, 3, 1, 1), (512, 7, 512, 3, 1, 1)])
def test_a_full_layer_takes_seconds_at_most(layer: tuple[int, int, int, int, int, int]) -> None:
    program = parse(convolution(*layer))
    arrays = fill(program, 0)
    start = time.perf_counter()
    y = evaluate(program, arrays)["y"]
    assert time.perf_counter() - start < 10
    assert np.count_nonzero(y) > y.size / 2
