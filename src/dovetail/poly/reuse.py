"""How much data lies between two uses of one element: the working sets of a box nest, in closed form.

Enters: the extents of a perfect nest, outermost first, and its accesses. Leaves: for each reuse (one array carried by
one loop) the data touched between a use and the next one, and between that use and the last one. Integers and tuples
only. ``reuse_isl`` does the same for nests outside the closed form, by the same definition:

    source   the first point in execution order that has a later point, carried by this loop, at the same element
    nearest  data of the closed interval [source, t], where t is the first such later point
    farthest data of the half-open interval [source, t), where t begins the last iteration that meets the element

An element met only once more has one t, and both numbers are those of [source, t). The published rows of
PolyScientist (arXiv:2002.02145) follow this definition, odd ends included.
"""

from dataclasses import dataclass
from math import prod


@dataclass(frozen=True, slots=True)
class Index:
    """One subscript: ``sum(coefficients[i] * loop[i]) + constant``, a coefficient for each loop of the nest."""

    coefficients: tuple[int, ...]
    constant: int = 0


@dataclass(frozen=True, slots=True)
class Access:
    """Subscripts of one array. With ``element_bytes`` working sets come out in bytes, left at 1 in elements."""

    array: str
    indices: tuple[Index, ...]
    element_bytes: int = 1


@dataclass(frozen=True, slots=True)
class WorkingSet:
    """The reuse of ``array`` carried by the loop at position ``loop``: data up to the nearest and farthest use."""

    array: str
    loop: int
    nearest: int
    farthest: int


def has_closed_form(extents: tuple[int, ...], accesses: tuple[Access, ...]) -> bool:
    """True when each array has one access and each access tells apart all points of the loops that it uses."""
    distinct = set(accesses)
    one_access_each = len({access.array for access in distinct}) == len(distinct)
    return one_access_each and all(_separates_its_loops(extents, access) for access in distinct)


def box_working_sets(extents: tuple[int, ...], accesses: tuple[Access, ...]) -> tuple[WorkingSet, ...]:
    """Working sets of a nest for which ``has_closed_form`` holds, by array as accessed, then by loop from outside.

    For array A and loop l that does not index it, with the loops inside l run in full and those outside l held still:
    nearest = data of one iteration of l, plus one new element of every array that l indexes; farthest = data of all
    iterations of l but the last. A loop of one iteration carries nothing.

    matmul i<2, j<4, k<8 of C[i,j] += A[i,k] * B[k,j]: j carries A with nearest 1 + 8 + 8 + 1 + 1 = 19 (C and B are
    indexed by j) and farthest 3 + 8 + 24 = 35.
    """
    distinct = tuple(dict.fromkeys(accesses))
    used = tuple(_loops_used(access) for access in distinct)
    if 0 in extents:
        return ()
    found = []
    for access, loops in zip(distinct, used, strict=True):
        for loop, extent in enumerate(extents):
            if loop in loops or extent == 1:
                continue
            fresh = sum(a.element_bytes for a, its in zip(distinct, used, strict=True) if loop in its)
            nearest = _footprint(extents, distinct, used, loop, 1) + (fresh if extent > 2 else 0)
            farthest = _footprint(extents, distinct, used, loop, extent - 1)
            found.append(WorkingSet(access.array, loop, nearest, farthest))
    return tuple(found)


def _footprint(
    extents: tuple[int, ...], accesses: tuple[Access, ...], used: tuple[frozenset[int], ...], loop: int, trips: int
) -> int:
    """Data of ``trips`` iterations of ``loop`` with everything inside it in full."""
    runs = (1,) * loop + (trips,) + extents[loop + 1 :]
    return sum(
        access.element_bytes * prod(runs[i] for i in loops) for access, loops in zip(accesses, used, strict=True)
    )


def _loops_used(access: Access) -> frozenset[int]:
    return frozenset(i for index in access.indices for i, factor in enumerate(index.coefficients) if factor)


def _separates_its_loops(extents: tuple[int, ...], access: Access) -> bool:
    """True when no loop serves two subscripts and each subscript is a mixed-radix number of its loops."""
    per_index = [[i for i, factor in enumerate(index.coefficients) if factor] for index in access.indices]
    if sum(map(len, per_index)) != len(_loops_used(access)):
        return False
    return all(_is_mixed_radix(extents, index) for index in access.indices)


def _is_mixed_radix(extents: tuple[int, ...], index: Index) -> bool:
    """True when each stride exceeds the reach of all smaller ones: ``64*kt + k`` for k < 64, but not ``p + r``."""
    reach = 0
    for stride, extent in sorted((abs(c), n) for c, n in zip(index.coefficients, extents, strict=True) if c):
        if stride <= reach:
            return False
        reach += stride * (extent - 1)
    return True
