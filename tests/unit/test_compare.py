"""Comparison with the reference: classes of tiles, tolerance zero, and the stated bound where that is impossible."""

import numpy as np
import pytest

from dovetail.compare import Relaxation, compare, inexact_function, relaxation_of, tile_classes
from dovetail.ir.parse import parse
from dovetail.ir.plan import Leaf, Plan, Tile

TILED = Plan((Tile("i1", ((0, "i"),), 4, (Tile("j1", ((0, "j"),), 7, (Leaf(0, "j", 3),)),)),))


def test_whole_tiles_edges_and_corners_cover_an_output_once() -> None:
    flat = parse("in x: f32[10,14] out y: f32[10,7] for i<10, j<7: y[i,j] = x[i,2*j]")
    found = dict(tile_classes(flat, TILED, flat.tensor("y"), {}))
    assert set(found) == {"interior", "edge i", "edge j", "corner i, j"}
    count = np.zeros((10, 7), np.int64)
    for region in found.values():
        count[region] += 1
    assert np.array_equal(count, np.ones((10, 7)))
    assert count[found["interior"]].shape == (8, 6)


def test_a_single_wrong_element_is_found_and_named() -> None:
    program = parse("in x: f32[10,14] out y: f32[10,7] for i<10, j<7: y[i,j] = x[i,2*j]")
    wanted = np.arange(70, dtype=np.float32).reshape(10, 7)
    found = wanted.copy()
    found[9, 6] = np.nextafter(np.float32(69), np.float32(100))
    result = compare(program, TILED, {}, {"y": found}, {"y": wanted})
    assert not result.agrees
    assert result.verdict == "WRONG: 1 of 70 elements differ from the reference"
    (wrong,) = [c for c in result.classes if c.wrong]
    assert (wrong.name, wrong.first) == ("corner i, j", "[9, 6] is 69.00000762939453, 69.0 expected")


def test_equal_arrays_are_exact_and_nans_in_the_same_place_are_equal() -> None:
    program = parse("in x: f32[4] out y: f32[4] for i<4: y[i] = x[i]")
    values = np.array([1, np.nan, np.inf, -0.0], np.float32)
    result = compare(program, Plan((Leaf(0),)), {}, {"y": values}, {"y": values.copy()})
    assert result.agrees
    assert result.is_exact
    missing = compare(program, Plan((Leaf(0),)), {}, {"y": np.zeros(4, np.float32)}, {"y": values})
    assert missing.classes[0].wrong == 3


def test_rounding_is_allowed_only_after_an_inexact_function() -> None:
    exact = parse("in x: f32[4] out y: f32[4] for i<4: y[i] = x[i] * 3 + 1")
    rounded = parse("in x: f32[4] out y: f32[4] for i<4: y[i] = exp(x[i])")
    assert inexact_function(exact) == ""
    assert inexact_function(rounded) == "exp"
    wanted = np.array([1, 2, 3, 4], np.float32)
    near = np.nextafter(wanted, np.float32(9))
    assert not compare(exact, Plan((Leaf(0),)), {}, {"y": near}, {"y": wanted}).agrees
    close = compare(rounded, Plan((Leaf(0),)), {}, {"y": near}, {"y": wanted})
    assert close.agrees
    assert not close.is_exact
    assert "allowed because of exp" in close.verdict
    assert not compare(rounded, Plan((Leaf(0),)), {}, {"y": wanted * 1.001}, {"y": wanted}).agrees


@pytest.mark.parametrize("literal", ["0.5", "1.25"])
def test_a_fraction_is_inexact(literal: str) -> None:
    assert inexact_function(parse(f"in x: f32[4] out y: f32[4] for i<4: y[i] = x[i] * {literal}")) == literal


def test_a_relaxed_rule_allows_what_it_states_and_no_more() -> None:
    program = parse("in x: f32[4] in z: f32[4] out y: f32[4] for i<4: y[i] = x[i] - z[i] * (-3)")
    x, z = np.array([1, -2, 3, 4], np.float32), np.array([4, 1, -1, -2], np.float32)
    relaxation = relaxation_of("fast", "8 * eps * the largest sum", program, {"x": x, "z": z}, {})
    assert relaxation.sums == {"y": 13.0}  # |1| + |4| * 3
    allowed = relaxation.allowed("y", 2.0**-24)
    assert allowed == 8 * 2.0**-24 * 13
    wanted = x + 3 * z
    plan = Plan((Leaf(0),))
    for off, agrees in ((0.9 * allowed, True), (1.5 * allowed, False)):
        near = wanted.astype(np.float64) + np.array([0, 0, off, 0])
        found = compare(program, plan, {}, {"y": near}, {"y": wanted}, relaxation=relaxation)
        assert found.agrees is agrees
    assert "fast is relaxed: error at most 8 * eps * the largest sum" in found.stated


def test_a_stated_error_is_in_roundings_of_the_sum() -> None:
    assert Relaxation("fast", "16 * eps * sum(|x|)", {"y": 2.0}).allowed("y", 2.0**-23) == 2.0**-18
