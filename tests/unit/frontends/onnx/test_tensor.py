"""Tensors of files: every element type in every layout is read as ONNX itself reads it, and lies are refused."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from dovetail.base.errors import DovetailError, LimitError, ModelError, UnsupportedError
from dovetail.base.limits import ModelLimits
from dovetail.frontends.onnx.elements import ELEMENTS, Element
from dovetail.frontends.onnx.file import from_proto, read
from dovetail.frontends.onnx.model import OnnxSparseTensor, OnnxTensor
from tests.unit.frontends.onnx.models import array, model, value, with_tensor

NUMERIC = [element for element in ELEMENTS.values() if element.bits]


def first(proto: TensorProto) -> OnnxTensor:
    tensor = from_proto(with_tensor(proto)).graph.initializers[proto.name]
    assert isinstance(tensor, OnnxTensor)
    return tensor


def sample(element: Element) -> TensorProto:
    """Five values of a type in its typed field."""
    wide = [0, 1, 1, 0, 1] if element.bits == 1 or element.name == "bool" else [0, 1, 2, 3, 1]
    if element.name == "int2":
        wide = [0, 1, -2, -1, 1]
    return helper.make_tensor("w", element.code, [5], wide)


@pytest.mark.parametrize("element", NUMERIC, ids=lambda element: element.name)
def test_typed_entries_are_read_as_onnx_reads_them(element: Element) -> None:
    proto = sample(element)
    expected = numpy_helper.to_array(proto)
    found = first(proto)
    assert found.dtype == element.array
    assert found.array().astype(expected.dtype).tobytes() == expected.tobytes()


@pytest.mark.parametrize("element", NUMERIC, ids=lambda element: element.name)
def test_raw_bytes_are_read_as_onnx_reads_them(element: Element) -> None:
    rng = np.random.default_rng(element.code)
    raw = rng.integers(0, 2 if element.name == "bool" else 256, element.raw_bytes(7), np.uint8).tobytes()
    proto = TensorProto(name="w", data_type=element.code, dims=[7], raw_data=raw)
    assert first(proto).array().tobytes() == numpy_helper.to_array(proto).astype(element.array).tobytes()


@pytest.mark.parametrize("element", NUMERIC, ids=lambda element: element.name)
@pytest.mark.parametrize("change", [-1, 1])
def test_a_byte_or_an_entry_too_few_or_too_many_is_refused(element: Element, change: int) -> None:
    raw = TensorProto(name="w", data_type=element.code, dims=[8], raw_data=bytes(element.raw_bytes(8) + change))
    with pytest.raises(ModelError, match="raw bytes"):
        first(raw)
    typed = TensorProto(name="w", data_type=element.code, dims=[8])
    getattr(typed, element.field).extend([0] * (element.entries(8) + change))
    with pytest.raises(ModelError, match="entries"):
        first(typed)


def test_strings_are_texts() -> None:
    found = first(helper.make_tensor("w", TensorProto.STRING, [2, 1], [b"one", "zw\u00f6lf".encode()]))
    assert found.array().tolist() == [["one"], ["zw\u00f6lf"]]


def test_strings_that_are_not_text_are_refused() -> None:
    with pytest.raises(ModelError, match="UTF-8"):
        first(helper.make_tensor("w", TensorProto.STRING, [1], [b"\xff"]))


def test_values_cannot_be_written_to() -> None:
    assert not first(array(1, 2, 3)).array().flags.writeable


def test_a_scalar_has_no_dimensions() -> None:
    found = first(numpy_helper.from_array(np.array(3, np.int64), "w"))
    assert found.shape == () and found.array() == 3


def test_an_empty_tensor_is_empty() -> None:
    assert first(TensorProto(name="w", data_type=1, dims=[0, 3])).shape == (0, 3)


@pytest.mark.parametrize(
    ("dims", "kind"),
    [
        ([-1], ModelError),
        ([2**31], LimitError),
        ([2**63 - 1], LimitError),
        ([2**30, 2**30], LimitError),
        ([2**31 - 1] * 4, LimitError),
        ([0, 2**31 - 1, 2**31 - 1, 2**31 - 1], LimitError),
        ([1] * 33, LimitError),
        ([3], ModelError),
    ],
)
def test_dimensions_that_do_not_fit_the_data_are_refused(dims: list[int], kind: type[DovetailError]) -> None:
    with pytest.raises(kind):
        first(TensorProto(name="w", data_type=1, dims=dims, raw_data=b"\0" * 8))


@pytest.mark.parametrize("code", [0, 27, -1, 1 << 30])
def test_an_unknown_element_type_is_refused(code: int) -> None:
    with pytest.raises(UnsupportedError, match="element type"):
        first(TensorProto(name="w", data_type=code, dims=[1]))


@pytest.mark.parametrize(
    ("code", "entry"),
    [
        (TensorProto.UINT8, 256),
        (TensorProto.INT8, -129),
        (TensorProto.BOOL, 2),
        (TensorProto.FLOAT16, 65536),
        (TensorProto.BFLOAT16, -1),
        (TensorProto.INT4, 256),
    ],
)
def test_an_entry_that_is_no_such_element_is_refused(code: int, entry: int) -> None:
    with pytest.raises(ModelError, match="not in"):
        first(TensorProto(name="w", data_type=code, dims=[1], int32_data=[entry]))


def test_a_raw_truth_value_is_zero_or_one() -> None:
    with pytest.raises(ModelError, match="no bool"):
        first(TensorProto(name="w", data_type=TensorProto.BOOL, dims=[2], raw_data=b"\1\7"))


def test_values_in_two_places_are_refused() -> None:
    with pytest.raises(ModelError, match="several places"):
        first(TensorProto(name="w", data_type=1, dims=[1], raw_data=b"\0" * 4, float_data=[0.0]))


def test_values_in_the_field_of_another_type_are_refused() -> None:
    with pytest.raises(ModelError, match="int64_data"):
        first(TensorProto(name="w", data_type=1, dims=[1], int64_data=[0]))


def test_segments_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="segments"):
        first(TensorProto(name="w", data_type=1, dims=[1], float_data=[0.0], segment={"begin": 0, "end": 1}))


def test_all_tensors_together_have_a_limit() -> None:
    weights = [array(1, 2, 3, 4, name=name) for name in "abc"]
    proto = model([], [], [value("a", 4)], weights)
    from_proto(proto, ModelLimits(constant_bytes=48))
    with pytest.raises(LimitError, match="constant_bytes"):
        from_proto(proto, ModelLimits(constant_bytes=47))


def test_a_huge_tensor_of_a_small_file_is_refused_before_memory_is_taken() -> None:
    tensor = TensorProto(name="w", data_type=TensorProto.COMPLEX128, dims=[2**31 - 1])
    with pytest.raises(LimitError, match="tensor_bytes"):
        read(with_tensor(tensor).SerializeToString())


def sparse(indices: list[object], dims: list[int], values: int = 2) -> OnnxSparseTensor:
    data = numpy_helper.from_array(np.arange(1, values + 1, dtype=np.float32), "s")
    at = numpy_helper.from_array(np.array(indices, np.int64), "at")
    proto = model([], [], [value("s", 3, 2)])
    proto.graph.sparse_initializer.append(helper.make_sparse_tensor(data, at, dims))
    found = from_proto(proto).graph.initializers["s"]
    assert isinstance(found, OnnxSparseTensor)
    return found


@pytest.mark.parametrize("indices", [[1, 4], [[0, 1], [2, 0]]])
def test_a_sparse_tensor_can_be_made_dense(indices: list[object]) -> None:
    assert sparse(indices, [3, 2]).array().tolist() == [[0, 1], [0, 0], [2, 0]]


@pytest.mark.parametrize(
    ("indices", "dims"),
    [
        ([1, 6], [3, 2]),
        ([-1, 4], [3, 2]),
        ([4, 1], [3, 2]),
        ([1, 1], [3, 2]),
        ([[0, 2], [2, 0]], [3, 2]),
        ([[2, 0], [0, 1]], [3, 2]),
        ([1], [3, 2]),
        ([[[1]], [[2]]], [3, 2]),
        ([1, 4], []),
        ([1, 4], [3, 0]),
    ],
)
def test_indices_of_a_sparse_tensor_lie_inside_and_ascend(indices: list[object], dims: list[int]) -> None:
    with pytest.raises(ModelError):
        sparse(indices, dims)


def test_a_sparse_tensor_of_a_huge_shape_is_refused() -> None:
    with pytest.raises(LimitError):
        sparse([1, 4], [2**31 - 1, 2**20])


def test_a_sparse_tensor_may_have_no_values() -> None:
    assert not sparse([], [3, 2], values=0).array().any()


def test_small_integers_keep_their_sign() -> None:
    found = first(helper.make_tensor("w", TensorProto.INT4, [3], [-8, 7, -1]))
    assert found.array().dtype == ml_dtypes.int4
    assert found.array().astype(int).tolist() == [-8, 7, -1]
