"""Sums of products by letters against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

from dovetail.base.errors import OperatorError
from tests.unit.ops.single import apply, whole

ONE = ["ij->ji", "ii->i", "ii", "ij->", "ij->j", "...j->..."]
TWO = ["ij,jk->ik", "ij,ij->", "i,j->ij", "bij,bjk->bik", "...ij,...jk->...ik", "ij,jk", "bi,bj->bij"]


@pytest.mark.parametrize("equation", ONE)
def test_one_operand_is_summed_turned_or_cut_along_its_diagonal(equation: str) -> None:
    x = whole(4, 4)
    np.testing.assert_array_equal(apply("einsum", x, equation=equation), np.einsum(equation, x))


@pytest.mark.parametrize("equation", TWO)
def test_two_operands_are_multiplied_and_summed(equation: str) -> None:
    terms = equation.split("->")[0].split(",")
    extents = {"b": 2, "i": 3, "j": 3, "k": 5}
    shapes = [[2] * term.count("...") + [extents[c] for c in term.replace("...", "")] for term in terms]
    a, b = (whole(*shape) for shape in shapes)
    np.testing.assert_array_equal(apply("einsum", a, b, equation=equation), np.einsum(equation, a, b))


def test_an_axis_of_one_is_stretched() -> None:
    a, b = whole(2, 3, 4), whole(1, 4, 5)
    np.testing.assert_array_equal(apply("einsum", a, b, equation="bij,bjk->bik"), a @ b)


@pytest.mark.parametrize(
    ("equation", "why"),
    [("ij->ik", "no operand has"), ("ijk->i", "2 axes"), ("i1->i", "cannot be read"), ("ij,jk->ik", "2 operands")],
)
def test_letters_that_do_not_fit_are_refused(equation: str, why: str) -> None:
    with pytest.raises(OperatorError, match=why):
        apply("einsum", whole(2, 3), equation=equation)
