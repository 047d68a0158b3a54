"""Why a kernel for a simulated machine may be trusted.

cover      tiles reach every point once, in an order that keeps the program's meaning           by isl, for all points
memories   buffers lie within their memories, no two at the same place                          by the timed run
agreement  program and nest agree in every element, on the whole program or a small instance    by functional simulation

The functional simulation runs every instruction's own program on memories with addresses; reading what was never
written, touching what a copy has under way, and leaving a buffer are errors there.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from time import perf_counter

from dovetail.base.errors import CertificateError, IndexRangeError, PlanError, SimulationError
from dovetail.certify.cover import cover_checks
from dovetail.certify.shrink import Instance, reduced
from dovetail.compare import Comparison, compare
from dovetail.ir.certificate import Certificate, Check
from dovetail.ir.evaluate import evaluate
from dovetail.ir.fill import fill, sums_are_exact
from dovetail.ir.nest import Nest
from dovetail.ir.plan import Plan
from dovetail.ir.program import Program
from dovetail.ir.work import work
from dovetail.sim.functional import simulate
from dovetail.sim.report import Timing
from dovetail.sim.timed import simulate_time
from dovetail.simulated.fewer_steps import with_fewer_steps
from dovetail.simulated.lowered import lowered
from dovetail.targets.model import Target

MOST_CALLS = 2_000
"""Of a program that is run whole; about a quarter of a millisecond each."""
MOST_OPERATIONS = 1 << 26
SMALL_OPERATIONS = 1 << 24
"""Of a small instance, where one can be had."""
FEW_STEPS = 3
"""Of a sequence: the first, one that finds what another left, and one that finds what that left."""
LONGEST_TILE = 1024
"""Tiles of one instruction up to this long stay as they are in a small instance."""


def certify(program: Program, plan: Plan, target: Target, nest: Nest, machine: Target, timing: Timing) -> Certificate:
    """All checks, or a CertificateError that says which one failed."""
    checks: list[Check] = []
    for check in _checks(program, plan, target, nest, machine, timing):
        checks.append(check)
        if not check.passed:
            raise CertificateError(
                f"the nest for '{target.name}' is not trusted: {check.claim} was not confirmed",
                where=str(program),
                why=f"{check.method}: {check.detail}",
                hint="another plan, and please report this program: it is a mistake in the compiler or its target file",
            )
    return Certificate(_digest(str(program)), target.digest, _digest(plan.to_json()), tuple(checks))


def _checks(
    program: Program, plan: Plan, target: Target, nest: Nest, machine: Target, timing: Timing
) -> Iterator[Check]:
    yield from cover_checks(program, plan)
    yield _memory_check(target, timing)
    note = "the whole program"
    fewer = _fewer_steps(program, plan, target) if _is_large(program, timing) else None
    if fewer is not None:
        note = f"{FEW_STEPS} steps"
        program, plan, machine, nest = fewer
        timing = simulate_time(nest, machine)
    small = _instance(program, plan, timing)
    if small is not None:
        found = _agreement_of(small, target)
        if found is not None:
            yield found
            return
    yield _agreement(program, plan, nest, machine, note)


def _memory_check(target: Target, timing: Timing) -> Check:
    """The timed run gave every buffer its place; it stops where a memory is too small."""
    held = [(m.name, m.peak_bytes, target.memory(m.name).bytes) for m in timing.memories if m.peak_bytes]
    detail = ", ".join(f"at most {peak:,} of {size:,} bytes of {name}" for name, peak, size in held)
    passed = all(peak <= size for _, peak, size in held)
    return Check("buffers lie within their memories, each at a place of its own", "timed run", detail, passed)


def _instance(program: Program, plan: Plan, timing: Timing) -> Instance | None:
    """A small instance; None when the program is small enough as it is, or does not get smaller."""
    if not _is_large(program, timing):
        return None
    return reduced(program, plan, {}, SMALL_OPERATIONS, LONGEST_TILE)


def _is_large(program: Program, timing: Timing) -> bool:
    calls = sum(i.calls for i in timing.instructions)
    return calls > MOST_CALLS or work(program, {}).operations > MOST_OPERATIONS


def _fewer_steps(program: Program, plan: Plan, target: Target) -> tuple[Program, Plan, Target, Nest] | None:
    """The program with a few steps, where it has more; None where there is no nest of it."""
    fewer = with_fewer_steps(program, plan, FEW_STEPS)
    if fewer is None:
        return None
    found, plans = fewer
    for shorter in plans:
        built = _built(found, shorter, target)
        if built is not None:
            return found, shorter, *built
    return None


def _built(program: Program, plan: Plan, target: Target) -> tuple[Target, Nest] | None:
    """None where a tile became too small for its instruction."""
    try:
        return lowered(program, plan, target)
    except PlanError:
        return None


def _agreement_of(small: Instance, target: Target) -> Check | None:
    """None where the small instance has no nest."""
    found = _built(small.program, small.plan, target)
    if found is None:
        return None
    machine, nest = found
    loops = "; ".join(", ".join(map(str, s.all_loops)) for s in small.program.statements[:3])
    more = "; ..." if len(small.program.statements) > 3 else ""
    return _agreement(small.program, small.plan, nest, machine, f"a small instance ({loops}{more})")


def _agreement(program: Program, plan: Plan, nest: Nest, machine: Target, note: str) -> Check:
    claim, method, begun = "program and nest agree", "functional simulation", perf_counter()
    arrays = fill(program, 1, {})
    try:
        results = simulate(nest, machine, arrays).arrays
        wanted = evaluate(program, arrays)
    except (SimulationError, IndexRangeError) as problem:
        return Check(claim, method, f"{problem} (in {note})", False, perf_counter() - begun)
    found = compare(program, plan, {}, results, wanted, whole=sums_are_exact(program, {}, 1))
    detail = _detail(found, note)
    return Check(claim, method, detail, found.agrees, perf_counter() - begun)


def _detail(found: Comparison, note: str) -> str:
    wrong = next((c for c in found.classes if c.wrong), None)
    if wrong is not None:
        return f"{wrong.tensor}{wrong.first}, {wrong.name}, in {note}"
    allowed = f", within {found.bound:.0e} because of {found.inexact}" if found.inexact else ""
    return f"{sum(c.elements for c in found.classes)} elements of {note}{allowed}"


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:32]
