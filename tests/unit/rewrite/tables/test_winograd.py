"""The matrices of minimal filtering, from interpolation points."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest

from dovetail.rewrite.tables.winograd import Matrix, transforms


def _times(matrix: Matrix, vector: list[Fraction]) -> list[Fraction]:
    return [sum((a * b for a, b in zip(row, vector, strict=True)), Fraction(0)) for row in matrix]


@pytest.mark.parametrize(("outputs", "taps"), [(2, 3), (4, 3), (6, 3), (2, 5), (3, 2), (4, 1)])
def test_minimal_filtering_equals_the_direct_sums_exactly(outputs: int, taps: int) -> None:
    random = Random(1)
    matrices = transforms(outputs, taps)
    for _ in range(20):
        data = [Fraction(random.randint(-99, 99), random.randint(1, 9)) for _ in range(outputs + taps - 1)]
        filter_ = [Fraction(random.randint(-99, 99), random.randint(1, 9)) for _ in range(taps)]
        products = [a * b for a, b in zip(_times(matrices.filter, filter_), _times(matrices.input, data), strict=True)]
        direct = [sum((filter_[k] * data[i + k] for k in range(taps)), Fraction(0)) for i in range(outputs)]
        assert _times(matrices.output, products) == direct


def test_the_matrices_of_two_outputs_are_the_published_ones_up_to_signs() -> None:
    matrices = transforms(2, 3)
    assert _text(matrices.filter) == "1 0 0, 1/2 1/2 1/2, 1/2 -1/2 1/2, 0 0 1"
    assert _text(matrices.input) == "1 0 -1 0, 0 1 1 0, 0 -1 1 0, 0 -1 0 1"
    assert _text(matrices.output) == "1 1 1 0, 0 1 -1 1"


def _text(matrix: Matrix) -> str:
    return ", ".join(" ".join(map(str, row)) for row in matrix)


def test_larger_tiles_lose_more() -> None:
    assert 1 < transforms(2, 3).amplification < transforms(4, 3).amplification < transforms(6, 3).amplification


def test_data_is_multiplied_by_whole_numbers_where_the_points_are_whole() -> None:
    assert all(value.denominator == 1 for row in transforms(4, 3).input for value in row)
