"""Matrices over max and plus: entry [i, j] is the least time by which state i comes after what state j was before.

An iteration of a loop is such a matrix, because every time in it is the latest of some earlier times plus a constant.
A loop is a power of it, and a power grows by the same amount with every iteration once it is large enough.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float64]

NEVER = -1e30
"""Does not depend on it: so small that adding cycles does not change it."""
_LEAST = -1e20
_LARGEST_POWER = 64
"""From there on a power grows evenly: a slower one that is ahead by so many iterations differs little in rate."""


@lru_cache(maxsize=256)
def identity(size: int) -> Matrix:
    """Nothing happens."""
    found = np.full((size, size), NEVER)
    np.fill_diagonal(found, 0.0)
    found.flags.writeable = False
    return found


def product(after: Matrix, before: Matrix) -> Matrix:
    """First ``before``, then ``after``."""
    found: Matrix = np.maximum.reduce(after[:, :, None] + before, 1)
    return found


def settle(matrix: Matrix, clock: int) -> None:
    """Forget, in place, the times that are over whatever was before: those never later than state ``clock``.

    Nobody waits for them any more."""
    over = (matrix <= matrix[clock]).all(axis=1)
    over[clock] = False
    matrix[over] = NEVER


def power(matrix: Matrix, exponent: int) -> Matrix:
    """``matrix`` that many times, once or more. What it forgets passes from no iteration to the next."""
    if exponent == 1:
        return matrix
    paths = matrix > _LEAST
    kept = np.flatnonzero(paths.any(axis=1) & paths.any(axis=0))
    first, last = matrix[kept], matrix[:, kept]
    if exponent > 2:
        first = product(_squared(matrix[np.ix_(kept, kept)], exponent - 2), first)
    return product(last, first)


def _squared(matrix: Matrix, exponent: int) -> Matrix:
    """``matrix`` squared until it grows evenly."""
    squares = [matrix]
    while 2 ** len(squares) <= min(exponent, _LARGEST_POWER):
        squares.append(product(squares[-1], squares[-1]))
        if len(squares) > 2 and _is_even(*squares[-3:]):
            break
    step = 2 ** (len(squares) - 1)
    if step == exponent:
        return squares[-1]
    if len(squares) > 1 and (step >= _LARGEST_POWER or _is_even(*squares[-3:])):
        grown: Matrix = squares[-1] + _growth(squares[-1], squares[-2]) * ((exponent - step) / (step / 2))
        return grown
    return _from_squares(squares, exponent)


def _from_squares(squares: list[Matrix], exponent: int) -> Matrix:
    found: Matrix | None = None
    for place, square in enumerate(squares):
        if exponent >> place & 1:
            found = square if found is None else product(square, found)
    assert found is not None
    return found


def _is_even(*squares: Matrix) -> bool:
    """Whether the third of three powers, each twice the one before, has grown twice as much as the second."""
    if len(squares) < 3:
        return False
    first, second, third = squares
    if np.any((second > _LEAST) != (third > _LEAST)):
        return False
    grown = _growth(second, first)
    return bool(np.all(np.abs(_growth(third, second) - 2 * grown) <= 1e-6 * (1 + np.abs(grown))))


def _growth(later: Matrix, earlier: Matrix) -> Matrix:
    """By how much entries are larger; what was no path stays none."""
    found: Matrix = np.where(earlier > _LEAST, later - earlier, 0.0)
    return found
