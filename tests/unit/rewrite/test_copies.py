"""Sums of one term."""

from __future__ import annotations

import pytest

from dovetail.ir.parse import parse
from dovetail.rewrite.copies import plain_copies

_HEAD = "in x: f32[1, 8]\nout y: f32[8]\ntemp t: f32[1, 8]\n"
_TAIL = "\nfor i<8: y[i] = t[0, i] * t[0, i]"


def test_a_sum_of_one_term_is_a_copy() -> None:
    found = plain_copies(parse(f"{_HEAD}for i<8: t[0, i] += x[0, i]{_TAIL}", "t"))
    assert str(found).splitlines()[3] == "for d0<8: v0[0, d0] = x[0, d0]"


@pytest.mark.parametrize(
    "statements",
    [
        "for i<8 where i >= 1: t[0, i] += x[0, i - 1]",
        "for i<7: t[0, i] += x[0, i]",
        "for i<8, j<2: t[0, i] += x[0, i]",
        "for i<8: t[0, i] *= x[0, i]",
        "for i<8: t[0, i] += x[0, i]\nfor i<8: t[0, i] += 1.0",
        "for i<4: t[0, 2*i] += x[0, i]",
    ],
    ids=["where", "part", "sum", "product", "two", "stride"],
)
def test_what_adds_more_or_less_stays(statements: str) -> None:
    program = parse(f"{_HEAD}{statements}{_TAIL}", "t")
    assert plain_copies(program) is program


def test_results_stay_sums() -> None:
    program = parse("in x: f32[8]\nout y: f32[8]\nfor i<8: y[i] += x[i]", "t")
    assert plain_copies(program) is program
