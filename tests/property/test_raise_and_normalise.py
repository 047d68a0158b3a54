"""Random programs raised to terms and normalised are what they were, and compute what they did, in both forms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st

from dovetail.base.errors import TermError
from dovetail.ir.canonical import canonicalise
from dovetail.ir.evaluate import evaluate
from dovetail.ir.fill import fill
from dovetail.ir.functional.evaluate import evaluate as evaluate_term
from dovetail.ir.functional.infer import check
from dovetail.ir.functional.normalise import normalise
from dovetail.ir.functional.raise_program import raise_program
from dovetail.ir.functional.term import Definition
from dovetail.ir.functional.text import parse_definition
from tests.property.programs import Case, programs
from tests.property.terms import definitions, inputs
from tests.property.wide_programs import wide_programs

CHECKS = settings(
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.generate),  # the programs are small already, and shrinking them takes minutes
)
PARTS = 4
EXAMPLES = 80
EVALUATED = 30
SOURCES = {"as before": programs(exact=False, indirect=False), "of more forms": wide_programs()}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("part", range(PARTS))
def test_random_programs_come_back(part: int, source: str) -> None:
    """640 programs in all."""

    @seeded(part)
    @settings(CHECKS, max_examples=EXAMPLES)
    @given(SOURCES[source])
    def come_back(case: Case) -> None:
        raised = raise_program(case.program)
        found = normalise(raised, typed=True)
        assert str(found) == str(canonicalise(case.program)), str(raised)
        assert found == canonicalise(case.program)

    come_back()


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("part", range(2))
def test_random_programs_mean_the_same_as_terms(part: int, source: str) -> None:
    exact = programs(indirect=False) if source == "as before" else wide_programs()

    @seeded(100 + part)
    @settings(CHECKS, max_examples=EVALUATED)
    @given(exact, st.integers(0, 99))
    def mean_the_same(case: Case, filled: int) -> None:
        raised = raise_program(case.program)
        check(raised)
        assert parse_definition(str(raised)) == raised
        arrays = fill(case.program, filled, case.sizes)
        wanted, found = evaluate(case.program, arrays, case.sizes), evaluate_term(raised, arrays, case.sizes)
        for name, array in wanted.items():
            assert found[name].dtype == array.dtype, name
            np.testing.assert_array_equal(found[name], array, err_msg=str(raised))

    mean_the_same()


@settings(CHECKS, max_examples=100)
@given(definitions(), st.integers(0, 99))
def test_random_terms_mean_the_same_as_programs(definition: Definition, filled: int) -> None:
    """But for those whose result is not there everywhere: a program writes every element of it."""
    try:
        program = normalise(definition, typed=True)
    except TermError as error:
        assert "is never written" in str(error) or "before it is written" in str(error), str(definition)
        event("refused")
        return
    arrays = inputs(definition, filled)
    wanted, found = evaluate_term(definition, arrays), evaluate(program, arrays)
    np.testing.assert_array_equal(found["y"], wanted["y"], err_msg=str(definition))
    assert found["y"].dtype == wanted["y"].dtype
    assert normalise(raise_program(program)) == program
