"""``certify``: a compiled kernel -> its certificate. Nothing is returned for a kernel that fails a check."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256

from dovetail.base.errors import CertificateError
from dovetail.certify.cover import cover_checks
from dovetail.certify.emitted import emitted_check, is_affordable
from dovetail.certify.exact import exact_check
from dovetail.certify.fits import fit_checks
from dovetail.certify.shrink import Instance, calls_estimated, reduced
from dovetail.certify.sizes import size_choices
from dovetail.ir.certificate import Certificate, Check
from dovetail.ir.nest import Nest
from dovetail.ir.plan import Plan
from dovetail.ir.program import Program
from dovetail.ir.work import work
from dovetail.runtime.kernel import Kernel
from dovetail.schedule.lower.build import build_nest, narrowed
from dovetail.targets.model import Target

WHOLE = "the whole program"
SMALL_OPERATIONS = 100_000
"""Programs up to this size are to be compiled in no time."""
SMALL_CALLS, CALLS = 600, 5000
"""Instructions to evaluate for small and for other programs; about twenty microseconds each."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What is certified: ``flat`` is ``program`` as ``plan`` and ``nest`` were made for it.

    ``kernel`` gives the code, which may still be in the making while the checks that do not run it are done;
    ``build`` compiles another program with its plan in the same way, without a certificate.
    """

    program: Program
    flat: Program
    plan: Plan
    nest: Nest
    target: Target
    threads: int
    kernel: Callable[[], Kernel]
    build: Callable[[Program, Plan], Kernel]


def certify(subject: Subject) -> Certificate:
    """All checks, or a CertificateError that says which one failed. Code is not run once a check before it failed."""
    checks: list[Check] = []
    for check in _checks(subject):
        checks.append(check)
        if not check.passed:
            raise CertificateError(
                f"the compiled code is not trusted: {check.claim} was not confirmed",
                where=str(subject.program),
                why=f"{check.method}: {check.detail}",
                hint="another plan, and please report this program: it is a mistake in the compiler or its target file",
            )
    program, plan = _digest(str(subject.program)), _digest(subject.plan.to_json())
    return Certificate(program, subject.target.digest, plan, tuple(checks))


def joined(program: str, main: Certificate, ahead: Certificate) -> Certificate:
    """The certificate of a program whose constants are partly made by another one, from both."""
    before = tuple(replace(check, claim=f"{check.claim}, ahead of all calls") for check in ahead.checks)
    return Certificate(_digest(program), main.target, main.plan, (*main.checks, *before), main.kept and ahead.kept)


def _checks(subject: Subject) -> Iterator[Check]:
    flat, plan, target = subject.flat, subject.plan, subject.target
    choices = size_choices(flat, plan)
    small = yield from _static_checks(flat, plan, subject.nest, target)
    for case in plan.cases:
        part = narrowed(flat, case)
        yield from _static_checks(part, case.plan, build_nest(part, case.plan, target), target)
        for value in (case.most, max(1, case.most // 2)):
            choice = {**choices[0], case.size: value}
            choices += () if choice in choices else (choice,)
    lanes = max((leaf.width for leaf in plan.leaves()), default=1)
    affordable = tuple(c for c in choices if is_affordable(subject.program, c, lanes, subject.threads))
    if affordable or small is None:
        yield emitted_check(subject.program, plan, subject.kernel, affordable or choices, WHOLE)
    else:
        few = size_choices(small.program, small.plan)
        code = partial(subject.build, small.program, small.plan)
        yield emitted_check(small.program, small.plan, code, few, _note(small))


def _static_checks(flat: Program, plan: Plan, nest: Nest, target: Target) -> Generator[Check, None, Instance | None]:
    """The checks that run no code, and the small instance they used."""
    yield from cover_checks(flat, plan)
    yield from fit_checks(flat, plan, nest, target)
    choices = size_choices(flat, plan)
    small = _instance(flat, plan, choices[0])
    if small is None:
        yield exact_check(flat, plan, nest, target, choices, WHOLE)
    else:
        few = size_choices(small.program, small.plan)
        yield exact_check(
            small.program, small.plan, build_nest(small.program, small.plan, target), target, few, _note(small)
        )
    return small


def _instance(program: Program, plan: Plan, sizes: dict[str, int]) -> Instance | None:
    """A small instance to evaluate; None when the program is small enough as it is, or does not get smaller."""
    most = SMALL_CALLS if work(program, sizes).operations <= SMALL_OPERATIONS else CALLS
    calls = calls_estimated(program, plan, sizes)
    small = reduced(program, plan, sizes, most) if calls > most else None
    return small if small is not None and small.calls < calls else None


def _note(small: Instance) -> str:
    """The loops of a small instance, for a person."""
    loops = "; ".join(", ".join(map(str, s.all_loops)) for s in small.program.statements[:3])
    more = "; ..." if len(small.program.statements) > 3 else ""
    return f"a small instance ({loops}{more})"


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:32]
