"""The matrices of Winograd's minimal filtering, from interpolation points, in exact fractions.

``F(m, r)``: m outputs of a filter of r taps from m + r - 1 inputs, with as many products:

    y = A^T ((G g) * (B^T d))

It is Toom-Cook multiplication of polynomials of m and r coefficients, at m + r - 2 finite points and infinity,
transposed. Row j of B^T holds the coefficients of the product of (t - p) over the other points p; G evaluates the
filter at the points and divides by that product's value, so that B^T stays whole where the points are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

Matrix = tuple[tuple[Fraction, ...], ...]
POINTS = (0, 1, -1, 2, -2, Fraction(1, 2), Fraction(-1, 2))
"""Small numbers first: they make small, mostly whole coefficients."""


@dataclass(frozen=True, slots=True)
class Transforms:
    """``output`` (A^T, m x n), ``filter`` (G, n x r) and ``input`` (B^T, n x n), with n = m + r - 1."""

    output: Matrix
    filter: Matrix
    input: Matrix

    @property
    def amplification(self) -> float:
        """How much larger than the direct sum of magnitudes the magnitudes summed here can be, for one dimension.

        Rounding errors grow with it: |A^T| (|G| |g| * |B^T| |d|) over the largest of |g| and |d|, per tap.
        """
        taps = len(self.filter[0])
        inner = [_size(g) * _size(b) for g, b in zip(self.filter, self.input, strict=True)]
        rows = (sum(abs(a) * v for a, v in zip(row, inner, strict=True)) for row in self.output)
        return float(max(rows) / taps)


def transforms(outputs: int, taps: int) -> Transforms:
    """The matrices of ``F(outputs, taps)``."""
    points = tuple(Fraction(p) for p in POINTS[: outputs + taps - 2])
    assert len(points) == outputs + taps - 2, "there are no more points"
    others = [tuple(q for q in points if q != p) for p in points]
    scale = [_product(p - q for q in rest) for p, rest in zip(points, others, strict=True)]
    sign = [-1 if value < 0 else 1 for value in scale]
    last = tuple(Fraction(k == taps - 1) for k in range(taps))
    return Transforms(
        tuple((*(p**i for p in points), Fraction(i == outputs - 1)) for i in range(outputs)),
        (*(tuple(p**k / abs(v) for k in range(taps)) for p, v in zip(points, scale, strict=True)), last),
        (
            *(tuple(s * c for c in (*_roots(rest), Fraction(0))) for s, rest in zip(sign, others, strict=True)),
            _roots(points),
        ),
    )


def _roots(points: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
    """Coefficients of the polynomial that vanishes at ``points``, constant first."""
    found = [Fraction(1)]
    for p in points:
        found = [low - p * high for low, high in zip([Fraction(0), *found], [*found, Fraction(0)], strict=True)]
    return tuple(found)


def _product(values: Iterable[Fraction]) -> Fraction:
    total = Fraction(1)
    for value in values:
        total *= value
    return total


def _size(row: tuple[Fraction, ...]) -> Fraction:
    return sum((abs(v) for v in row), Fraction(0))
