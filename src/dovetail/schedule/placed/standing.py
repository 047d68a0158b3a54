"""Where the loops of a plan stand, and which elements of a tensor are touched from there.

    tile i of 0.i by 64:          i stands at 64*i1, 64 are left
      tile i of 0.i by 16:        i stands at 64*i1 + 16*i2, 16 are left

A loop that ends inside its last tile is *partial* there: fewer than ``left`` iterations are valid.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

from dovetail.ir.index import Condition, Index, constant
from dovetail.ir.interval import interval

Ranges = Mapping[str, tuple[int, int]]
"""Variables of the nest: smallest and largest value."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A loop that runs from ``base`` over ``left`` iterations, and ends at ``extent``."""

    base: Index
    left: int
    extent: int

    def valid(self, ranges: Ranges) -> tuple[Index, ...]:
        """How many iterations there are: the smallest of these."""
        rest = constant(self.extent) - self.base
        return (constant(self.left), rest) if self.is_partial(ranges) else (constant(self.left),)

    def is_partial(self, ranges: Ranges) -> bool:
        """Whether it may end before ``left`` iterations, if it exists at all: not where tiles of it fill it evenly."""
        if upper(self.base, ranges) + self.left <= self.extent:
            return False
        return bool(
            self.extent % self.left or self.base.const % self.left or any(c % self.left for _, c in self.base.terms)
        )

    def exists(self, ranges: Ranges) -> tuple[Condition, ...]:
        """What must hold for it to have an iteration at all; nothing where it always has."""
        rest = constant(self.extent - 1) - self.base
        return () if lower(rest, ranges) >= 0 else (Condition(rest),)


Spot = Mapping[str, Standing]
"""The loops of one statement."""


@dataclass(frozen=True, slots=True)
class Span:
    """Indices of one dimension of a tensor from ``low`` on; ``extent`` at most, the smallest of ``valid`` really."""

    low: Index
    extent: int
    valid: tuple[Index, ...]


def span(index: Index, spot: Spot, size: int, ranges: Ranges) -> Span:
    """What ``index`` into a dimension of ``size`` runs over from ``spot`` on; no loop in it runs backwards."""
    low = index.substitute({name: standing.base for name, standing in spot.items()})
    extent, choices = 1, []
    for atom, c in index.terms:
        assert isinstance(atom, str)
        standing = spot[atom]
        extent += c * (standing.left - 1)
        choices.append(tuple((count - 1) * c for count in standing.valid(ranges)))
    valid = tuple(sum(chosen, constant(1)) for chosen in product(*choices))
    behind = constant(size) - low
    if lower(behind, ranges) < extent:
        valid += (behind,)
    return Span(low, extent, _smallest(valid, ranges))


def lower(index: Index, ranges: Ranges) -> int:
    """The smallest value."""
    found = interval(index, ranges)
    assert found is not None
    return found[0]


def upper(index: Index, ranges: Ranges) -> int:
    """The largest value."""
    found = interval(index, ranges)
    assert found is not None
    return found[1]


def _smallest(values: tuple[Index, ...], ranges: Ranges) -> tuple[Index, ...]:
    """Without those that never are the smallest alone."""
    several = tuple(dict.fromkeys(values))
    return tuple(
        value
        for n, value in enumerate(several)
        if not any(
            lower(value - other, ranges) >= 0 and (m < n or upper(value - other, ranges) > 0)
            for m, other in enumerate(several)
            if m != n
        )
    )
