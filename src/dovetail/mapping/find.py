"""Instruction mapping: every way the instructions of a target do a part of a program.

A place (a whole statement or a node of its value) is looked up in the target's catalogue by its operator and dtype;
each form found there is unified with it; each unification leaves some loops that may be bound; each binding that is
sound is a fit. Fits are found in order of depth, the number of fusings, temporaries and identities they use: when a
bound stops the search, what has been found is complete up to the depth before. Splitting, reordering, commuting,
broadcasting and padding follow from the bindings and are free.
"""

from __future__ import annotations

from time import perf_counter

from dovetail.base.dtypes import DTYPES, DType
from dovetail.base.limits import DEFAULT_LIMITS, Limits
from dovetail.ir.expr import Read
from dovetail.ir.fit import Fit, MappingResult
from dovetail.ir.program import Program
from dovetail.mapping.candidates import IDENTITY, WITH_NEUTRAL, Candidate, candidates, outcomes
from dovetail.mapping.catalogue import Catalogue, catalogue
from dovetail.mapping.misfit import explain
from dovetail.mapping.site import Haystack, Site, haystacks, sites
from dovetail.mapping.typed import preserves
from dovetail.targets.model import Target


def find_mappings(
    program: Program,
    target: Target,
    limits: Limits = DEFAULT_LIMITS,
    misfits: bool = True,
    allow: frozenset[str] = frozenset(),
    nodes: bool = True,
) -> MappingResult:
    """All fits of ``target``'s instructions in ``program`` within ``limits``, and why the others do not fit.

    ``allow`` may hold ``IDENTITY`` and ``FINITE``; without ``nodes`` only whole statements are searched. The order is
    fixed: by statement, place, instruction, depth. Misfits are by statement, nearest to a fit first.
    """
    hays = tuple(haystacks(program))
    known = catalogue(target) if misfits else catalogue(target, *_vocabulary(hays, IDENTITY in allow))
    places = tuple(site for hay in hays for site in sites(hay) if nodes or site.node is None)
    fits, stopped_by = _search(known, places, limits, allow)
    reasons = explain(known, places, fits, limits, allow) if misfits else ()
    return MappingResult(fits, reasons, stopped_by)


def _search(
    known: Catalogue, places: tuple[Site, ...], limits: Limits, allow: frozenset[str]
) -> tuple[tuple[Fit, ...], str]:
    """Fits in their final order, and the bound that stopped the search ("" when none did)."""
    deadline = perf_counter() + limits.mapping_seconds
    found: list[tuple[int, int, int, Fit]] = []
    unified: list[tuple[int, Candidate]] = []
    for place, site in enumerate(places):
        unified += [(place, candidate) for candidate in candidates(known, site, allow)]
        if perf_counter() > deadline:
            return (), f"time: {limits.mapping_seconds:g} s, {_complete(0)}"
    for depth in range(limits.mapping_depth + 1):
        for place, candidate in unified:
            for needle, fit in outcomes(candidate, depth):
                if not isinstance(fit, Fit):
                    continue
                if len(found) == limits.mapping_count:
                    return _ordered(found), f"count: {limits.mapping_count} fits, {_complete(depth)}"
                found.append((place, needle.number, len(found), fit))
            if perf_counter() > deadline:
                return _ordered(found), f"time: {limits.mapping_seconds:g} s, {_complete(depth)}"
    return _ordered(found), ""


def _complete(depth: int) -> str:
    """How far a search that stopped at ``depth`` has seen everything."""
    return f"complete to depth {depth - 1}" if depth else "no depth complete"


def _ordered(found: list[tuple[int, int, int, Fit]]) -> tuple[Fit, ...]:
    found.sort(key=lambda row: row[:3])
    return tuple([row[3] for row in found])


def _vocabulary(hays: tuple[Haystack, ...], identity: bool) -> tuple[frozenset[str], frozenset[str]]:
    """Primitives and dtypes that an instruction must not exceed to fit anywhere in these statements."""
    functions = set(WITH_NEUTRAL if identity else ())
    kinds: set[DType] = set()
    wanted: set[DType] = set()
    for hay in hays:
        for node in hay.value.walk():
            functions.add(node.root.split(" ")[0])
            wanted.add(node.dtype)
            if isinstance(node.expr, Read):
                kinds.add(hay.dtypes[node.expr.access.tensor])
        out = hay.dtypes[hay.statement.out.tensor]
        functions |= {hay.statement.combine.function or ""}
        wanted |= {out, DTYPES[out.accumulator]}
    kinds |= wanted
    if len(kinds) > 1:
        functions.add("cast")
        between = DTYPES.values()
        kinds |= {d for d in between if any(preserves(k, d) for k in kinds) and any(preserves(d, w) for w in wanted)}
    return frozenset(functions), frozenset(kind.name for kind in kinds)
