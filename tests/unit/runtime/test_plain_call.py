"""The short way of a call takes exactly what it may take; everything else goes the general way, with its errors."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from dovetail.base.errors import CallError, IndexRangeError
from dovetail.pipeline import compile, program
from dovetail.runtime.kernel import Kernel
from dovetail.runtime.plain_call import layout_is_known

TEXT = "in a: f32[6, 8]  in b: f32[8, 16]  out c: f32[6, 16]\nfor i<6, j<16, k<8: c[i, j] += a[i, k] * b[k, j]"
Floats = np.ndarray[tuple[int, ...], np.dtype[np.float32]]


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    kernel = compile(program(TEXT), threads=1)
    assert isinstance(kernel, Kernel)
    return kernel


@pytest.fixture
def arrays() -> tuple[Floats, Floats, Floats]:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, shape).astype(np.float32) for shape in ((6, 8), (8, 16)))
    return a, b, np.full((6, 16), np.nan, np.float32)


def ran_plainly(kernel: object, *arrays: object, out: object) -> bool:
    assert isinstance(kernel, Kernel) and kernel._plain is not None
    return kernel._plain(arrays, out)


def test_numpy_is_laid_out_as_we_read_it() -> None:
    assert layout_is_known()


def test_exact_arrays_run_and_the_result_is_the_callers(kernel: Kernel, arrays: tuple[Floats, Floats, Floats]) -> None:
    a, b, c = arrays
    assert ran_plainly(kernel, a, b, out=c)
    assert np.array_equal(c, a @ b)
    assert kernel(a, b, out=c) is c


@pytest.mark.parametrize(
    "change",
    [
        lambda a, b, c: (a.astype(np.float64), b, c),
        lambda a, b, c: (a[:5], b, c),
        lambda a, b, c: (a.reshape(6, 8, 1), b, c),
        lambda a, b, c: (np.asfortranarray(a), b, c),
        lambda a, b, c: (a.astype(">f4"), b, c),
        lambda a, b, c: (a.tolist(), b, c),
        lambda a, b, c: (a.view(np.recarray), b, c),
        lambda a, b, c: (a, b, c[:, ::-1]),
        lambda a, b, c: (a, b, [c]),
        lambda a, b, c: (a, b, np.broadcast_to(c[0], (6, 16))),
        lambda a, b, c: (c.ravel()[:48].reshape(6, 8), b, c),
    ],
    ids=[
        "dtype",
        "shape",
        "rank",
        "column-major",
        "byte order",
        "list",
        "subclass",
        "strided output",
        "outputs as a list",
        "read-only output",
        "output over input",
    ],
)
def test_anything_else_is_left_alone(
    kernel: Kernel, arrays: tuple[Floats, Floats, Floats], change: Callable[..., tuple[object, object, object]]
) -> None:
    a, b, c = arrays
    first, second, out = change(a, b, c)
    assert not ran_plainly(kernel, first, second, out=out)
    assert np.isnan(c).all()


def test_a_wrong_number_of_arrays_is_left_alone(kernel: Kernel, arrays: tuple[Floats, Floats, Floats]) -> None:
    assert not ran_plainly(kernel, arrays[0], out=arrays[2])
    with pytest.raises(CallError, match="takes 2 arguments"):
        kernel(arrays[0], out=arrays[2])


def test_strided_inputs_go_the_general_way_and_are_exact(kernel: Kernel, arrays: tuple[Floats, Floats, Floats]) -> None:
    a, b, c = arrays
    kernel(np.asfortranarray(a), b, out=c)
    assert np.array_equal(c, a @ b)


def test_an_output_over_an_input_is_refused(kernel: Kernel, arrays: tuple[Floats, Floats, Floats]) -> None:
    _, b, c = arrays
    with pytest.raises(CallError, match="shares memory with input 'a'"):
        kernel(c.ravel()[:48].reshape(6, 8), b, out=c)


def test_a_bad_index_is_an_error_and_the_next_call_is_fine() -> None:
    gather = compile(program("in x: f32[9]  in i: i32[4]  out y: f32[4]\nfor p<4: y[p] = x[i[p]]"), threads=1)
    x, y = np.arange(9, dtype=np.float32), np.zeros(4, np.float32)
    with pytest.raises(IndexRangeError, match="out of range: 9"):
        gather(x, np.array([0, 9, 1, 2], np.int32), out=y)
    gather(x, np.array([0, 8, 1, 2], np.int32), out=y)
    assert y.tolist() == [0.0, 8.0, 1.0, 2.0]


def test_a_bound_constant_is_no_argument_any_more(arrays: tuple[Floats, Floats, Floats]) -> None:
    a, b, c = arrays
    bound = compile(program(TEXT.replace("in a", "const a")), threads=1, constants={"a": a})
    assert ran_plainly(bound, b, out=c)
    assert np.array_equal(c, a @ b)


SIZED = """size m in 1..40  in a: f32[m, 8]  in b: f32[8, 16]  out c: f32[m, 16]
for i<m, j<16, k<8: c[i, j] += a[i, k] * b[k, j]"""


def sized_arrays(rows: int) -> tuple[Floats, Floats, Floats]:
    rng = np.random.default_rng(rows)
    a, b = (rng.integers(-4, 5, shape).astype(np.float32) for shape in ((rows, 8), (8, 16)))
    return a, b, np.full((rows, 16), np.nan, np.float32)


def test_run_time_sizes_are_plain_while_they_stay_the_same() -> None:
    kernel = compile(program(SIZED), threads=2)
    a, b, c = sized_arrays(5)
    assert not ran_plainly(kernel, a, b, out=c) and np.isnan(c).all()
    kernel(a, b, out=c)
    assert ran_plainly(kernel, 2 * a, b, out=c) and np.array_equal(c, 2 * a @ b)
    for rows in (7, 5, 40, 1):
        a, b, c = sized_arrays(rows)
        assert not ran_plainly(kernel, a, b, out=c) and np.isnan(c).all()
        assert np.array_equal(kernel(a, b, out=c), a @ b)
        assert not ran_plainly(kernel, a, b, out=np.zeros((rows + 1, 16), np.float32))
    over = np.zeros((1, 16), np.float32)
    assert not ran_plainly(kernel, over[:, :8].reshape(1, 8), b, out=over)
    with pytest.raises(CallError, match=r"outside 1\.\.40"):
        kernel(*sized_arrays(41)[:2], out=np.zeros((41, 16), np.float32))


def test_a_size_that_only_the_caller_knows_is_asked_for_every_time() -> None:
    kernel = compile(program("size m in 1..9  in x: f32[4]  out y: f32[m, 4]\nfor i<m, j<4: y[i, j] = x[j]"), threads=1)
    x, y = np.arange(4, dtype=np.float32), np.zeros((3, 4), np.float32)
    assert np.array_equal(kernel(x, out=y, sizes={"m": 3}), np.tile(x, (3, 1)))
    with pytest.raises(CallError, match="the value of size 'm' is unknown"):
        kernel(x, out=y)


def test_callers_on_several_threads_do_not_meet(kernel: Kernel) -> None:
    rng = np.random.default_rng(1)
    cases = [[rng.integers(-4, 5, s).astype(np.float32) for s in ((6, 8), (8, 16))] for _ in range(64)]
    outs = [np.zeros((6, 16), np.float32) for _ in cases]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda pair: kernel(*pair[0], out=pair[1]), zip(cases, outs, strict=True)))
    assert all(np.array_equal(out, a @ b) for (a, b), out in zip(cases, outs, strict=True))
