"""Graphs cut into ours and PyTorch's."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch

from dovetail.base.errors import UnsupportedError
from dovetail.frontends.torch.elements import array_of, dtype_of, tensor_of
from dovetail.frontends.torch.partition import OwnPart, TorchPart
from tests.unit.frontends.torch.traced import parts_of, whole_numbers

X = whole_numbers(4, 6)


def test_what_does_not_need_an_unknown_operator_is_in_the_first_part() -> None:
    found = parts_of(lambda x: (torch.sort(x.exp())[0] * 2, x + 1), X)
    kinds = [type(part) for part in found.parts]
    assert kinds == [OwnPart, TorchPart, OwnPart]
    first = found.parts[0]
    assert isinstance(first, OwnPart)
    assert len(first.outputs) == 2
    assert [(f.operator, "no conversion" in f.reason) for f in found.fallbacks] == [("aten.sort.default", True)]


def test_values_that_need_no_input_are_constants() -> None:
    found = parts_of(lambda x: x * torch.arange(6).flip(0).to(torch.float32), X)
    (part,) = found.parts
    assert isinstance(part, OwnPart)
    assert [node.op for node in part.bound.graph.nodes] == ["mul"]
    (array,) = part.bound.data.values()
    assert array.tolist() == [5.0, 4.0, 3.0, 2.0, 1.0, 0.0]


def test_random_numbers_are_pytorchs() -> None:
    found = parts_of(lambda x: torch.rand_like(x) + x, X)
    assert [fallback.operator for fallback in found.fallbacks] == ["aten.rand_like.default"]


def test_a_shape_that_depends_on_values_stays_with_pytorch() -> None:
    found = parts_of(lambda x: torch.complex(x, x), X)
    assert found.fallbacks
    assert "complex64" in found.fallbacks[0].reason


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.bool, torch.uint8, torch.int64])
def test_memory_is_shared_both_ways(dtype: torch.dtype) -> None:
    tensor = torch.ones(3, 4, dtype=dtype)
    array = array_of(tensor)
    array[0, 0] = 0
    assert not tensor[0, 0]
    back = tensor_of(array)
    back[1, 1] = 0
    assert not tensor[1, 1]
    assert back.dtype == dtype


def test_a_strided_tensor_is_made_contiguous() -> None:
    assert array_of(X.t()).flags.c_contiguous
    assert array_of(X.t()).tolist() == X.t().tolist()


def test_a_dtype_that_is_not_there_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match="complex64"):
        dtype_of(torch.complex64)
