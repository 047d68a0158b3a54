"""Resizing against a definition written out for one axis."""

from __future__ import annotations

import numpy as np
import pytest

from dovetail.base.errors import LimitError, ModelError
from tests.unit.frontends.onnx.single import convert
from tests.unit.ops.single import broken, whole


def test_whole_factors_repeat_elements() -> None:
    x, scales = whole(1, 2, 3, 4), np.array([1, 1, 2, 3], np.float32)
    expected = x.repeat(2, axis=2).repeat(3, axis=3)
    found = convert("Resize", x, None, scales, nearest_mode="floor", coordinate_transformation_mode="asymmetric")
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(convert("Upsample", x, scales, opset=9), expected)
    np.testing.assert_array_equal(convert("Resize", x, scales, opset=10), expected)


def test_linear_mixing_is_that_of_numpy_between_the_corners() -> None:
    x = broken(1, 1, 1, 5)
    found = convert(
        "Resize", x, None, None, np.array([1, 1, 1, 9]), mode="linear", coordinate_transformation_mode="align_corners"
    )
    expected = np.interp(np.arange(9) / 2, np.arange(5), x.reshape(-1))
    np.testing.assert_allclose(found.reshape(-1), expected, rtol=1e-6)


def test_linear_mixing_by_pixel_centres_holds_the_edges() -> None:
    x = broken(1, 1, 4, 1)
    found = convert("Resize", x, None, np.array([2], np.float32), mode="linear", axes=[2])
    expected = np.interp((np.arange(8) + 0.5) / 2 - 0.5, np.arange(4), x.reshape(-1))
    np.testing.assert_allclose(found.reshape(-1), expected, rtol=1e-6)


def test_a_constant_image_stays_constant_in_every_mode() -> None:
    x = np.full((1, 1, 5, 7), 3, np.float32)
    for mode in ("nearest", "linear", "cubic"):
        for antialias in (0, 1) if mode != "nearest" else (0,):
            found = convert("Resize", x, None, None, np.array([1, 1, 3, 11]), mode=mode, antialias=antialias)
            np.testing.assert_allclose(found, np.full((1, 1, 3, 11), 3), rtol=1e-6)


def test_the_aspect_ratio_may_be_kept() -> None:
    x = broken(1, 1, 4, 6)
    smaller = convert("Resize", x, None, None, np.array([8, 8]), axes=[2, 3], keep_aspect_ratio_policy="not_larger")
    larger = convert("Resize", x, None, None, np.array([8, 8]), axes=[2, 3], keep_aspect_ratio_policy="not_smaller")
    assert smaller.shape[2:] == (5, 8) and larger.shape[2:] == (8, 12)


def test_what_lies_outside_a_crop_is_the_value_for_that() -> None:
    x, roi = whole(1, 1, 1, 4), np.array([0, 0, 0, -0.5, 1, 1, 1, 1.5], np.float32)
    where, sizes = "tf_crop_and_resize", np.array([1, 1, 1, 5])
    found = convert(
        "Resize", x, roi, None, sizes, mode="linear", coordinate_transformation_mode=where, extrapolation_value=9.0
    )
    assert found.reshape(-1)[0] == 9 and found.reshape(-1)[-1] == 9
    np.testing.assert_allclose(found.reshape(-1)[2], x.reshape(-1)[1:3].mean(), rtol=1e-6)


@pytest.mark.parametrize("scales", [[1, 1], [1, 1, 0, 1], [1, 1, np.nan, 1], [1, 1, -2, 1], [1, 1, np.inf, 1]])
def test_scales_that_mean_nothing_are_refused(scales: list[float]) -> None:
    with pytest.raises(ModelError):
        convert("Resize", whole(1, 1, 2, 2), None, np.array(scales, np.float32))


def test_tables_beyond_the_limit_are_refused_before_they_are_made() -> None:
    with pytest.raises(LimitError, match="needs a table"):
        convert("Resize", whole(1, 1, 2, 2), None, None, np.array([1, 1, 2**30, 2**30]))
