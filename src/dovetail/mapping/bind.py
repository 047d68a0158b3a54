"""Which loops of a statement an instruction's loops can run over, given what its operands hold.

    acc[i, j] += a[i, k] * b[k, j]   on   y[m, n] += x[m, c] * w[c, n]   with a = x[m, c], b = w[c, n]
    i runs over m (not in b), j over n (not in a), k over c (not in the output)

A loop may run over none, one, or several loops of the statement (fused, in the order of the statement). Within one
call, elements that are one element to the instruction must be one value in the program; results that are one element
to the instruction must be one element in the program, and different ones different.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from dovetail.ir.expr import Expr, Position, Read, names, walk
from dovetail.ir.index import Access, Index
from dovetail.mapping.catalogue import Form
from dovetail.mapping.isl_text import isl_text, isl_texts
from dovetail.mapping.needle import Needle, Slot, told_apart
from dovetail.mapping.site import Haystack, Site
from dovetail.mapping.unify import Match
from dovetail.poly.tiling import Group, Tiling, determines

Numbers = tuple[tuple[int, ...], ...]
Binding = tuple[tuple[str, ...], ...]
"""For each loop of the instruction, the loops of the statement it runs over."""


@dataclass(frozen=True, slots=True)
class Held:
    """A slot of an instruction and what the program has there."""

    slot: Slot
    value: Expr | Access
    """An access stands for a result."""
    varies: frozenset[str]
    """Loops (and sizes) the value depends on."""

    @property
    def access(self) -> Access | None:
        """The element it is, None for a value that is not one."""
        if isinstance(self.value, Access):
            return self.value
        return self.value.access if isinstance(self.value, Read) else None


def held_values(form: Form, match: Match) -> tuple[Held, ...]:
    """Every operand of ``match`` with its slot, in the order of the match."""
    return tuple(Held(form.needle.slot(name), value, names(value)) for name, value in match.operands)


def allowed_loops(form: Form, site: Site, held: tuple[Held, ...]) -> Numbers:
    """For each bindable loop of the statement, the instruction's loops (by number) that may run over it."""
    written = None if site.result is None else site.result.names()
    reduced = form.needle.reduced
    found = []
    for loop in site.haystack.loops:
        numbers = []
        for number, needle_loop in enumerate(form.needle.loops):
            if needle_loop.most <= 1:
                continue
            if needle_loop.name in reduced:
                fits = form.accumulates and written is not None and loop.name not in written
            else:
                fits = written is None or loop.name in written
            if fits and all(needle_loop.name in h.slot.loops or loop.name not in h.varies for h in held):
                numbers.append(number)
        found.append(tuple(numbers))
    return tuple(found)


@lru_cache(maxsize=1024)
def assignments(allowed: Numbers, loops: int, fused: int) -> tuple[Numbers, ...]:
    """Every way to give each statement loop to an allowed instruction loop or to none, with ``fused`` fusings in all.

    Leaves, for each of the ``loops`` instruction loops, the numbers of statement loops it runs over.
    """
    found: list[Numbers] = []
    given: list[list[int]] = [[] for _ in range(loops)]

    def give(loop: int, left: int) -> None:
        if loop == len(allowed):
            if left == 0:
                found.append(tuple(map(tuple, given)))
            return
        for number in allowed[loop]:
            cost = 1 if given[number] else 0
            if cost <= left:
                given[number].append(loop)
                give(loop + 1, left - cost)
                given[number].pop()
        give(loop + 1, left)

    give(0, fused)
    return tuple(found)


def elements_agree(needle: Needle, site: Site, held: tuple[Held, ...], binding: Binding) -> bool:
    """Whether operands and results are told apart by the instruction exactly as the program needs it."""
    if not _results_agree(needle, site, binding):
        return False
    for h in held:
        blurred = h.slot.loops - h.slot.determined
        moved = {
            name for loop, loops in zip(needle.loops, binding, strict=True) if loop.name in blurred for name in loops
        }
        if moved & h.varies and not _is_function(needle, site.haystack, binding, h):
            return False
    return True


def plainly_agree(needle: Needle, site: Site, held: tuple[Held, ...], binding: Binding) -> bool:
    """Whether the same can be seen without knowing the instruction's extents."""
    if not all(h.slot.is_plain for h in held):
        return False
    result = needle.result
    if site.result is None:
        return all(loop.name in result.determined for loop, loops in zip(needle.loops, binding, strict=True) if loops)
    if not result.is_plain:
        return False
    pairs = zip(needle.loops, binding, strict=True)
    written = frozenset([name for loop, loops in pairs if loop.name in result.loops for name in loops])
    if written not in site.apart:
        fixed = {x.name: x.extent.const for x in site.haystack.statement.all_loops if x.extent.is_constant}
        site.apart[written] = told_apart(site.result.indices, written, fixed) == written
    return site.apart[written]


def _results_agree(needle: Needle, site: Site, binding: Binding) -> bool:
    result = needle.result
    if site.result is None:
        return all(loop.name in result.determined for loop, loops in zip(needle.loops, binding, strict=True) if loops)
    tiling, names_of = tiling_of(needle, site.haystack, binding)
    inside = isl_texts(result.access.indices, _coordinates(needle))
    outside = isl_texts(site.result.indices, names_of)
    if inside is None or outside is None or not tiling.is_affine:
        return False
    return determines(tiling, inside, outside) and determines(tiling, outside, inside)


def _is_function(needle: Needle, haystack: Haystack, binding: Binding, held: Held) -> bool:
    """Whether the program's value follows from the instruction's element, within one call."""
    tiling, names_of = tiling_of(needle, haystack, binding)
    inside = isl_texts(held.slot.access.indices, _coordinates(needle))
    outside = isl_texts(tuple(_indices(held.value)), names_of)
    if inside is None or outside is None or not tiling.is_affine:
        return False
    return determines(tiling, inside, outside)


def tiling_of(needle: Needle, haystack: Haystack, binding: Binding) -> tuple[Tiling, dict[str, str]]:
    """The calls of the instruction as a tiling of the statement, and what its loops and sizes are called there."""
    loops = haystack.statement.all_loops
    size_names = {name: f"s{n}" for n, (name, _, _) in enumerate(haystack.sizes)}
    numbers = {loop.name: n for n, loop in enumerate(loops)}
    extents = tuple(str(isl_text(loop.extent, size_names)) for loop in loops)
    groups = tuple(
        Group(tuple(numbers[name] for name in bound), loop.most)
        for loop, bound in zip(needle.loops, binding, strict=True)
    )
    sizes = tuple((size_names[name], low, high) for name, low, high in haystack.sizes)
    return Tiling(extents, groups, sizes), {**size_names, **{name: f"h{n}" for name, n in numbers.items()}}


def _coordinates(needle: Needle) -> dict[str, str]:
    return {loop.name: f"u{n}" for n, loop in enumerate(needle.loops)}


def _indices(value: Expr | Access) -> list[Index]:
    if isinstance(value, Access):
        return list(value.indices)
    found: list[Index] = []
    for node in walk(value):
        if isinstance(node, Read):
            found.extend(node.access.indices)
        elif isinstance(node, Position):
            found.append(node.index)
    return found
