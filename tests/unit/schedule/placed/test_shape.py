"""Holds where they belong: on the outermost tile inside of which what they hold does not change."""

from __future__ import annotations

import pytest

from dovetail.base.errors import PlanError
from dovetail.ir.parse import parse
from dovetail.ir.plan import Hold, Leaf, Plan, Tile
from dovetail.schedule.placed.shape import accesses_of, hoisted, lefts
from tests.unit.schedule.placed.small import BY_PRODUCT, product, product_plan, tiles

SUMS, ROWS, COLUMNS = Hold("c", "sums"), Hold("a", "pad"), Hold("b", "pad")
TWO = parse("""
    in a: i8[8,8]  in b: i8[8,8]  out c: i32[8,8]  out d: i32[8,8]
    for i<8, j<8, k<8: c[i,j] += a[i,k] * b[k,j]
    for i<8, j<8: d[i,j] = c[i,j]
""")


def test_a_hold_leaves_tiles_over_loops_that_its_tensor_does_not_have() -> None:
    plan = Plan((tiles("i 8, j 4, k 4", BY_PRODUCT, inside=(SUMS, ROWS, COLUMNS)),))
    assert str(hoisted(product(), plan)).splitlines()[1:5] == [
        "  tile j4 of 0.j by 4:",
        "    hold c in sums",
        "    tile k4 of 0.k by 4:",
        "      hold a in pad",
    ]


def test_what_is_the_same_in_all_of_a_plan_is_held_around_it() -> None:
    plan = Plan((tiles("i 8, k 12, j 4", BY_PRODUCT, inside=(COLUMNS, Hold("a", "pad"))),))
    text = str(hoisted(product(), plan))
    assert text.startswith("tile i8 of 0.i by 8:\n  hold a in pad\n")
    whole = Plan((tiles("i 8", BY_PRODUCT, inside=(COLUMNS,)),))
    assert str(hoisted(product(), whole)).startswith("tile i8_once of 0.i by 10:\n  hold b in pad\n")


def test_a_hold_stays_among_statements_that_write_what_it_holds() -> None:
    inner = tiles("j 4", BY_PRODUCT, inside=(Hold("c", "sums", statement=0),))
    around = Tile("i", ((0, "i"), (1, "i")), 4, (inner, Leaf(1)))
    assert "    hold c in sums for 0\n" in str(hoisted(TWO, Plan((around,)))) + "\n"


def test_units_each_hold_their_own() -> None:
    spread = Tile("j", ((0, "j"),), 4, (tiles("k 4", BY_PRODUCT),), unit="core", holds=(ROWS,))
    assert str(hoisted(product(), Plan((spread,)))).startswith("tile j of 0.j by 4 on core:\n  hold a in pad\n")


def test_what_is_left_of_a_loop_is_the_step_of_its_innermost_tile() -> None:
    assert lefts(product(), product_plan("i 8, j 4"), 0) == {"i": 8, "j": 4, "k": 4}
    assert lefts(product(), Plan((tiles("i 8", BY_PRODUCT),)), 0) == {"i": 8, "j": 8, "k": 12}


def test_a_plan_must_have_every_statement() -> None:
    with pytest.raises(PlanError, match="leaves out statement 1"):
        lefts(TWO, Plan((BY_PRODUCT,)), 1)


def test_each_way_of_touching_a_tensor_counts_once() -> None:
    square = parse("in x: i8[8,8]  out y: i32[8]\nfor i<8, k<8: y[i] += x[i,k] * x[i,k] + x[k,i]").statements[0]
    assert [str(access) for access in accesses_of(square, "x")] == ["x[i, k]", "x[k, i]"]
