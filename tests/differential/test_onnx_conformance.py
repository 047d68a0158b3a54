"""A sample of the cases of the onnx package; ``python -m benchmarks.onnx_conformance`` runs them all."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.conformance.cases import Case, cases
from benchmarks.conformance.crew import Outcome, run_all
from benchmarks.conformance.worker import compiled, run
from benchmarks.onnx_conformance import expected_refusals
from dovetail.model.onnx_session import reference

CASES = cases("node")
EVALUATED, COMPILED = CASES[::29], CASES[7::211]


def named(case: Case) -> str:
    return case.name


def check(case: Case, outcome: Outcome) -> None:
    refused = ("node", case.name) in expected_refusals()
    assert outcome["outcome"] == ("refused" if refused else "passed"), outcome


@pytest.mark.parametrize("case", EVALUATED, ids=named)
def test_a_case_means_what_the_standard_says(case: Case) -> None:
    check(case, run(case, reference))


@pytest.mark.parametrize("case", COMPILED, ids=named)
def test_a_compiled_case_gives_what_the_standard_says(case: Case) -> None:
    check(case, run(case, compiled))


def test_all_cases_of_the_suite_are_there() -> None:
    assert len(CASES) == 1678
    assert sum(len(cases(suite)) for suite in ("simple", "pytorch")) == 140
    assert len(cases("light")) == 9


def test_what_is_written_down_as_refused_are_cases() -> None:
    names = {(suite, case.name) for suite in ("node", "light", "simple", "pytorch") for case in cases(suite)}
    assert expected_refusals() <= names


def test_a_case_that_takes_too_long_is_counted_and_the_others_go_on() -> None:
    outcomes: list[Outcome] = []
    late = replace(CASES[0], name="late")
    run_all([late], True, 1, 0.01, outcomes.append)
    run_all(CASES[:1], True, 1, 60.0, outcomes.append)
    assert [(outcome["name"], outcome["outcome"]) for outcome in outcomes] == [
        ("late", "crashed"),
        (CASES[0].name, "passed"),
    ]
