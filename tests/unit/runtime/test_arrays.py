"""Arguments: used where they lie, or refused in words a caller can act on."""

from __future__ import annotations

import ctypes

import ml_dtypes
import numpy as np
import pytest

from dovetail.base.dtypes import DTYPES
from dovetail.base.errors import CallError, ProgramError
from dovetail.runtime.arrays import ALIGNMENT_BYTES, Parameter, argument, bind, empty_aligned

X = Parameter("x", "f32", (2, 3), writable=False)
Y = Parameter("y", "f32", (2, 3), writable=True)


def floats(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def misaligned() -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    array = np.zeros(25, np.uint8)[1:].view(np.float32).reshape(2, 3)
    array[...] = floats(2, 3)
    return array


def refusal(parameter: Parameter, value: object) -> str:
    with pytest.raises(CallError) as raised:
        argument(parameter, value)
    return str(raised.value)


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("writable", [False, True])
def test_a_dense_array_of_any_dtype_is_used_where_it_lies(name: str, writable: bool) -> None:
    array = np.zeros((2, 3), DTYPES[name].numpy)
    bound = argument(Parameter("a", name, (2, 3), writable), array)
    assert bound.array is array
    assert bound.address == array.ctypes.data
    assert (bound.shape, bound.strides, bound.dtype) == ((2, 3), array.strides, name)


def test_a_read_only_input_is_used_where_it_lies() -> None:
    array = floats(2, 3)
    array.flags.writeable = False
    assert argument(X, array).array is array


def test_an_open_extent_takes_any_size() -> None:
    open_rows = Parameter("x", "f32", (None, 3), writable=False)
    assert argument(open_rows, floats(7, 3)).shape == (7, 3)
    assert refusal(open_rows, floats(7, 4)) == "argument 'x' has the wrong shape: expected f32[?,3], got f32[7,4]"


@pytest.mark.parametrize("poor", [floats(3, 2).T, floats(2, 6)[:, ::2], floats(2, 3)[::-1], misaligned()])
def test_a_strided_or_misaligned_input_is_copied_with_its_values(
    poor: np.ndarray[tuple[int, ...], np.dtype[np.float32]],
) -> None:
    bound = argument(X, poor)
    assert bound.array.flags.carray
    assert bound.address == bound.array.ctypes.data != poor.ctypes.data
    np.testing.assert_array_equal(bound.array, poor)


def test_a_strided_output_is_refused() -> None:
    assert refusal(Y, floats(3, 2).T) == (
        "argument 'y' is not contiguous: shape (2, 3), strides (4, 8) bytes\n"
        "  the kernel writes its outputs in place, in dense row-major order\n"
        "  try: pass a contiguous array and copy from it afterwards"
    )


def test_a_misaligned_output_is_refused() -> None:
    array = misaligned()
    assert refusal(Y, array) == (
        f"argument 'y' is misaligned: address {array.ctypes.data:#x} is no multiple of 4\n"
        "  the kernel writes its outputs in place, element by element\n"
        "  try: allocate it with numpy.empty"
    )


def test_a_read_only_output_is_refused() -> None:
    array = floats(2, 3)
    array.flags.writeable = False
    assert refusal(Y, array) == "argument 'y' is read-only, and the kernel writes to it\n  try: pass a copy"


@pytest.mark.parametrize("shape", [(3, 2), (6,), (2, 3, 1), ()])
def test_a_wrong_shape_is_refused(shape: tuple[int, ...]) -> None:
    got = ",".join(map(str, shape))
    assert refusal(X, np.zeros(shape, np.float32)) == (
        f"argument 'x' has the wrong shape: expected f32[2,3], got f32[{got}]"
    )


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        (np.dtype(np.float64), "f64"),
        (np.dtype(np.int32), "i32"),
        (np.dtype(ml_dtypes.bfloat16), "bf16"),
        (np.dtype(">f4"), ">f4"),
        (np.dtype(np.complex64), "complex64"),
    ],
)
def test_a_wrong_dtype_is_refused(dtype: np.dtype[np.generic], name: str) -> None:
    assert refusal(X, np.zeros((2, 3), dtype)) == (
        f"argument 'x' has the wrong dtype: expected f32[2,3], got {name}[2,3]\n  try: convert it: a.astype('float32')"
    )


def test_a_float32_is_no_bfloat16() -> None:
    assert refusal(Parameter("b", "bf16", (2, 3), False), floats(2, 3)).startswith(
        "argument 'b' has the wrong dtype: expected bf16[2,3], got f32[2,3]"
    )


@pytest.mark.parametrize("value", [[[1.0, 2.0, 3.0]] * 2, None, 3.0, "text"])
def test_what_is_no_array_is_refused(value: object) -> None:
    assert refusal(X, value) == (
        f"argument 'x' is a {type(value).__name__}, expected an array f32[2,3]\n"
        "  try: a NumPy array, or a CPU tensor of any library with DLPack"
    )


def test_a_masked_array_is_refused() -> None:
    assert refusal(X, np.ma.masked_array(floats(2, 3), mask=True)) == (
        "argument 'x' is a masked array, and the kernel would not see its mask\n  try: fill it first: a.filled(0)"
    )


def test_a_numpy_scalar_is_an_array_without_axes() -> None:
    bound = argument(Parameter("s", "f32", (), False), np.float32(2.5))
    assert ctypes.c_float.from_address(bound.address).value == 2.5


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0)])
@pytest.mark.parametrize("writable", [False, True])
def test_an_empty_array_is_an_argument_like_any_other(shape: tuple[int, ...], writable: bool) -> None:
    bound = argument(Parameter("e", "f32", shape, writable), np.zeros(shape, np.float32))
    assert bound.shape == shape


def test_an_unknown_dtype_in_a_parameter_is_an_error_at_once() -> None:
    with pytest.raises(ProgramError, match="unknown dtype 'f33'"):
        Parameter("x", "f33", (1,), False)


def test_arguments_are_bound_in_order() -> None:
    x, y = floats(2, 3), floats(2, 3)
    assert [a.address for a in bind((X, Y), (x, y))] == [x.ctypes.data, y.ctypes.data]


def test_two_inputs_may_be_the_same_array() -> None:
    x = floats(2, 3)
    other = Parameter("w", "f32", (2, 3), writable=False)
    assert len({a.address for a in bind((X, other), (x, x))}) == 1


@pytest.mark.parametrize("start", [0, 1, 3])
def test_an_output_that_shares_memory_with_an_input_is_refused(start: int) -> None:
    memory = floats(12)
    x, y = memory[:6].reshape(2, 3), memory[start : start + 6].reshape(2, 3)
    for parameters, values in (((X, Y), (x, y)), ((Y, X), (y, x))):
        with pytest.raises(CallError) as raised:
            bind(parameters, values)
        assert str(raised.value) == (
            "argument 'y' shares memory with 'x'\n"
            "  the kernel may write an output before it has read all of its inputs\n"
            "  try: pass a separate output array"
        )


def test_neighbours_in_one_memory_and_empty_arrays_share_nothing() -> None:
    memory = floats(12)
    bind((X, Y), (memory[:6].reshape(2, 3), memory[6:].reshape(2, 3)))
    empty = Parameter("e", "f32", (0,), writable=True)
    bind((X, empty), (memory[:6].reshape(2, 3), memory[2:2]))


def test_a_wrong_number_of_arguments_is_refused() -> None:
    with pytest.raises(CallError) as raised:
        bind((X, Y), (floats(2, 3),))
    assert str(raised.value) == "the kernel takes 2 arguments (x, y), got 1"


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 5), (2, 0, 4), (1000, 7)])
@pytest.mark.parametrize("name", ["f32", "bf16", "bool", "f64"])
def test_a_new_array_is_dense_writable_and_on_a_cache_line(shape: tuple[int, ...], name: str) -> None:
    array = empty_aligned(shape, name)
    assert (array.shape, array.dtype) == (shape, DTYPES[name].numpy)
    assert array.flags.carray
    assert array.ctypes.data % ALIGNMENT_BYTES == 0
    array[...] = 1
    assert (array == 1).all()


def test_new_arrays_do_not_overlap() -> None:
    arrays = [empty_aligned((5,), "f32") for _ in range(50)]
    for i, array in enumerate(arrays):
        array[...] = i
    assert [int(a.sum()) for a in arrays] == [5 * i for i in range(50)]
