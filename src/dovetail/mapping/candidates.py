"""Unifications of a target's forms with the places of a program, and the fits each of them leads to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dovetail.base.dtypes import DTYPES
from dovetail.ir.expr import Read
from dovetail.ir.fit import Fit
from dovetail.ir.primitives import PRIMITIVES
from dovetail.ir.program import Combine
from dovetail.mapping.assemble import Assembler, assembler
from dovetail.mapping.bind import Numbers, allowed_loops, assignments, held_values
from dovetail.mapping.catalogue import Catalogue, Form
from dovetail.mapping.edges import Unsound
from dovetail.mapping.needle import Needle
from dovetail.mapping.site import Site
from dovetail.mapping.unify import Match, Unifier

IDENTITY = "identity"
"""Allow ones and zeros as operands: ``y[i] += x[i]`` as ``y[i] += x[i] * 1``."""
FINITE = "finite"
"""Allow fits that are right only while some operand holds no infinity or NaN; the adapter says which."""
WITH_NEUTRAL = tuple(p.name for p in PRIMITIVES.values() if p.neutral is not None)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A form unified with a place; ``allowed`` says which loops may be bound, ``cost`` what the unification took."""

    allowed: Numbers
    loops: int
    cost: int
    assembler: Assembler


def candidates(known: Catalogue, site: Site, allow: frozenset[str]) -> Iterator[Candidate]:
    """Every form unified with one place."""
    for form in _forms(known, site, IDENTITY in allow):
        yield from unified(form, site, allow)


def unified(form: Form, site: Site, allow: frozenset[str]) -> Iterator[Candidate]:
    """Every way ``form`` is what stands at ``site``."""
    if not result_fits(form, site):
        return
    dtypes = form.needle.instruction.program.dtypes
    unifier = Unifier(dtypes, site.haystack.dtypes, IDENTITY in allow and form.kind == "reduce")
    for match in unifier.matches(form.pattern, site.value):
        if form.kind != "self" or continues(match, site):
            held = held_values(form, match)
            cost = match.cost + (form.kind == "once")
            builder = assembler(form, site, match, held, FINITE in allow)
            yield Candidate(allowed_loops(form, site, held), len(form.needle.loops), cost, builder)


def outcomes(candidate: Candidate, depth: int) -> Iterator[tuple[Needle, Fit | Unsound]]:
    """What each instruction makes of the bindings of ``candidate`` that bring its depth to ``depth``."""
    if depth < candidate.cost:
        return
    for numbers in assignments(candidate.allowed, candidate.loops, depth - candidate.cost):
        yield from candidate.assembler.fits(numbers)


def stands_at(form: Form, site: Site) -> bool:
    """Whether ``form`` is of a kind for ``site``; a copy or a constant is found only where nothing is computed."""
    kind = f"reduce {form.needle.combine.value}" if form.kind == "reduce" else form.kind
    if kind not in site.kinds:
        return False
    return form.kind != "set" or bool(form.pattern.args) or form.pattern.root == site.value.root


def result_fits(form: Form, site: Site) -> bool:
    """Whether what the instruction computes can be stored where the program wants it."""
    have = form.needle.result.dtype
    if site.result is None:
        return have == site.value.dtype
    want = site.haystack.dtypes[site.result.tensor]
    if site.haystack.statement.combine is not Combine.SET:
        return have == DTYPES[want.accumulator]
    return have in (want, site.value.dtype)


def _forms(known: Catalogue, site: Site, identity: bool) -> Iterator[Form]:
    dtype = site.value.dtype.name
    for kind in site.kinds:
        roots = [site.value.root]
        if kind.startswith("reduce"):
            roots += ["read"] if site.value.root != "read" else []
            roots += [root for root in WITH_NEUTRAL if identity and root != site.value.root]
        for root in roots:
            yield from known.forms.get((kind, root, dtype), ())


def continues(match: Match, site: Site) -> bool:
    """Whether an operand carries the result so far."""
    assert site.result is not None
    return any(value == Read(site.result) for _, value in match.operands)
