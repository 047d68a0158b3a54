"""Operators that move elements, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from dovetail.base.dtypes import DTYPES
from dovetail.base.errors import OperatorError
from dovetail.ir.graph.graph import SmallTensor
from dovetail.ir.graph.operator import meaning
from dovetail.ops.table import OPERATORS
from tests.unit.ops.single import apply, apply_many, apply_sized, single, type_of, whole

Ints = tuple[int, ...]
SHAPES: list[tuple[Ints, Ints]] = [
    ((4, 6, 5), (24, 5)),
    ((24, 5), (4, 6, 5)),
    ((4, 6), (3, 8)),
    ((4, 6), (8, 3)),
    ((4, 6, 2), (2, 4, 6)),
    ((2, 3, 4), (4, 3, 2)),
    ((6,), (1, 6, 1)),
    ((1, 6, 1), (2, 1, 3)),
    ((1, 1), ()),
    ((), (1, 1)),
    ((2, 0), (3, 0)),
    ((12, 5), (2, 6, 5)),
    ((2, 6, 35), (4, 3, 5, 7)),
]


@pytest.mark.parametrize(("old", "new"), SHAPES)
def test_reshape_keeps_the_order_of_elements(old: Ints, new: Ints) -> None:
    x = np.arange(np.prod(old), dtype=np.float32).reshape(old)
    np.testing.assert_array_equal(apply("reshape", x, shape=new), x.reshape(new))


def test_axes_that_nest_are_split_and_joined_by_affine_indices() -> None:
    for old, shape in (((4, 6, 5), (24, 5)), ((24, 5), (4, 6, 5))):
        x = whole(*old)
        graph = single("reshape", 1, [x], {"shape": shape})
        text = str(meaning(OPERATORS["reshape"], graph.nodes[0], (type_of(x),), {}).program)
        assert "//" not in text and "%" not in text


def test_reshape_fills_in_what_is_left_open() -> None:
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    np.testing.assert_array_equal(apply("reshape", x, shape=(0, -1)), x.reshape(2, 12))
    np.testing.assert_array_equal(apply("reshape", x, shape=(-1, 8)), x.reshape(3, 8))
    with pytest.raises(OperatorError, match="cannot be cut"):
        apply("reshape", x, shape=(-1, 7))
    with pytest.raises(OperatorError, match="do not fill"):
        apply("reshape", x, shape=(5, 5))


def test_reshape_carries_a_size_along() -> None:
    x = np.arange(7 * 3 * 4, dtype=np.float32).reshape(7, 3, 4)
    np.testing.assert_array_equal(apply_sized("reshape", 7, x, shape=(0, -1)), x.reshape(7, 12))
    np.testing.assert_array_equal(apply_sized("reshape", 7, x, shape=(-1, 4)), x.reshape(21, 4))
    np.testing.assert_array_equal(apply_sized("flatten", 7, x), x.reshape(7, 12))
    np.testing.assert_array_equal(apply_sized("unsqueeze", 7, x, axes=(0,)), x[None])


def test_flatten_makes_two_axes() -> None:
    x = whole(2, 3, 4)
    for axis, shape in ((0, (1, 24)), (1, (2, 12)), (2, (6, 4)), (3, (24, 1)), (-1, (6, 4))):
        np.testing.assert_array_equal(apply("flatten", x, axis=axis), x.reshape(shape))


def test_axes_of_one_element_come_and_go() -> None:
    x = whole(1, 3, 1, 4)
    np.testing.assert_array_equal(apply("squeeze", x), x.reshape(3, 4))
    np.testing.assert_array_equal(apply("squeeze", x, axes=(-2,)), x.reshape(1, 3, 4))
    np.testing.assert_array_equal(apply("unsqueeze", x[0, :, 0], axes=(0, -1)), x.reshape(1, 3, 4, 1))
    with pytest.raises(OperatorError, match="has extent 3, not 1"):
        apply("squeeze", x, axes=(1,))


@pytest.mark.parametrize("perm", [(0, 1, 2), (2, 0, 1), (1, 0, 2), None])
def test_transpose_is_that_of_numpy(perm: Ints | None) -> None:
    x = whole(2, 3, 4)
    given = {} if perm is None else {"perm": perm}
    np.testing.assert_array_equal(apply("transpose", x, **given), np.transpose(x, perm))


def test_expand_repeats_axes_of_one_element() -> None:
    x = whole(3, 1)
    np.testing.assert_array_equal(apply("expand", x, shape=(2, 3, 4)), np.broadcast_to(x, (2, 3, 4)))
    np.testing.assert_array_equal(apply("expand", x, shape=(-1, 4)), np.broadcast_to(x, (3, 4)))


def test_concat_puts_one_behind_the_other() -> None:
    a, b, c = whole(2, 3), whole(2, 1, low=-9), whole(2, 4)
    np.testing.assert_array_equal(apply("concat", a, b, c, axis=1), np.concatenate([a, b, c], 1))
    np.testing.assert_array_equal(apply("concat", a, axis=-2), a)
    np.testing.assert_array_equal(apply_sized("concat", 3, a, b, axis=1), np.concatenate([a, b], 1))
    with pytest.raises(OperatorError, match="differ in more than axis 0"):
        apply("concat", a, b, axis=0)


def test_split_cuts_an_axis() -> None:
    x = whole(2, 7)
    for found, expected in zip(apply_many("split", 3, x, sizes=(1, 4, 2), axis=1), np.split(x, [1, 5], 1), strict=True):
        np.testing.assert_array_equal(found, expected)
    with pytest.raises(OperatorError, match="do not make up axis 1"):
        apply_many("split", 2, x, sizes=(1, 4), axis=1)


@pytest.mark.parametrize(
    "cut", [(0, 3, 1), (1, 100, 2), (-3, -1, 1), (5, 0, -2), (-1, -100, -1), (3, 3, 1), (2**40, 2**62, 1)]
)
def test_slice_is_that_of_python(cut: Ints) -> None:
    x = whole(6, 7)
    start, end, step = cut
    for axis in (0, 1):
        found = apply("slice", x, starts=(start,), ends=(end,), axes=(axis,), steps=(step,))
        where = (slice(start, end, step),) if axis == 0 else (slice(None), slice(start, end, step))
        np.testing.assert_array_equal(found, x[where])


def test_slice_of_a_run_time_extent_counts_from_either_end() -> None:
    x = whole(7, 3)
    far = 2**62
    np.testing.assert_array_equal(apply_sized("slice", 7, x, starts=(1,), ends=(far,)), x[1:])
    np.testing.assert_array_equal(apply_sized("slice", 7, x, starts=(-1,), ends=(far,)), x[-1:])
    np.testing.assert_array_equal(apply_sized("slice", 7, x, starts=(0,), ends=(-1,), steps=(2,)), x[:-1:2])
    with pytest.raises(OperatorError):
        apply_sized("slice", 7, x, starts=(5,), ends=(far,))


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
@pytest.mark.parametrize("around", [((0, 0), (0, 0)), ((1, 2), (0, 0)), ((2, 1), (3, 2)), ((0, 2), (1, 0))])
def test_pad_is_that_of_numpy(mode: str, around: tuple[Ints, Ints]) -> None:
    x = whole(4, 5)
    pads = (around[0][0], around[1][0], around[0][1], around[1][1])
    if mode == "constant":
        expected = np.pad(x, around, constant_values=-7)
        np.testing.assert_array_equal(apply("pad", x, pads=pads, value=-7.0), expected)
    else:
        np.testing.assert_array_equal(apply("pad", x, pads=pads, mode=mode), np.pad(x, around, mode=mode))  # type: ignore[call-overload]


def test_padding_keeps_the_sign_of_zero_and_carries_sizes() -> None:
    x = np.array([-0.0, 1], np.float32)
    assert np.signbit(apply("pad", x, pads=(1, 1))).tolist() == [False, True, False, False]
    assert np.signbit(apply("pad", x, pads=(1, 1), value=-0.0)).tolist() == [True, True, False, True]
    np.testing.assert_array_equal(apply_sized("pad", 2, x, pads=(1, 2)), [0, 0, 1, 0, 0])
    with pytest.raises(OperatorError, match="not that long"):
        apply("pad", x, pads=(2, 0), mode="reflect")


def test_a_constant_is_a_few_numbers() -> None:
    value = SmallTensor(DTYPES["i64"], (2, 3), (1, -2, 3, 4, 5, 6))
    np.testing.assert_array_equal(apply("constant", value=value), [[1, -2, 3], [4, 5, 6]])
    scalar = SmallTensor(DTYPES["f32"], (), (-0.5,))
    np.testing.assert_array_equal(apply("constant", value=scalar), np.float32(-0.5))
