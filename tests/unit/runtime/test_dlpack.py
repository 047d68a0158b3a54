"""Tensors of other libraries, through DLPack."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from dovetail.base.errors import CallError
from dovetail.runtime.arrays import Parameter, argument


class Wrapped:
    """A producer that is no NumPy array, in the protocol's new form or its old one."""

    def __init__(self, array: np.ndarray[tuple[int, ...], np.dtype[np.number]], versioned: bool) -> None:
        self.array, self.versioned = array, versioned

    def __dlpack__(self, **options: object) -> object:
        if options and not self.versioned:
            raise TypeError("unexpected keyword argument 'max_version'")
        return self.array.__dlpack__(max_version=(1, 0)) if self.versioned else self.array.__dlpack__()


class Failing:
    def __dlpack__(self, **options: object) -> object:
        raise BufferError("this tensor is only an idea")


@pytest.mark.parametrize("versioned", [False, True])
@pytest.mark.parametrize("name", ["bool", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f16", "f32", "f64"])
def test_a_tensor_is_used_where_it_lies(name: str, versioned: bool) -> None:
    parameter = Parameter("x", name, (2, 3), writable=True)
    array = np.arange(6).reshape(2, 3).astype(parameter.numpy)
    bound = argument(parameter, Wrapped(array, versioned))
    assert bound.address == array.ctypes.data
    np.testing.assert_array_equal(bound.array, array)
    bound.array[0, 0] = 1
    assert array[0, 0] == 1


def test_a_strided_tensor_is_copied_as_an_input_and_refused_as_an_output() -> None:
    array = np.arange(6, dtype=np.float32).reshape(3, 2).T
    bound = argument(Parameter("x", "f32", (2, 3), False), Wrapped(array, True))
    np.testing.assert_array_equal(bound.array, array)
    with pytest.raises(CallError, match="argument 'y' is not contiguous"):
        argument(Parameter("y", "f32", (2, 3), True), Wrapped(array, True))


def test_a_read_only_tensor_is_refused_as_an_output() -> None:
    array = np.zeros((2, 3), np.float32)
    array.flags.writeable = False
    with pytest.raises(CallError, match="argument 'y' is read-only"):
        argument(Parameter("y", "f32", (2, 3), True), Wrapped(array, True))


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3)])
def test_tensors_without_axes_and_without_elements_are_tensors(shape: tuple[int, ...]) -> None:
    array = np.ones(shape, np.float32)
    bound = argument(Parameter("x", "f32", shape, False), Wrapped(array, True))
    np.testing.assert_array_equal(bound.array, array)


def test_the_tensor_lives_as_long_as_its_argument_and_no_longer() -> None:
    array = np.full((2, 3), 7, np.float32)
    alive = weakref.ref(array)
    bound = argument(Parameter("x", "f32", (2, 3), False), Wrapped(array, True))
    del array
    gc.collect()
    assert alive() is not None
    assert bound.array.sum() == 42
    del bound
    gc.collect()
    assert alive() is None


def test_a_producers_refusal_is_passed_on() -> None:
    with pytest.raises(CallError) as raised:
        argument(Parameter("x", "f32", (2, 3), False), Failing())
    assert str(raised.value) == "argument 'x' cannot be shared by its library\n  this tensor is only an idea"


def test_an_element_type_without_a_name_here_is_refused() -> None:
    with pytest.raises(CallError) as raised:
        argument(Parameter("x", "f32", (2, 3), False), Wrapped(np.zeros((2, 3), np.complex64), True))
    assert str(raised.value).startswith(
        "argument 'x' has an element type that Dovetail does not know\n  DLPack type code 5, 64 bits, 1 lanes\n"
    )


def test_torch_tensors_of_all_shared_dtypes_are_used_where_they_lie() -> None:
    torch = pytest.importorskip("torch")
    shared = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32, "i64": torch.int64, "u8": torch.uint8}
    for name, dtype in shared.items():
        tensor = torch.arange(6).reshape(2, 3).to(dtype)
        bound = argument(Parameter("x", name, (2, 3), True), tensor)
        assert bound.address == tensor.data_ptr()
        assert bound.array.astype(np.int64).tolist() == [[0, 1, 2], [3, 4, 5]]
        bound.array[1, 2] = 9
        assert int(tensor[1, 2]) == 9


def test_a_torch_tensor_that_is_not_on_the_cpu_or_needs_gradients_is_refused() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(CallError, match="argument 'x' cannot be shared by its library"):
        argument(Parameter("x", "f32", (2, 3), False), torch.zeros(2, 3, requires_grad=True))
    with pytest.raises(CallError, match=r"argument 'x' (cannot be shared|is not in this machine's main memory)"):
        argument(Parameter("x", "f32", (2, 3), False), torch.zeros(2, 3, device="meta"))
