"""Blocks and columns against reshapes in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from dovetail.base.errors import OperatorError
from tests.unit.ops.single import apply, whole


def test_channels_become_blocks_of_pixels_in_either_order() -> None:
    x = whole(2, 12, 3, 2)
    first = x.reshape(2, 2, 2, 3, 3, 2).transpose(0, 3, 4, 1, 5, 2).reshape(2, 3, 6, 4)
    last = x.reshape(2, 3, 2, 2, 3, 2).transpose(0, 1, 4, 2, 5, 3).reshape(2, 3, 6, 4)
    np.testing.assert_array_equal(apply("depth_to_space", x, block=2), first)
    np.testing.assert_array_equal(apply("depth_to_space", x, block=2, mode="CRD"), last)
    np.testing.assert_array_equal(apply("space_to_depth", first, block=2), x)


def test_extents_must_be_multiples_of_the_block() -> None:
    with pytest.raises(OperatorError, match="cannot be cut"):
        apply("space_to_depth", whole(1, 1, 3, 4), block=2)
    with pytest.raises(OperatorError, match="DCR or CRD"):
        apply("depth_to_space", whole(1, 4, 1, 1), block=2, mode="RCD")


@pytest.mark.parametrize(("strides", "pads", "dilations"), [((1, 1), (0,) * 4, (1, 1)), ((2, 1), (1, 0, 1, 0), (1, 2))])
def test_columns_go_back_to_where_they_came_from(
    strides: tuple[int, int], pads: tuple[int, ...], dilations: tuple[int, int]
) -> None:
    image, block = (5, 6), (2, 3)
    rows, columns = (
        (n + pads[k] + pads[k + 2] - dilations[k] * (block[k] - 1) - 1) // strides[k] + 1 for k, n in enumerate(image)
    )
    x = whole(2, 3 * 6, rows * columns)
    wide = np.zeros((2, 3, image[0] + pads[0] + pads[2], image[1] + pads[1] + pads[3]))
    parts = x.reshape(2, 3, 2, 3, rows, columns)
    for r, s, p, q in np.ndindex(2, 3, rows, columns):
        wide[:, :, p * strides[0] + r * dilations[0], q * strides[1] + s * dilations[1]] += parts[:, :, r, s, p, q]
    expected = wide[:, :, pads[0] : pads[0] + image[0], pads[1] : pads[1] + image[1]]
    found = apply("col2im", x, image=image, block=block, strides=strides, pads=pads, dilations=dilations)
    np.testing.assert_array_equal(found, expected)
