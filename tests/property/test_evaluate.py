"""The evaluator agrees with a point-by-point interpreter, and its short cuts with its general path."""

import numpy as np
import pytest
from hypothesis import given, settings

from dovetail.ir import evaluate as evaluator
from dovetail.ir.evaluate import evaluate
from dovetail.ir.fill import fill
from tests.property.interpreter import interpret
from tests.property.programs import Case, programs


@settings(max_examples=300, deadline=None)
@given(programs())
def test_the_evaluator_agrees_with_the_interpreter(case: Case) -> None:
    arrays = fill(case.program, 1, case.sizes)
    before = {name: array.copy() for name, array in arrays.items()}
    found = evaluate(case.program, arrays, case.sizes)
    expected = interpret(case.program, arrays, case.sizes)
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array, err_msg=f"{name} of\n{case}")
    for name, array in before.items():
        np.testing.assert_array_equal(arrays[name], array)


@settings(max_examples=150, deadline=None)
@given(programs())
def test_small_blocks_and_no_short_cuts_change_nothing(case: Case) -> None:
    arrays = fill(case.program, 2, case.sizes)
    whole = evaluate(case.program, arrays, case.sizes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluator, "BLOCK_POINTS", 3)
        patch.setattr(evaluator, "OPERAND_ELEMENTS", 3)
        pieces = evaluate(case.program, arrays, case.sizes)
        patch.setattr(evaluator, "contraction", lambda *_: None)
        general = evaluate(case.program, arrays, case.sizes)
    for name, array in whole.items():
        np.testing.assert_array_equal(pieces[name], array)
        np.testing.assert_array_equal(general[name], array)
