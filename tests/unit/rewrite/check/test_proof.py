"""Proofs for all sizes, and what refutes them."""

from __future__ import annotations

import pytest

from dovetail.ir.parse import parse
from dovetail.rewrite.check.accesses import first_difference, is_plain
from dovetail.rewrite.check.proof import prove
from dovetail.rewrite.rule import Rule

_HEAD = "size n in 1..1000\nin x: f32[n, n]\nout y: f32[n, n]\n"


def test_a_rule_is_proven_for_all_values_of_its_sizes() -> None:
    proof = prove(Rule("twice", "transpose(transpose(?x))", "?x"))
    assert proof.refuted is None
    assert (proof.cases, proof.symbols) == (4, 2)


def test_elements_in_another_order_refute_a_rule() -> None:
    proof = prove(Rule("first", "slice(?a, ?n, ?s, ?x)", "slice(0, ?n, ?s, ?x)"))
    assert proof.refuted is not None
    assert "only the first reads" in proof.refuted


def test_what_cannot_be_written_with_symbolic_sizes_is_not_proven() -> None:
    proof = prove(Rule("halves", "join(split(?n, ?x))", "join(transpose(split(?n, ?x)))"))
    assert (proof.cases, proof.refuted) == (0, None)


def test_a_rule_about_functions_of_arrays_and_sums_may_be_proven_by_text_alone() -> None:
    rule = Rule(
        "parts",
        "reduce(?f, ?z, ?x)",
        "reduce(?f, ?z, map(reduce(?f, ?z), split(?n, ?x)))",
        ("associative(?f)", "neutral(?f, ?z)"),
        ("x: ?t[?m]",),
        ("n: divisors(?m)",),
        "reassociating",
    )
    assert prove(rule).cases > 0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("for i<n, j<n: y[i, j] = x[j, i]", "for i<n, j<n: y[j, i] = x[i, j]"),
        ("for i<n, j<n: y[i, j] = x[i, j]", "for i<n, j<n where j >= 1: y[i, j] = x[i, j]\nfor i<n: y[i, 0] = x[i, 0]"),
    ],
    ids=["names", "parts"],
)
def test_programs_that_read_the_same_elements_do_not_differ(one: str, other: str) -> None:
    assert first_difference(parse(_HEAD + one, "one"), parse(_HEAD + other, "other")) is None


@pytest.mark.parametrize(
    "other",
    [
        "for i<n, j<n: y[i, j] = x[i, j]",
        "for i<n, j<n where i >= 1: y[i, j] = x[j, i]\nfor j<n: y[0, j] = x[0, j]",
        "for i<n, j<n: y[i, j] = exp(x[j, i])",
    ],
    ids=["transposed", "one-row", "arithmetic"],
)
def test_programs_that_read_other_elements_differ(other: str) -> None:
    one = parse(f"{_HEAD}for i<n, j<n: y[i, j] = x[j, i]", "one")
    assert first_difference(one, parse(_HEAD + other, "other")) is not None


def test_a_sum_is_not_plain() -> None:
    assert not is_plain(parse(f"{_HEAD}for i<n, j<n, k<n: y[i, j] += x[i, k]", "sum"))
