"""Operators on the host: what the standard's cases leave out, and errors where a node means nothing."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from dovetail.base.errors import LimitError, ModelError, UnsupportedError
from dovetail.frontends.onnx.entries import Array, HostValue
from dovetail.frontends.onnx.host.call import Call
from dovetail.frontends.onnx.host.table import run
from dovetail.frontends.onnx.model import Attribute, OnnxNode


def host(op: str, *operands: HostValue, opset: int = 21, domain: str = "", **attributes: Attribute) -> Array:
    """The first result."""
    names = tuple(f"i{at}" for at in range(len(operands)))
    found = run(Call(OnnxNode(op, domain, names, ("y",), attributes), opset, operands))[0]
    assert isinstance(found, np.ndarray)
    return found


def words(*given: str) -> Array:
    return np.array(given, object)


def test_the_largest_of_unsigned_numbers_come_first_and_equal_ones_in_order() -> None:
    x = np.array([0, 255, 7, 255, 7], np.uint8)
    np.testing.assert_array_equal(host("TopK", x, np.array([4])), [255, 255, 7, 7])
    places = run(Call(OnnxNode("TopK", "", ("x", "k"), ("v", "i")), 11, [x, np.array([4])]))[1]
    np.testing.assert_array_equal(places, [1, 3, 2, 4])


def test_more_than_there_are_cannot_be_the_first() -> None:
    with pytest.raises(ModelError, match="the first 6 of 5"):
        host("TopK", np.zeros(5), np.array([6]))


def test_unique_values_in_the_order_in_which_they_are_seen() -> None:
    np.testing.assert_array_equal(host("Unique", np.array([3, 1, 3, 2]), sorted=0), [3, 1, 2])
    np.testing.assert_array_equal(host("Unique", np.array([3, 1, 3, 2])), [1, 2, 3])


def test_updates_that_meet_are_all_added() -> None:
    x, at, updates = np.zeros(3, np.float32), np.array([1, 1, 2]), np.array([1, 2, 3], np.float32)
    np.testing.assert_array_equal(host("ScatterElements", x, at, updates, reduction="add"), [0, 3, 3])
    np.testing.assert_array_equal(x, np.zeros(3))


def test_an_index_outside_is_an_error_of_the_model() -> None:
    with pytest.raises(ModelError, match="an index is outside an axis of 3"):
        host("Gather", words("a", "b", "c"), np.array([3]))


def test_strings_are_gathered_joined_and_compared() -> None:
    x = words("a", "b", "c")
    assert list(host("Gather", x, np.array([-1, 0]))) == ["c", "a"]
    assert list(host("Concat", x, x, axis=0)) == ["a", "b", "c"] * 2
    np.testing.assert_array_equal(host("Equal", x, words("a", "x", "c")), [True, False, True])


def test_strings_become_sequences_and_come_back() -> None:
    x = words("a", "b", "c")
    (parts,) = run(Call(OnnxNode("SplitToSequence", "", ("x", "n"), ("y",)), 21, [x, np.array(2)]))
    assert isinstance(parts, list) and [list(part) for part in parts if isinstance(part, np.ndarray)] == [
        ["a", "b"],
        ["c"],
    ]
    assert list(host("ConcatFromSequence", parts, axis=0)) == ["a", "b", "c"]


def test_numbers_become_strings_and_come_back() -> None:
    x = np.array([1.5, -2, np.inf], np.float32)
    text = host("Cast", x, to=8)
    assert list(text) == ["1.5", "-2.0", "inf"]
    np.testing.assert_array_equal(host("Cast", text, to=1), x)


def test_small_floats_saturate_unless_told_otherwise() -> None:
    x = np.array([1e6, -np.inf, 0.5], np.float32)
    most = host("Cast", x, to=17, opset=19).astype(np.float32)
    np.testing.assert_array_equal(most, [448, -448, 0.5])
    assert np.isnan(host("Cast", x, to=17, opset=19, saturate=0).astype(np.float32)[:2]).all()


def test_powers_of_two_are_rounded_as_asked() -> None:
    x = np.array([1.0, 1.25, 1.5, 3.0], np.float32)
    for how, wanted in (("up", [1, 2, 2, 4]), ("down", [1, 1, 1, 2]), ("nearest", [1, 1, 2, 4])):
        found = host("Cast", x, to=24, opset=24, round_mode=how)
        assert found.dtype == np.dtype(ml_dtypes.float8_e8m0fnu)
        np.testing.assert_array_equal(found.astype(np.float32), np.array(wanted, np.float32))


def test_blocks_of_a_quantised_axis_have_scales_of_their_own() -> None:
    x = np.array([[2, 4, 6, 9]], np.int8)
    scale = np.array([[0.5, 2]], np.float32)
    np.testing.assert_array_equal(host("DequantizeLinear", x, scale, axis=1, block_size=2), [[1, 2, 12, 18]])


def test_a_pattern_that_looks_around_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="looks around or back"):
        host("RegexFullMatch", words("a"), pattern="(?=a)a")
    np.testing.assert_array_equal(host("RegexFullMatch", words("ab", "b"), pattern="a?b"), [True, True])


def test_a_pattern_that_cannot_be_read_is_an_error_of_the_model() -> None:
    with pytest.raises(ModelError, match="the pattern cannot be read"):
        host("RegexFullMatch", words("a"), pattern="(")


def test_labels_that_are_not_known_get_the_default() -> None:
    found = host(
        "LabelEncoder",
        words("a", "z"),
        domain="ai.onnx.ml",
        keys_strings=("a", "b"),
        values_int64s=(5, 6),
        default_int64=-1,
    )
    np.testing.assert_array_equal(found, [5, -1])


def test_what_would_be_too_large_is_not_made() -> None:
    with pytest.raises(LimitError, match=r"Tile would make a tensor of shape \[10995116277760\]"):
        host("Tile", np.zeros(10), np.array([1 << 40]))


def test_what_numpy_cannot_do_is_an_error_of_the_model() -> None:
    with pytest.raises(ModelError, match="it cannot take these operands"):
        host("Reshape", np.zeros(5), np.array([2, 3]))


def test_an_operator_that_is_not_there_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match=r"ai\.onnx\.ml\.SVMClassifier cannot be taken"):
        host("SVMClassifier", np.zeros(5), domain="ai.onnx.ml")
