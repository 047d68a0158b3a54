"""Why an instruction does not fit a statement: the smallest reason, where it lies, and the cheapest change.

Reasons are tried from the nearest to a fit outwards; an instruction's siblings (one table of a target file) give one
misfit together, that of the nearest of them:

    depth       it would fit with more transformations than the search allows
    edges       points that are not there would contribute
    identity    it would fit if ones or zeros were allowed as an operand
    dtype       it would fit in other dtypes
    combine     the values agree, the ``op=`` does not
    refusal     mapping cannot bind such an instruction
    operation   it computes something else
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from dovetail.base.dtypes import DType, Kind
from dovetail.base.limits import Limits
from dovetail.ir.expr import Literal, Read
from dovetail.ir.fit import Fit, Misfit
from dovetail.ir.program import Combine, Statement
from dovetail.mapping.candidates import IDENTITY, continues, outcomes, stands_at, unified
from dovetail.mapping.catalogue import Catalogue, Form, forms_of
from dovetail.mapping.edges import Unsound
from dovetail.mapping.needle import Needle
from dovetail.mapping.site import Site
from dovetail.mapping.unify import Match, Unifier
from dovetail.mapping.words import does, takes, verb

DEPTH, EDGES, WITH_IDENTITY, DTYPE, COMBINE, REFUSAL, OPERATION = range(7)


@dataclass(frozen=True, slots=True)
class Reason:
    """``rank`` orders reasons from near to far; ``where`` is the field of the instruction's table."""

    rank: int
    text: str
    where: str = "computes"
    repair: str = ""


def explain(
    known: Catalogue, places: tuple[Site, ...], fits: tuple[Fit, ...], limits: Limits, allow: frozenset[str]
) -> tuple[Misfit, ...]:
    """One misfit for each statement and each family of instructions that fits nowhere in it."""
    families = _families(known.needles)
    done = {(fit.statement, fit.instruction) for fit in fits}
    found: list[Misfit] = []
    for number, group in groupby(places, key=lambda site: site.haystack.number):
        sites = tuple(group)
        rows = []
        for order, (name, members) in enumerate(families):
            if any((number, needle.instruction.name) in done for needle in members):
                continue
            reason, needle = min(_reasons(members, sites, limits, allow), key=lambda pair: pair[0].rank)
            rows.append((reason.rank, order, _misfit(name, needle, reason, sites[0])))
        found += [misfit for _, _, misfit in sorted(rows, key=lambda row: row[:2])]
    return tuple(found)


def _families(needles: tuple[Needle, ...]) -> list[tuple[str, tuple[Needle, ...]]]:
    """Instructions that come from one table, under the name of that table."""
    groups: dict[str, list[Needle]] = {}
    for needle in needles:
        groups.setdefault(needle.instruction.source or needle.instruction.name, []).append(needle)
    named = []
    for members in groups.values():
        name = members[0].instruction.name
        named.append((name.split(".")[0] if len(members) > 1 else name, tuple(members)))
    return named


def _misfit(name: str, needle: Needle, reason: Reason, site: Site) -> Misfit:
    statement = site.haystack.statement
    line = f"line {statement.line}: {statement}" if statement.line else str(statement)
    source = needle.instruction.source or needle.instruction.name
    return Misfit(site.haystack.number, name, reason.text, line, f"{source}, {reason.where}", reason.repair)


def _reasons(
    members: tuple[Needle, ...], sites: tuple[Site, ...], limits: Limits, allow: frozenset[str]
) -> Iterator[tuple[Reason, Needle]]:
    """Reasons of one family; siblings that differ in extents only are asked once."""
    asked: set[tuple[object, ...]] = set()
    for needle in members:
        dtypes = tuple(t.dtype.name for t in needle.instruction.program.tensors)
        if (dtypes, needle.statement.value) not in asked:
            asked.add((dtypes, needle.statement.value))
            yield _reason(needle, sites, limits, allow), needle


def _reason(needle: Needle, sites: tuple[Site, ...], limits: Limits, allow: frozenset[str]) -> Reason:
    if needle.refusal:
        return Reason(REFUSAL, needle.refusal)
    pairs = [(form, site) for form in forms_of((needle,)) for site in sites if stands_at(form, site)]
    tests = (
        lambda form, site: _nearly(form, site, limits, allow),
        lambda form, site: _with_identity(form, site, allow),
        _in_other_dtypes,
    )
    for test in tests:
        for form, site in pairs:
            reason = test(form, site)
            if reason is not None:
                return reason
    return _other_combine(needle, sites[0]) or _other_operation(needle, sites)


def _nearly(form: Form, site: Site, limits: Limits, allow: frozenset[str]) -> Reason | None:
    """It unifies, and then something small stands in the way."""
    for candidate in unified(form, site, allow):
        if candidate.cost > limits.mapping_depth:
            count = "one value" if candidate.cost == 1 else f"{candidate.cost} values"
            needs = f"needs {count} put into temporaries, the search allows {limits.mapping_depth or 'none'}"
            return Reason(DEPTH, needs, repair=f"search deeper (dovetail map --depth {candidate.cost})")
        for depth in range(candidate.cost, limits.mapping_depth + 1):
            for _, outcome in outcomes(candidate, depth):
                if isinstance(outcome, Unsound):
                    return _edges(form, outcome)
    return None


def _edges(form: Form, outcome: Unsound) -> Reason:
    if outcome.blocking:
        text = f"{outcome.cause}: no filling is neutral while '{outcome.blocking}' may hold infinity or NaN"
        repair = f"promise that '{outcome.blocking}' is finite (dovetail map --allow finite)"
        return Reason(EDGES, text, repair=repair)
    repair = "pad the program's tensors so that every extent is a multiple of the instruction's"
    return Reason(EDGES, f"{outcome.cause}: no filling makes {form.needle.value.expr} neutral", repair=repair)


def _with_identity(form: Form, site: Site, allow: frozenset[str]) -> Reason | None:
    if IDENTITY in allow or form.kind != "reduce":
        return None
    for candidate in unified(form, site, allow | {IDENTITY}):
        match = candidate.assembler.match
        ones = [str(v) for _, v in match.operands if isinstance(v, Literal)]
        number = "ones" if ones and float(ones[0]) == 1 else "zeros"
        function = form.pattern.root
        text = f"{does(form.pattern)}, the program {takes(site.value)}"
        return Reason(
            WITH_IDENTITY, text, repair=f"{verb(function)} a tensor of {number} (dovetail map --allow identity)"
        )
    return None


def _in_other_dtypes(form: Form, site: Site) -> Reason | None:
    needle = form.needle
    dtypes = needle.instruction.program.dtypes
    loose = Unifier(dtypes, site.haystack.dtypes, loose=True)
    for match in loose.matches(form.pattern, site.value):
        if form.kind == "self" and not continues(match, site):
            continue
        return _operand_dtype(needle, match, site) or _result_dtype(needle, site)
    return None


def _operand_dtype(needle: Needle, match: Match, site: Site) -> Reason | None:
    """An operand that cannot hold what the program has there."""
    strict = Unifier(needle.instruction.program.dtypes, site.haystack.dtypes)
    values = {node.expr: node for node in site.value.walk()}
    for name, value in match.operands:
        node = values.get(value)
        if node is None or strict.holds(name, node):
            continue
        want = needle.slot(name).dtype
        if isinstance(value, Read):
            tensor = value.access.tensor
            text = f"takes {want} for '{name}', '{tensor}' is {site.haystack.dtypes[tensor]}"
            return Reason(DTYPE, text, f"operands.{name}", _declare(tensor, want))
        return Reason(DTYPE, f"takes {want} for '{name}', {value} is {node.dtype}", f"operands.{name}")
    return None


def _result_dtype(needle: Needle, site: Site) -> Reason:
    statement = site.haystack.statement
    tensor = statement.out.tensor
    have = site.haystack.dtypes[tensor]
    want = needle.result.dtype
    if needle.value.dtype != site.value.dtype:
        text = f"computes in {needle.value.dtype}, the program in {site.value.dtype}"
    else:
        text = f"gives {want}, '{tensor}' is {have}"
    return Reason(DTYPE, text, f"operands.{needle.result.name}", _declare(tensor, want))


def _declare(tensor: str, want: DType) -> str:
    """Truth values are no cheaper spelling of numbers: no such advice."""
    return "" if want.kind is Kind.BOOL else f"declare '{tensor}' as {want}"


def _other_combine(needle: Needle, site: Site) -> Reason | None:
    """The values agree, but they are joined otherwise."""
    want = site.haystack.statement.combine
    if needle.combine in (want, Combine.SET) or want is Combine.SET:
        return None
    loose = Unifier(needle.instruction.program.dtypes, site.haystack.dtypes, loose=True)
    if needle.value.root == "read" or not loose.matches(needle.value, site.haystack.value):
        return None
    text = f"joins {needle.value.expr} with {needle.combine.value}, the program with {want.value}"
    return Reason(COMBINE, text, repair=f"give the target an instruction that computes with {want.value}")


def _other_operation(needle: Needle, sites: tuple[Site, ...]) -> Reason:
    value = sites[0].haystack.value
    does_what = _computes(sites[0].haystack.statement)
    if needle.instruction.is_copy:
        return Reason(OPERATION, f"moves elements, the program {does_what}")
    if not needle.value.args and needle.combine is Combine.SET:
        return Reason(OPERATION, f"writes {needle.value.expr} everywhere, the program {does_what}")
    present = {node.root for node in value.walk()}
    missing = [node.root for node in needle.value.walk() if node.args and node.root not in present]
    if missing:
        return Reason(OPERATION, f"{does(needle.value)}, the program has no {missing[0]}")
    return Reason(OPERATION, f"{_computes(needle.statement)}, the program {does_what}")


def _computes(statement: Statement) -> str:
    text = str(statement.value)
    short = text if len(text) <= 60 else f"{text[:57]}..."
    return f"computes {short}" if statement.combine is Combine.SET else f"joins {short} with {statement.combine.value}"
