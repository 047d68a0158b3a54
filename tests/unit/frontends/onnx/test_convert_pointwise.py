"""Elementwise nodes as graphs: attributes of old opsets, operands of new ones, mixed dtypes."""

from __future__ import annotations

import numpy as np
import pytest

from dovetail.base.errors import ModelError
from tests.unit.frontends.onnx.single import convert, convert_many
from tests.unit.ops.single import whole


@pytest.mark.parametrize("fixed", [(), (1, 2)])
def test_bounds_of_clip_are_operands_or_were_attributes(fixed: tuple[int, ...]) -> None:
    x, low, high = whole(3, 4), np.array(-2, np.float32), np.array(1, np.float32)
    np.testing.assert_array_equal(convert("Clip", x, low, high, opset=12, fixed=fixed), np.clip(x, -2, 1))
    np.testing.assert_array_equal(convert("Clip", x, None, high, opset=12, fixed=fixed), np.minimum(x, 1))
    np.testing.assert_array_equal(convert("Clip", x, opset=7, min=-2.0, max=1.0), np.clip(x, -2, 1))
    np.testing.assert_array_equal(convert("Clip", x, opset=12), x)


def test_bounds_too_large_for_a_float_are_kept_exactly() -> None:
    x, low = np.array([2**62, 2**62 + 1, 5]), np.array(2**62 + 1)
    np.testing.assert_array_equal(convert("Clip", x, low, fixed=(1,)), [2**62 + 1, 2**62 + 1, 2**62 + 1])


@pytest.mark.parametrize(("op", "join"), [("Max", np.maximum), ("Min", np.minimum), ("Sum", np.add)])
def test_any_number_of_operands_are_joined(op: str, join: np.ufunc) -> None:
    a, b, c = whole(3, 4), whole(4, low=-9), whole(3, 1, low=0)
    np.testing.assert_array_equal(convert(op, a, b, c), join(join(a, b), c))
    np.testing.assert_array_equal(convert(op, a), a)
    np.testing.assert_array_equal(convert("Mean", a, a, a * 0, a * 2), a)


def test_a_power_keeps_the_dtype_of_its_base() -> None:
    a, b = np.array([1, 2, 3], np.int32), np.array([4, 5, 6], np.float32)
    found = convert("Pow", a, b, opset=15)
    assert found.dtype == np.int32 and found.tolist() == [1, 32, 729]


def test_remainders_are_by_either_sign() -> None:
    a, b = np.array([-7, 7, -7, 7]), np.array([3, 3, -3, -3])
    np.testing.assert_array_equal(convert("Mod", a, b), np.mod(a, b))
    np.testing.assert_array_equal(convert("Mod", a, b, fmod=1), np.fmod(a, b))


def test_shifts_say_their_direction() -> None:
    a = np.array([1, 2], np.uint8)
    np.testing.assert_array_equal(convert("BitShift", a, a, direction="LEFT"), [2, 8])
    with pytest.raises(ModelError, match="neither LEFT nor RIGHT"):
        convert("BitShift", a, a, direction="UP")


def test_dropout_keeps_everything_when_nothing_is_learned() -> None:
    x = whole(3, 4)
    y, mask = convert_many("Dropout", 2, x, np.array(0.5, np.float32))
    np.testing.assert_array_equal(y, x)
    assert mask.dtype == bool and mask.all()
    np.testing.assert_array_equal(convert("Dropout", x, np.array(0, np.float32), np.array(True)), x)


def test_casts_are_by_number_or_by_example() -> None:
    x = np.array([1.75, -2.5], np.float32)
    np.testing.assert_array_equal(convert("Cast", x, to=7), [1, -2])
    np.testing.assert_array_equal(convert("CastLike", x, np.zeros(1, np.int8)), [1, -2])
    np.testing.assert_array_equal(convert("BitCast", x, opset=26, to=6), x.view(np.int32))
