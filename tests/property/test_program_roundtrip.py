"""Printing a program and reading it back gives the same program."""

from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.ir.index import Condition, Index, affine, constant, variable
from dovetail.ir.parse import parse
from dovetail.ir.verify import verify
from tests.property.programs import Case, programs

NAMES = st.sampled_from(("i", "j", "k"))


@settings(max_examples=200, deadline=None)
@given(programs(exact=False))
def test_a_printed_program_reads_back_as_itself(case: Case) -> None:
    assert parse(str(case.program)) == case.program


@settings(max_examples=100, deadline=None)
@given(programs(exact=False))
def test_every_drawn_program_is_valid(case: Case) -> None:
    verify(case.program)


def indices(depth: int = 3) -> st.SearchStrategy[Index]:
    """Any quasi-affine index of i, j, k."""
    leaf = st.builds(variable, NAMES) | st.builds(constant, st.integers(-5, 5))
    return st.recursive(
        leaf,
        lambda inner: (
            st.builds(lambda a, b: a + b, inner, inner)
            | st.builds(lambda a, c: a * c, inner, st.integers(-4, 4))
            | st.builds(lambda a, d: a // d, inner, st.integers(1, 5))
            | st.builds(lambda a, d: a % d, inner, st.integers(1, 5))
        ),
        max_leaves=2**depth,
    )


@settings(max_examples=300, deadline=None)
@given(indices(), st.booleans())
def test_any_condition_reads_back_as_itself(index: Index, equal: bool) -> None:
    text = f"out y: f32[]\nfor i<4, j<4, k<4 where {Condition(index, equal)}: y[] += 1.0"
    assert parse(text).statements[0].where == (Condition(index, equal),)


@settings(max_examples=300, deadline=None)
@given(indices(), st.integers(-9, 9), st.integers(-9, 9), st.integers(-9, 9))
def test_the_normal_form_of_an_index_keeps_its_value(index: Index, i: int, j: int, k: int) -> None:
    """Parsing spells it out again, so a wrong print or a wrong fold would change the number."""
    values = {"i": i, "j": j, "k": k}
    text = f"inout y: f32[9]\nfor i<4, j<4, k<4: y[{index}] += 1.0"
    again = parse(text).statements[0].out.indices[0]
    assert again == index
    assert again.evaluate(values) == index.evaluate(values)
    assert affine(index.terms, index.const) == index
