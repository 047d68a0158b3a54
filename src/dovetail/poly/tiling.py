"""Tilings as integer relations: which points a call of fixed extents covers, and what its elements tell apart.

A tiling splits groups of loops. A group of extents (e1, ..., em) is read as one flat loop, outermost first, and cut
into tiles: ``flat = size * tile + within``. Names and indices are isl text; loops and coordinates are called
``h0, h1, ...`` (loops), ``t0, ...`` (tiles), ``u0, ...`` (coordinates within a tile), sizes by their own names.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import islpy as isl


@dataclass(frozen=True, slots=True)
class Group:
    """Loops (by number) run as one, outermost first, in tiles of ``size``."""

    loops: tuple[int, ...]
    size: int


@dataclass(frozen=True, slots=True)
class Tiling:
    """All loops of a nest: extents as isl text (numbers or affine in sizes), groups, and the sizes' ranges."""

    extents: tuple[str, ...]
    groups: tuple[Group, ...]
    sizes: tuple[tuple[str, int, int], ...] = ()

    @property
    def is_affine(self) -> bool:
        """Fusing multiplies by the extents of inner loops: those must be numbers."""
        return all(self.extents[loop].lstrip("-").isdigit() for g in self.groups for loop in g.loops[1:])


@lru_cache(maxsize=4096)
def determines(tiling: Tiling, known: tuple[str, ...], asked: tuple[str, ...]) -> bool:
    """Whether, within one tile, equal values of ``known`` imply equal values of ``asked``, at points that exist."""
    points = _points(tiling)
    here = [*(f"t{n}" for n in range(len(tiling.groups))), *_outer(tiling)]
    left = _function(tiling, (*here, *known)).intersect_domain(points)
    right = _function(tiling, asked).intersect_domain(points)
    return bool(left.reverse().apply_range(right).is_single_valued())


def covers_once(tiling: Tiling) -> bool:
    """Whether tiles reach every point of the nest exactly once, and no other.

    Groups share no loop, so the nest is the product of its groups; a guard takes the same points from both sides.
    """
    loops = [loop for group in tiling.groups for loop in group.loops]
    if len(loops) != len(set(loops)):
        return False
    for group in tiling.groups:
        extents = tuple(tiling.extents[loop] for loop in group.loops)
        if not _group_covers_once(extents, group.size, tiling.sizes):
            return False
    return True


@lru_cache(maxsize=4096)
def _group_covers_once(extents: tuple[str, ...], size: int, sizes: tuple[tuple[str, int, int], ...]) -> bool:
    alone = Tiling(extents, (Group(tuple(range(len(extents))), size),), sizes)
    points = _points(alone)
    calls = _function(alone, ("t0", "u0")).intersect_domain(points)
    reach = calls.reverse().apply_range(_function(alone, _loops(alone)))
    domain = isl.Set(f"{_parameters(alone)} {{ [{', '.join(_loops(alone))}] : {' and '.join(_box(alone)) or 'true'} }}")
    return bool(reach.is_single_valued() and reach.is_injective() and reach.range().is_equal(domain))


@lru_cache(maxsize=4096)
def separate(tiling: Tiling, known: tuple[str, ...], group: int) -> bool:
    """Whether no element (``known``) of one tile is met both at a point that exists and at one ``group`` pads."""
    if not tiling.is_affine:
        return False
    here = (*(f"t{n}" for n in range(len(tiling.groups))), *_outer(tiling), *known)
    elements = _function(tiling, here)
    live = elements.intersect_domain(_points(tiling)).range()
    padded = elements.intersect_domain(_points(tiling, padded=group)).range()
    return bool(live.intersect(padded).is_empty())


def _points(tiling: Tiling, padded: int | None = None) -> isl.Set:
    """Points [t, u, h]; with ``padded`` those at which that group is past its end (its loops are then all 0)."""
    rows = []
    for n, group in enumerate(tiling.groups):
        flat = "0"
        count = "1"
        for loop in group.loops:
            extent = tiling.extents[loop]
            flat = f"{extent} * ({flat}) + h{loop}" if flat != "0" else f"h{loop}"
            count = extent if count == "1" else f"{count} * {extent}"
        place = f"{group.size} * t{n} + u{n}"
        rows.append(f"0 <= u{n} < {group.size} and t{n} >= 0")
        if n == padded:
            rows += [f"{place} >= {count}", f"{group.size} * t{n} < {count}", *(f"h{loop} = 0" for loop in group.loops)]
        else:
            rows.append(f"{place} = {flat}")
    names = [*(f"t{n}" for n in range(len(tiling.groups))), *_within(tiling), *_loops(tiling)]
    return isl.Set(f"{_parameters(tiling)} {{ [{', '.join(names)}] : {' and '.join([*_box(tiling), *rows])} }}")


def _function(tiling: Tiling, values: tuple[str, ...]) -> isl.Map:
    names = [*(f"t{n}" for n in range(len(tiling.groups))), *_within(tiling), *_loops(tiling)]
    return isl.Map(f"{_parameters(tiling)} {{ [{', '.join(names)}] -> [{', '.join(values)}] }}")


def _box(tiling: Tiling) -> list[str]:
    ranges = [f"{low} <= {name} <= {high}" for name, low, high in tiling.sizes]
    return [*ranges, *(f"0 <= h{n} < {extent}" for n, extent in enumerate(tiling.extents))]


def _loops(tiling: Tiling) -> tuple[str, ...]:
    return tuple(f"h{n}" for n in range(len(tiling.extents)))


def _within(tiling: Tiling) -> tuple[str, ...]:
    return tuple(f"u{n}" for n in range(len(tiling.groups)))


def _outer(tiling: Tiling) -> tuple[str, ...]:
    bound = {loop for group in tiling.groups for loop in group.loops}
    return tuple(f"h{n}" for n in range(len(tiling.extents)) if n not in bound)


def _parameters(tiling: Tiling) -> str:
    return f"[{', '.join(name for name, _, _ in tiling.sizes)}] ->"
