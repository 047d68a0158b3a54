"""Nodes that move elements, in the spelling of old opsets and new ones; numbers that mean nothing are refused."""

from __future__ import annotations

import numpy as np
import pytest

from dovetail.base.errors import ModelError
from tests.unit.frontends.onnx.single import convert, convert_many
from tests.unit.ops.single import whole


def test_a_shape_may_keep_axes_leave_one_open_or_have_zeros() -> None:
    x = whole(2, 3, 4)
    np.testing.assert_array_equal(convert("Reshape", x, np.array([0, -1])), x.reshape(2, 12))
    assert convert("Reshape", np.zeros((0, 3), np.float32), np.array([3, 0]), allowzero=1).shape == (3, 0)


@pytest.mark.parametrize("shape", [[-1, -1], [5, -1], [0, 0, 0, 0], [-2, -12], [24, 2]])
def test_a_shape_that_does_not_fit_is_refused(shape: list[int]) -> None:
    with pytest.raises(ModelError):
        convert("Reshape", whole(2, 3, 4), np.array(shape))


def test_axes_were_attributes_once() -> None:
    x = whole(1, 3, 1)
    np.testing.assert_array_equal(convert("Squeeze", x, opset=11, axes=[0]), x[0])
    np.testing.assert_array_equal(convert("Squeeze", x, np.array([-1])), x[..., 0])
    np.testing.assert_array_equal(convert("Squeeze", x), x.reshape(3))
    np.testing.assert_array_equal(convert("Unsqueeze", x, opset=11, axes=[1, -1]), x[:, None, ..., None])
    np.testing.assert_array_equal(convert("Unsqueeze", x, np.array([0])), x[None])


def test_slices_count_from_either_end_in_any_direction() -> None:
    x = whole(6, 7, 8)
    np.testing.assert_array_equal(
        convert("Slice", x, opset=9, starts=[1, -4], ends=[99, -1], axes=[0, 2]), x[1:, :, -4:-1]
    )
    starts, ends, axes, steps = (np.array(part) for part in ([5, -1], [-99, -7], [1, -1], [-2, -1]))
    np.testing.assert_array_equal(convert("Slice", x, starts, ends, axes, steps), x[:, 5::-2, -1:-7:-1])
    assert convert("Slice", x, np.array([4]), np.array([2])).shape == (0, 7, 8)


def test_parts_are_given_or_equal_and_the_last_may_be_smaller() -> None:
    x = whole(7, 2)
    for found, expected in zip(convert_many("Split", 3, x, num_outputs=3), (x[:3], x[3:6], x[6:]), strict=True):
        np.testing.assert_array_equal(found, expected)
    first, second = convert_many("Split", 2, x, opset=11, split=[5, 2])
    np.testing.assert_array_equal(first, x[:5])
    np.testing.assert_array_equal(second, x[5:])


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
def test_padding_may_be_of_some_axes_and_negative(mode: str) -> None:
    x, pads, axes = whole(4, 5, 6), np.array([2, 1, -1, 1]), np.array([2, 0])
    found = convert("Pad", x, pads, None, axes, mode=mode)
    np.testing.assert_array_equal(found, np.pad(x[:, :, :-1], [(1, 1), (0, 0), (2, 0)], mode=mode))  # type: ignore[call-overload]


def test_padding_was_an_attribute_once() -> None:
    x = whole(2, 3)
    expected = np.pad(x, [(1, 0), (0, 2)], constant_values=7)
    np.testing.assert_array_equal(convert("Pad", x, opset=10, pads=[1, 0, 0, 2], value=7.0), expected)
    np.testing.assert_array_equal(convert("Pad", x, np.array([1, 0, 0, 2]), np.array(7, np.float32)), expected)
    with pytest.raises(ModelError):
        convert("Pad", x, np.array([1, 0, 0]))


def test_expansion_goes_both_ways() -> None:
    x = whole(3, 1)
    np.testing.assert_array_equal(convert("Expand", x, np.array([2, 1, 4])), np.broadcast_to(x, (2, 3, 4)))
    with pytest.raises(ModelError):
        convert("Expand", x, np.array([2, 2]))


def test_more_tensors_are_put_together_than_one_program_holds() -> None:
    parts = [whole(2, n % 3 + 1, low=-(n % 9)) for n in range(150)]
    np.testing.assert_array_equal(convert("Concat", *parts, axis=1), np.concatenate(parts, axis=1))


def test_an_image_is_cut_and_padded_around_its_middle() -> None:
    x = whole(4, 5, 2)
    found = convert("CenterCropPad", x, np.array([7, 2]), axes=[0, 1])
    np.testing.assert_array_equal(found, np.pad(x[:, 1:3], [(1, 2), (0, 0), (0, 0)]))


def test_shapes_and_sizes_are_constants() -> None:
    x = whole(2, 3, 4)
    assert convert("Shape", x, start=-2).tolist() == [3, 4]
    assert convert("Size", x) == 24
