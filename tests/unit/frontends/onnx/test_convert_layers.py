"""Layers: padding that is asked for by name, statistics, opsets in which an axis meant another thing."""

from __future__ import annotations

import numpy as np
import pytest

from dovetail.base.errors import ModelError
from tests.unit.frontends.onnx.single import Array, convert, convert_many
from tests.unit.ops.single import apply, broken, whole


@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_same_padding_makes_a_window_for_every_stride(mode: str, stride: int) -> None:
    x = whole(1, 2, 7, 8)
    totals = [max((-(-n // stride) - 1) * stride + 4 - n, 0) for n in (7, 8)]
    before = [n // 2 if mode == "SAME_UPPER" else n - n // 2 for n in totals]
    pads = (*before, *(n - b for n, b in zip(totals, before, strict=True)))
    expected = apply("max_pool", x, kernel=(4, 4), strides=(stride, stride), pads=pads)
    found = convert("MaxPool", x, kernel_shape=[4, 4], strides=[stride, stride], auto_pad=mode)
    assert found.shape[2:] == tuple(-(-n // stride) for n in (7, 8))
    np.testing.assert_array_equal(found, expected)


def test_a_convolution_has_groups_dilations_and_a_bias() -> None:
    x, w, b = whole(2, 4, 9), whole(6, 2, 3), whole(6)
    found = convert("Conv", x, w, b, group=2, dilations=[2], pads=[1, 2], strides=[2])
    np.testing.assert_array_equal(found, apply("conv", x, w, b, groups=2, dilations=(2,), pads=(1, 2), strides=(2,)))
    with pytest.raises(ModelError, match="does not have 1 axes"):
        convert("Conv", x, w, strides=[2, 2])


def test_an_output_shape_decides_the_padding_of_a_transposed_convolution() -> None:
    x, w = whole(1, 2, 3, 3), whole(2, 1, 3, 3)
    whole_ = apply("conv_transpose", x, w, strides=(3, 2))
    found = convert("ConvTranspose", x, w, strides=[3, 2], output_shape=[10, 8])
    assert found.shape == (1, 1, 10, 8)
    np.testing.assert_array_equal(found[:, :, :9, :7], whole_)
    assert not found[:, :, 9:].any() and not found[..., 7:].any()


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax", "Hardmax"])
def test_softmax_took_all_axes_from_one_on_as_one(op: str) -> None:
    x = broken(2, 3, 4)
    ours = {"Softmax": "softmax", "LogSoftmax": "log_softmax", "Hardmax": "hardmax"}[op]
    flat = apply(ours, x.reshape(2, 12)).reshape(x.shape)
    np.testing.assert_array_equal(convert(op, x, opset=11), flat)
    np.testing.assert_array_equal(convert(op, x, opset=13, axis=1), apply(ours, x, axis=1))


def test_batch_norm_learns_statistics_when_it_is_trained() -> None:
    x, scale, bias, mean = broken(4, 3, 5), broken(3), broken(3) + 1, broken(3) - 1
    variance = np.abs(broken(3)) + np.float32(0.5)
    settings = {"training_mode": 1, "momentum": 0.75, "opset": 15}
    y, new_mean, new_variance = convert_many("BatchNormalization", 3, x, scale, bias, mean, variance, **settings)  # type: ignore[arg-type]
    here, spread = x.mean((0, 2)), x.var((0, 2))
    np.testing.assert_allclose(new_mean, 0.75 * mean + 0.25 * here, rtol=1e-5)
    np.testing.assert_allclose(new_variance, 0.75 * variance + 0.25 * spread, rtol=1e-5)
    expected = (x - here[:, None]) / np.sqrt(spread[:, None] + 1e-5) * scale[:, None] + bias[:, None]
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)


def test_half_floats_may_have_statistics_of_full_ones() -> None:
    x = broken(2, 3, 4).astype(np.float16)
    parts = [np.ones(3, np.float32), *(np.zeros(3, np.float32) for _ in range(2)), np.full(3, 0.25, np.float32)]
    found = convert("BatchNormalization", x, *parts, epsilon=0.0)
    assert found.dtype == np.float16
    np.testing.assert_array_equal(found, x * 2)


def test_unpooling_may_leave_room_behind() -> None:
    x = np.array([[[[1, 2], [3, 4]]]], np.float32)
    indices = np.array([[[[0, 2], [8, 10]]]])
    found = convert("MaxUnpool", x, indices, np.array([1, 1, 5, 5]), kernel_shape=[2, 2], strides=[2, 2])
    expected = np.zeros((5, 5))
    expected[:4, :4].reshape(4, 4)[[0, 0, 2, 2], [0, 2, 0, 2]] = [1, 2, 3, 4]
    np.testing.assert_array_equal(found[0, 0], expected)


@pytest.mark.parametrize("equation", ["bij,jk,kb->ib", "ij,jk,kl,lm"])
def test_several_operands_are_summed_two_at_a_time(equation: str) -> None:
    extents = dict(zip("bijklm", (2, 3, 4, 5, 2, 3), strict=True))
    terms = equation.split("->")[0].split(",")
    given = [whole(*(extents[c] for c in term), low=-2, high=3) for term in terms]
    np.testing.assert_array_equal(convert("Einsum", *given, equation=equation), np.einsum(equation, *given))


def test_quantised_products_are_summed_exactly() -> None:
    a, b = whole(3, 40, dtype="uint8", low=0, high=255), whole(40, 2, dtype="uint8", low=0, high=255)
    expected = (a.astype(int) - 7) @ (b.astype(int) - np.array([3, 200]))
    found = convert("MatMulInteger", a, b, np.array(7, np.uint8), np.array([3, 200], np.uint8))
    np.testing.assert_array_equal(found, expected)


def test_what_does_not_fit_a_quantised_result_saturates() -> None:
    a, b = np.full((1, 2), 255, np.uint8), np.array([[255, 0], [255, 0]], np.uint8)
    one, zero = np.array(1, np.float32), np.array(0, np.uint8)
    found = convert("QLinearMatMul", a, one, zero, b, one, zero, np.array(500, np.float32), np.array(9, np.uint8))
    np.testing.assert_array_equal(found, [[255, 9]])


def test_attention_shares_keys_among_queries_and_remembers_the_past() -> None:
    q, k, v, past = broken(2, 4, 3, 8), broken(2, 2, 3, 8), broken(2, 2, 3, 5), broken(2, 2, 2, 8)
    past_v = broken(2, 2, 2, 5)
    y, keys, values = convert_many("Attention", 3, q, k, v, None, past, past_v, opset=23, is_causal=1)
    np.testing.assert_array_equal(keys, np.concatenate([past, k], axis=2))
    np.testing.assert_array_equal(values, np.concatenate([past_v, v], axis=2))
    scores = np.einsum("bhqd,bhkd->bhqk", q, np.repeat(keys, 2, axis=1)) / np.sqrt(8)
    scores = np.where(np.arange(5) <= np.arange(3)[:, None] + 2, scores, -np.inf)
    weights: Array = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    np.testing.assert_allclose(y, weights @ np.repeat(values, 2, axis=1), rtol=1e-5, atol=1e-5)
