"""Sampling between elements: whole places give elements, halves their means, and what is outside is brought back."""

from __future__ import annotations

import numpy as np
import pytest

from dovetail.base.errors import OperatorError
from tests.unit.ops.single import Array, apply, whole

MODES = ["nearest", "linear", "cubic"]


def normalised(places: Array, extent: int, corners: bool) -> Array:
    """Places counted in elements -> numbers from -1 to 1."""
    return 2 * places / (extent - 1) - 1 if corners else (2 * places + 1) / extent - 1


def line(places: list[float], extent: int, corners: bool) -> Array:
    """Places along the last axis of an image of one row."""
    across = normalised(np.array(places), extent, corners)
    return np.stack([across, np.zeros(len(places))], axis=1)[None, None]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("corners", [False, True])
def test_whole_places_give_the_elements_there(mode: str, corners: bool) -> None:
    x = whole(2, 3, 5, 4).astype(np.float64)
    rows, columns = np.meshgrid(np.arange(5.0), np.arange(4.0), indexing="ij")
    places = np.stack([normalised(columns, 4, corners), normalised(rows, 5, corners)], axis=-1)
    found = apply("grid_sample", x, np.stack([places, places]), mode=mode, align_corners=int(corners))
    np.testing.assert_allclose(found, x, atol=1e-12)


@pytest.mark.parametrize("corners", [False, True])
def test_a_place_between_two_elements_is_their_mean(corners: bool) -> None:
    x = whole(1, 1, 1, 4).astype(np.float64)
    found = apply("grid_sample", x, line([0.5, 2.5], 4, corners), align_corners=int(corners))
    np.testing.assert_allclose(found.reshape(-1), [x[0, 0, 0, :2].mean(), x[0, 0, 0, 2:].mean()], atol=1e-12)


@pytest.mark.parametrize(("padding", "expected"), [("zeros", [0, 0]), ("border", [1, 4]), ("reflection", [2, 3])])
def test_what_is_outside_is_nothing_the_edge_or_a_mirror_image(padding: str, expected: list[float]) -> None:
    x = np.array([1.0, 2, 3, 4]).reshape(1, 1, 1, 4)
    found = apply("grid_sample", x, line([-2, 5], 4, False), padding=padding)
    np.testing.assert_allclose(found.reshape(-1), expected, atol=1e-12)


def test_mirrors_at_the_corners_do_not_repeat_them() -> None:
    x = np.array([1.0, 2, 3, 4]).reshape(1, 1, 1, 4)
    for mode in ("nearest", "linear"):
        found = apply("grid_sample", x, line([-1, -3, 4, 7], 4, True), mode=mode, padding="reflection", align_corners=1)
        np.testing.assert_allclose(found.reshape(-1), [2, 4, 3, 2], atol=1e-12)


def test_images_may_have_three_axes() -> None:
    x = whole(1, 2, 3, 4, 5).astype(np.float64)
    place = np.array([normalised(np.array(n), extent, False) for n, extent in ((4.0, 5), (1.0, 4), (2.0, 3))])
    found = apply("grid_sample", x, place.reshape(1, 1, 1, 1, 3))
    np.testing.assert_allclose(found.reshape(-1), x[0, :, 2, 1, 4], atol=1e-12)


@pytest.mark.parametrize("corners", [0, 1])
def test_a_grid_that_changes_nothing_samples_the_image_itself(corners: int) -> None:
    theta = np.array([[[1.0, 0, 0], [0, 1, 0]]])
    x = whole(1, 2, 4, 3).astype(np.float64)
    places = apply("affine_grid", theta, size=(4, 3), align_corners=corners)
    np.testing.assert_allclose(apply("grid_sample", x, places, align_corners=corners), x, atol=1e-12)


def test_a_box_of_whole_bins_is_the_mean_of_its_samples() -> None:
    x = whole(2, 1, 6, 6).astype(np.float64)
    rois = np.array([[1.0, 1, 5, 5], [0, 0, 2, 4]])
    settings = {"size": (2, 2), "samples": 2, "half_pixel": 1}
    found = apply("roi_align", x, rois, np.array([1, 0]), **settings)  # type: ignore[arg-type]
    expected = x[1, 0, 1:5, 1:5].reshape(2, 2, 2, 2).mean((1, 3))
    np.testing.assert_allclose(found[0, 0], expected, atol=1e-12)
    largest = apply("roi_align", x, rois, np.array([1, 0]), mode="max", **settings)  # type: ignore[arg-type]
    np.testing.assert_allclose(largest[0, 0], x[1, 0, 1:5, 1:5].reshape(2, 2, 2, 2).max((1, 3)).clip(0), atol=1e-12)


def test_a_way_of_sampling_that_is_not_there_is_refused() -> None:
    with pytest.raises(OperatorError, match="sampled by 'area'"):
        apply("grid_sample", whole(1, 1, 2, 2), whole(1, 1, 1, 2), mode="area")
