"""Matrices over max and plus."""

from __future__ import annotations

import numpy as np
import pytest

from dovetail.schedule.placed.predict_maxplus import NEVER, Matrix, identity, power, product


def matrix(seed: int, size: int = 6) -> Matrix:
    """Whole cycles, a third of them on no path."""
    rng = np.random.default_rng(seed)
    found = rng.integers(0, 50, (size, size)).astype(np.float64)
    found[rng.random((size, size)) < 0.35] = NEVER
    return found


def state(size: int = 6) -> Matrix:
    return np.arange(size, dtype=np.float64)[:, None]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("exponent", [1, 2, 3, 7, 64, 65, 1000])
def test_a_power_is_that_many_products(seed: int, exponent: int) -> None:
    """Large ones are extended evenly, so they may be off where a slower path is ahead for long."""
    one, found, at = matrix(seed), product(power(matrix(seed), exponent), state()), state()
    for _ in range(exponent):
        at = product(one, at)
    reached = at > NEVER / 2
    np.testing.assert_array_equal(reached, found > NEVER / 2)
    np.testing.assert_allclose(found[reached], at[reached], rtol=0 if exponent <= 64 else 0.02)


def test_nothing_happens_in_the_identity() -> None:
    np.testing.assert_array_equal(product(identity(6), matrix(0)), matrix(0))
    np.testing.assert_array_equal(product(matrix(0), identity(6)) > NEVER / 2, matrix(0) > NEVER / 2)
