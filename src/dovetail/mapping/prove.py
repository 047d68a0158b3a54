"""Certificates, part one: that a fit computes what the program says, shown for all points at once.

Four claims, none of which trusts the search that found the fit:
    value     the instruction's value over the bound operands is the program's value
    cover     calls reach every point of the statement exactly once (isl)
    elements  within a call, one element to the instruction is one to the program, results also conversely (isl)
    edges     points that are not there reach no live element, or contribute the neutral element (isl, evaluation)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from time import perf_counter

from dovetail.ir.certificate import Check
from dovetail.ir.expr import Expr, Literal, Read, names
from dovetail.ir.fit import Fit
from dovetail.ir.index import Access
from dovetail.ir.primitives import PRIMITIVES
from dovetail.ir.program import Combine, Program
from dovetail.mapping.bind import Binding, Held, elements_agree, plainly_agree, tiling_of
from dovetail.mapping.catalogue import Form, forms_of
from dovetail.mapping.edges import Unsound, guard_adapters, pad_adapters, padded_loops
from dovetail.mapping.isl_text import isl_texts
from dovetail.mapping.needle import Needle, Slot, read_needle
from dovetail.mapping.site import Haystack, Site, haystacks, sites
from dovetail.mapping.typed import Typed
from dovetail.poly.tiling import Group, Tiling, covers_once, separate
from dovetail.targets.model import Instruction


@dataclass(frozen=True, slots=True)
class Case:
    """A fit put back into the terms of the search."""

    fit: Fit
    form: Form
    site: Site
    held: tuple[Held, ...]
    binding: Binding

    @property
    def needle(self) -> Needle:
        return self.form.needle

    @property
    def finite(self) -> bool:
        return any(adapter.kind == "finite" for adapter in self.fit.adapters)


def prove(program: Program, fit: Fit, instruction: Instruction) -> tuple[Check, ...]:
    """The claims about ``fit`` of ``instruction`` in ``program``, each with its outcome."""
    case = _case(program, fit, instruction)
    if case is None:
        problem = f"{fit.instruction} is not a form that statement {fit.statement} has a place for"
        return (Check("the instruction has a place in the program", "unification", problem, False),)
    claims: tuple[tuple[str, str, Callable[[Case], tuple[bool, str]]], ...] = (
        ("the instruction computes the program's value", "unification", _value),
        ("each contribution reaches its element exactly once", "isl", _cover),
        ("elements of a call are those of the program", "isl", _elements),
        ("points that are not there change nothing", "isl", _edges),
    )
    checks = []
    for claim, method, test in claims:
        started = perf_counter()
        passed, detail = test(case)
        checks.append(Check(claim, method, detail, passed, perf_counter() - started))
    return tuple(checks)


def _case(program: Program, fit: Fit, instruction: Instruction) -> Case | None:
    """``fit`` with its form and place; None when there is no such place."""
    haystack = next(h for h in haystacks(program) if h.number == fit.statement)
    needle = read_needle(instruction, 0)
    known = {loop.needle: loop.loops for loop in fit.loops}
    bindable = {loop.name for loop in haystack.loops}
    used = [name for loops in known.values() for name in loops]
    if needle.refusal or set(known) != {loop.name for loop in needle.loops}:
        return None
    if len(used) != len(set(used)) or not bindable.issuperset(used):
        return None
    kinds = _kinds(fit, haystack, needle)
    for site in sites(haystack):
        for form in forms_of((needle,)):
            if site.node == fit.node and form.kind in kinds and kinds[form.kind] in site.kinds:
                held = tuple(_held(needle, fit))
                return Case(fit, form, site, held, tuple(known[loop.name] for loop in needle.loops))
    return None


def _kinds(fit: Fit, haystack: Haystack, needle: Needle) -> dict[str, str]:
    """Kinds of forms the fit can be, with the kinds of places they stand in."""
    combine = haystack.statement.combine
    if needle.combine is Combine.SET:
        if fit.node is not None:
            return {"node": "node"}
        return {"set": "set"} if combine is Combine.SET else {"self": "self"}
    if fit.node is None and combine is not Combine.SET:
        return {"reduce": f"reduce {combine.value}"} if needle.combine is combine else {}
    return {"chain": "chain"}


def _held(needle: Needle, fit: Fit) -> Iterator[Held]:
    for operand in fit.operands:
        if not isinstance(operand.value, Access):
            yield Held(needle.slot(operand.needle), operand.value, names(operand.value))


# -- value


def _value(case: Case) -> tuple[bool, str]:
    bound = {h.slot.name: h.value for h in case.held if not isinstance(h.value, Access)}
    nodes = {node.expr: node for node in case.site.value.walk()}
    result = next((o.value for o in case.fit.operands if isinstance(o.value, Access)), None)
    if result != case.site.result or {slot.name for slot in case.needle.slots} - set(bound):
        return False, "an operand is not bound, or the result is another tensor"
    ours = _text(case.form.pattern, bound, nodes)
    theirs = _text(case.site.value, {}, nodes)
    return ours == theirs, theirs if ours == theirs else f"{ours} is not {theirs}"


def _text(node: Typed, bound: Mapping[str, Expr], nodes: Mapping[Expr, Typed]) -> str:
    """A spelling that does not depend on the order of commutative arguments or on inserted neutral elements."""
    if isinstance(node.expr, Literal):
        return repr(float(node.expr.value))
    if isinstance(node.expr, Read) and node.expr.access.tensor in bound:
        value = bound[node.expr.access.tensor]
        known = nodes.get(value, Typed(value, node.dtype, "literal"))
        return _text(known, {}, nodes)
    if not node.args:
        return str(node.expr)
    row = PRIMITIVES.get(node.root)
    args = [_text(arg, bound, nodes) for arg in node.args]
    if row is not None and row.commutative:
        neutral = None if row.neutral is None else repr(float(row.neutral))
        args = sorted(arg for arg in args if arg != neutral)
        if len(args) == 1:
            return args[0]
    return f"{node.root}({', '.join(args)})"


# -- cover


def _cover(case: Case) -> tuple[bool, str]:
    tiling, _ = tiling_of(case.needle, case.site.haystack, case.binding)
    shape = " x ".join(str(group.size) for group in tiling.groups) or "single points"
    if tiling.is_affine:
        return covers_once(tiling), f"tiles of {shape}"
    return covers_once(_flattened(tiling)), f"tiles of {shape}; fused loops counted as one"


def _flattened(tiling: Tiling) -> Tiling:
    """Fused loops of run-time extents as one loop each: counting through them in order meets every point once."""
    extents = list(tiling.extents)
    sizes = list(tiling.sizes)
    groups = []
    for number, group in enumerate(tiling.groups):
        if len(group.loops) > 1:
            extents[group.loops[0]] = f"f{number}"
            sizes.append((f"f{number}", 0, 2**62))
            for loop in group.loops[1:]:
                extents[loop] = "1"
        groups.append(Group(group.loops[:1], group.size))
    return Tiling(tuple(extents), tuple(groups), tuple(sizes))


# -- elements


def _elements(case: Case) -> tuple[bool, str]:
    needle, site = case.needle, case.site
    written = None if site.result is None else site.result.names()
    for loop, loops in zip(needle.loops, case.binding, strict=True):
        reduced = loop.name in needle.reduced
        if loops and reduced and (case.form.kind != "reduce" or written is None or written & set(loops)):
            return False, f"{loop.name} sums over {', '.join(loops)}, the program does not"
        for h in case.held:
            if loop.name not in h.slot.loops and h.varies & set(loops):
                return False, f"'{h.slot.name}' is one element along {loop.name}, {h.value} is not"
    plain = plainly_agree(needle, site, case.held, case.binding)
    agree = plain or elements_agree(needle, site, case.held, case.binding)
    return agree, "each loop is told by an index of its own" if plain else "by comparing all pairs of points"


# -- edges


def _edges(case: Case) -> tuple[bool, str]:
    padded = padded_loops(case.needle, case.binding, case.site.haystack)
    answers = [pad_adapters(case.form, padded, case.finite)]
    if case.site.haystack.statement.where:
        answers.append(guard_adapters(case.form, case.site, case.held, case.binding, case.finite))
    for answer in answers:
        if isinstance(answer, Unsound):
            return False, f"{answer.cause} contributes"
        missing = [str(adapter) for adapter in answer if adapter not in case.fit.adapters]
        if missing:
            return False, f"the fit lacks: {', '.join(missing)}"
    for number in padded:
        for slot in _kept_apart(case, number):
            if not _separate(case, slot, number):
                return False, f"padding of {case.needle.loops[number].name} meets live elements of '{slot.name}'"
    kinds = sorted({a.kind for a in case.fit.adapters} & {"pad", "zero-fill", "mask", "finite"})
    return True, ", ".join(kinds) or "every call is full"


def _kept_apart(case: Case, number: int) -> list[Slot]:
    """Slots whose padded elements must not be live ones: results, or the operands a reduction fills."""
    loop = case.needle.loops[number].name
    if loop in case.needle.result.loops:
        return [case.needle.result]
    filled = [a.operand for a in case.fit.adapters if a.kind == "pad" and f"{loop} with" in a.detail]
    return [slot for slot in case.needle.slots if slot.name in filled]


def _separate(case: Case, slot: Slot, number: int) -> bool:
    """Only the loops of ``slot`` matter: the others give every element a twin elsewhere, live or not as it is."""
    tiling, _ = tiling_of(case.needle, case.site.haystack, case.binding)
    tiling = tiling if tiling.is_affine else _flattened(tiling)
    chosen = [n for n, loop in enumerate(case.needle.loops) if loop.name in slot.loops or n == number]
    order = {loop: place for place, loop in enumerate(loop for n in chosen for loop in tiling.groups[n].loops)}
    groups = tuple(Group(tuple(order[loop] for loop in tiling.groups[n].loops), tiling.groups[n].size) for n in chosen)
    small = Tiling(tuple(tiling.extents[loop] for loop in order), groups, tiling.sizes)
    coordinates = {case.needle.loops[n].name: f"u{place}" for place, n in enumerate(chosen)}
    inside = isl_texts(slot.access.indices, coordinates)
    return inside is not None and separate(small, inside, chosen.index(number))
