import json

import numpy as np
import pytest

from benchmarks.problems import Problem, Table, check, largest_integer, operands, problem_from_json
from benchmarks.shapes import Conv, Gemm

CONV = Conv(2, 4, 6, (7, 9), (3, 2), (4, 5), (2, 2), (1, 1), (1, 2), groups=2)


@pytest.mark.parametrize("problem", [Problem(Table.CONSTANT, Gemm(2, 3, 4, True, False)), Problem(Table.CONV, CONV)])
def test_a_problem_survives_the_way_to_another_process(problem: Problem) -> None:
    assert problem_from_json(json.loads(json.dumps(problem.to_json()))) == problem


def test_inputs_are_small_integers_and_the_same_every_time() -> None:
    first, again = operands(Gemm(30, 40, 50)), operands(Gemm(30, 40, 50))
    assert np.array_equal(first.first, again.first)
    assert set(np.unique(first.first)) == set(range(-3, 4))
    assert not np.array_equal(first.first.ravel()[:100], first.second.ravel()[:100])


def test_long_reductions_get_integers_whose_sums_stay_exact() -> None:
    assert largest_integer(1000) == 3
    assert largest_integer(2_000_000) == 2
    assert largest_integer(10_000_000) == 1


@pytest.mark.parametrize("shape", [Gemm(20, 30, 40), Gemm(20, 30, 40, True, True)])
def test_a_right_product_is_exact_and_one_wrong_element_shows(shape: Gemm) -> None:
    inputs = operands(shape)
    a = inputs.first.T if shape.trans_a else inputs.first
    b = inputs.second.T if shape.trans_b else inputs.second
    result = a @ b
    assert check(shape, inputs, result).accepted(exact=True)
    result[7, 11] += 1
    assert not check(shape, inputs, result).accepted(exact=True)


def test_missing_values_and_wrong_shapes_are_never_accepted() -> None:
    shape = Gemm(2, 3, 4)
    inputs = operands(shape)
    assert not check(shape, inputs, np.full((2, 3), np.nan, np.float32)).accepted(exact=False)
    assert not check(shape, inputs, np.zeros((3, 2), np.float32)).accepted(exact=False)


def test_a_rounding_error_is_accepted_of_a_peer_and_not_of_us() -> None:
    shape = Gemm(20, 30, 40)
    inputs = operands(shape)
    verdict = check(shape, inputs, inputs.first @ inputs.second * np.float32(1 + 1e-6))
    assert verdict.accepted(exact=False)
    assert not verdict.accepted(exact=True)
