"""Dimensions in another order: the same numbers at other places."""

import numpy as np

from dovetail.ir.evaluate import evaluate
from dovetail.ir.fill import fill
from dovetail.ir.parse import parse
from dovetail.ir.reorder import inverse, with_dimensions
from dovetail.ir.verify import verify

SUM = parse("""
in x: f64[3,4,5]  in at: i64[4,2]  temp t: f64[4,5]  out y: f64[5,4,2]
for i<3, j<4, k<5: t[j,k] += x[i,j,k]
for j<4, k<5, l<2: y[k,j,l] = t[j,k] + x[0,at[j,l],k]
""")


def test_a_result_is_transposed() -> None:
    turned = with_dimensions(SUM, "y", (2, 0, 1))
    verify(turned)
    arrays = fill(SUM, 1)
    wanted = evaluate(SUM, arrays)["y"]
    np.testing.assert_array_equal(evaluate(turned, arrays)["y"], wanted.transpose(2, 0, 1))


def test_what_is_read_inside_an_index_is_turned_too() -> None:
    turned = with_dimensions(SUM, "at", (1, 0))
    arrays = fill(SUM, 1)
    wanted = evaluate(SUM, arrays)["y"]
    np.testing.assert_array_equal(evaluate(turned, {**arrays, "at": arrays["at"].T})["y"], wanted)


def test_a_temporary_may_lie_in_any_order() -> None:
    arrays = fill(SUM, 1)
    turned = with_dimensions(SUM, "t", (1, 0))
    np.testing.assert_array_equal(evaluate(turned, arrays)["y"], evaluate(SUM, arrays)["y"])
    assert with_dimensions(turned, "t", inverse((1, 0))) == SUM


def test_an_order_is_undone_by_its_inverse() -> None:
    order = (2, 0, 1)
    assert with_dimensions(with_dimensions(SUM, "x", order), "x", inverse(order)) == SUM
