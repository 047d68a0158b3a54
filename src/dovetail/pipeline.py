"""The compiler on one screen: text -> program -> fits -> plan -> nest -> code -> kernel."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from dovetail.algorithm import DIRECT, Algorithm, Wishes, chosen, explored
from dovetail.base.errors import CallError, TargetError
from dovetail.base.limits import DEFAULT_EXPLORE_LIMITS, DEFAULT_LIMITS, Limits
from dovetail.certify.certificate import SMALL_OPERATIONS, Subject, certify, joined
from dovetail.codegen.compile import emit_object
from dovetail.codegen.lower import lower
from dovetail.codegen.shares import status_bytes
from dovetail.compare import Array, Comparison, compare, relaxation_of
from dovetail.explain import explain
from dovetail.ir.bind import bind_sizes
from dovetail.ir.certificate import Certificate
from dovetail.ir.evaluate import evaluate
from dovetail.ir.fill import fill
from dovetail.ir.fit import MappingResult
from dovetail.ir.functional.term import Definition
from dovetail.ir.nest import Nest
from dovetail.ir.parse import parse
from dovetail.ir.plan import Plan
from dovetail.ir.program import Program, Role
from dovetail.ir.verify import verify as verify_program
from dovetail.ir.work import work as work_in
from dovetail.mapping.find import find_mappings
from dovetail.mapping.tiles import tile_fits
from dovetail.runtime import pool
from dovetail.runtime.beside import symbols_beside
from dovetail.runtime.cache import Cache, open_cache
from dovetail.runtime.jit import load_object
from dovetail.runtime.kernel import Code, Kernel
from dovetail.schedule.ahead import planned_part, split_ahead
from dovetail.schedule.collapse import collapse
from dovetail.schedule.default import default_plan
from dovetail.schedule.estimate import arithmetic_cycles, estimate_cycles
from dovetail.schedule.lower.build import build_nest
from dovetail.stored import Shelf, Stored
from dovetail.targets.host import missing_features
from dovetail.targets.load import load_target
from dovetail.targets.model import Target

if TYPE_CHECKING:
    from dovetail.rewrite.explore import Exploration
    from dovetail.rewrite.rule import Rule
    from dovetail.simulated.kernel import SimulatedKernel

T = TypeVar("T")
TURN_SECONDS = 0.0002
UNCHECKED = Certificate("", "", "", ())


def program(text: str, name: str = "program", limits: Limits = DEFAULT_LIMITS) -> Program:
    """The program ``text`` describes, parsed and verified."""
    parsed = parse(text, name, limits)
    verify_program(parsed, limits)
    return parsed


def definition(text: str, name: str = "definition") -> Definition:
    """The term that ``text`` defines, parsed and type-checked: ``def f(x: f32[8]) -> y = map(exp, x)``."""
    parsed: Definition = import_module("dovetail.ir.functional.text").parse_definition(text, name)
    import_module("dovetail.ir.functional.infer").check(parsed)
    return parsed


def mappings(
    program: Program,
    target: str | Path | Target = "host",
    limits: Limits = DEFAULT_LIMITS,
    allow: frozenset[str] = frozenset(),
) -> MappingResult:
    """Every way the instructions of ``target`` fit ``program``, and why the others do not.

    ``allow`` widens the search: "identity" multiplies by ones, "finite" takes all values to be finite.
    """
    return find_mappings(program, _target(target), limits, allow=allow)


def compile(
    program: Program | Definition,
    target: str | Path | Target = "host",
    threads: int | None = None,
    constants: Mapping[str, object] | None = None,
    plan: Plan | None = None,
    cache: bool = True,
    relaxed: bool = False,
    rules: tuple[Rule, ...] = (),
    algorithm: str = "",
) -> Kernel | SimulatedKernel:
    """``program`` as a kernel: a callable over arrays, certified, or taken from the cache with its certificate.

    Without a ``plan`` the algorithm is chosen, too: what rules make of the convolutions in it, and of anything by
    ``rules`` of your own, is taken where it is estimated to be faster. ``relaxed`` allows rules that round otherwise.
    ``algorithm`` is the name of the rule to take instead, or "direct".

    A target without an [llvm] table is simulated: its kernels run on the simulator and count cycles. The instructions
    of a definition's operations are then those that rules derive, where none of these options says otherwise.
    """
    return compile_chosen(program, target, threads, Wishes(relaxed, rules, algorithm), constants, plan, cache)[0]


def compile_chosen(
    program: Program | Definition,
    target: str | Path | Target,
    threads: int | None,
    wishes: Wishes,
    constants: Mapping[str, object] | None = None,
    plan: Plan | None = None,
    cache: bool = True,
) -> tuple[Kernel | SimulatedKernel, Algorithm]:
    """``compile``, and the algorithm that the kernel computes."""
    machine = _target(target)
    if isinstance(program, Definition):
        if machine.llvm is None and plan is None and wishes == Wishes():
            derived = _derived(program, machine, constants)
            return derived, Algorithm(derived.program)
        wishes = replace(wishes, given=program)
        program = _normalised(program)
    store = open_cache() if cache else None
    if machine.llvm is None:
        form = _algorithm(program, machine, 1, store, wishes, plan)
        return _simulated(form, machine, constants, plan), form
    threads = _threads(threads, machine)
    _check(program, machine, constants or {})
    with _undisturbed:
        begun = time.perf_counter()
        form = _algorithm(program, machine, threads, store, wishes, plan)
        spent = time.perf_counter() - begun
        kernel = _kernel(form.program, machine, threads, store, plan)
        if form.costs or not form.is_direct:
            kernel.seconds["algorithm"] = spent
            kernel = _in_form(program, kernel, form)
    if constants:
        begun = time.perf_counter()
        kernel.bind(constants)
        kernel.seconds["constants"] = time.perf_counter() - begun
    return kernel, form


def choose(
    program: Program | Definition,
    target: str | Path | Target,
    threads: int | None,
    wishes: Wishes,
    plan: Plan | None = None,
    cache: bool = True,
) -> Algorithm:
    """The algorithm that ``compile`` takes for ``program``: itself, or what a rule makes of it."""
    machine = _target(target)
    if isinstance(program, Definition):
        wishes = replace(wishes, given=program)
        program = _normalised(program)
    count = 1 if machine.llvm is None else _threads(threads, machine)
    store = open_cache() if cache else None
    return _algorithm(program, machine, count, store, wishes, plan)


def explore(
    program: Program | Definition,
    target: str | Path | Target = "host",
    threads: int | None = None,
    seconds: float = DEFAULT_EXPLORE_LIMITS.seconds,
    relaxed: bool = False,
    rules: tuple[Rule, ...] = (),
) -> Exploration:
    """The fastest definition that rules make of ``program``, all of them in any order, within so many ``seconds``.

    Needs the extra ``dovetail[explore]``. What is fast is the scheduler's estimate for the target; ``best`` of the
    result can be compiled, and ``derivation`` says how it follows.
    """
    machine = _target(target)
    count = 1 if machine.llvm is None else _threads(threads, machine)
    return explored(program, Wishes(relaxed, rules), _estimate(machine, count), seconds)


def _algorithm(
    program: Program, target: Target, threads: int, store: Cache | None, wishes: Wishes, plan: Plan | None
) -> Algorithm:
    """The form that a plan is of, or the one that is estimated to be the fastest."""
    if plan is not None:
        wishes = replace(wishes, algorithm=plan.form or DIRECT)
    elif target.llvm is not None and _is_small(program) and not (wishes.rules or wishes.algorithm):
        return Algorithm(program)  # not worth a question
    wishes = replace(wishes, finite=target.llvm is None)
    least = None if target.llvm is None else lambda form: arithmetic_cycles(form, target, threads)
    return chosen(program, Shelf(store, program, target), threads, wishes, _estimate(target, threads), least)


def _estimate(target: Target, threads: int) -> Callable[[Program], float]:
    """What a program takes on a target, by the model that its scheduler plans with."""
    if target.llvm is None:
        estimates: Callable[[Program], float] = import_module("dovetail.simulated.estimate").Estimates(target)
        return estimates
    return lambda form: estimate_cycles(form, target, threads, tile_fits(collapse(split_ahead(form).main), target))


def _kernel(program: Program, target: Target, threads: int, store: Cache | None, plan: Plan | None) -> Kernel:
    """``program`` as it is, as a kernel."""
    main = split_ahead(program).main if plan is None else planned_part(program, plan)
    work = _Compilation(main, target, threads, store)
    kernel = work.kernel(plan)
    return kernel if main is program else _with_ahead(program, kernel, work, store)


def _in_form(program: Program, kernel: Kernel, form: Algorithm) -> Kernel:
    """``kernel``, of another form, as one of ``program``."""
    before = kernel.explanation

    def explanation() -> str:
        return "\n\n".join(part for part in (str(form), form.derivation, before()) if part)

    if form.program is not program:
        plan = replace(kernel.plan, form=form.name)
        kernel = replace(kernel, program=program, main=kernel.main or kernel.program, plan=plan)
    kernel.explanation, kernel.algorithm = explanation, form.name
    return kernel


def _with_ahead(program: Program, kernel: Kernel, work: _Compilation, store: Cache | None) -> Kernel:
    """``kernel`` computes ``program`` but for constants that are made of others: with a kernel that makes those."""
    ahead = split_ahead(program).ahead
    assert ahead is not None
    other = work.time("ahead", lambda: _Compilation(ahead, work.target, work.threads, store).kernel(None))
    certificate = joined(str(program), kernel.certificate, other.certificate)
    main, before = kernel.explanation, other.explanation

    def explanation() -> str:
        return "\n\n".join([main(), "once, when the constants are known:", before()])

    parts = replace(kernel, program=program, main=kernel.program, ahead=other)
    parts.certificate, parts.explanation = certificate, explanation
    return parts


def _simulated(
    form: Algorithm, target: Target, constants: Mapping[str, object] | None, plan: Plan | None
) -> SimulatedKernel:
    """The simulator is loaded when it is first used: it takes as long to load as all that a processor needs."""
    kernel: SimulatedKernel = import_module("dovetail.simulated.kernel").SimulatedKernel(form.program, target, plan)
    kernel.form, kernel.finite = str(form), form.name != DIRECT
    kernel.bind(constants or {})
    return kernel


def _derived(definition: Definition, target: Target, constants: Mapping[str, object] | None) -> SimulatedKernel:
    """Rules are loaded when a definition is first mapped."""
    kernel: SimulatedKernel = import_module("dovetail.simulated.derived").derived_kernel(definition, target)
    kernel.bind(constants or {})
    return kernel


def _normalised(definition: Definition) -> Program:
    """The program that a definition stands for."""
    program: Program = import_module("dovetail.ir.functional.normalise").normalise(definition)
    return program


def verify(
    program: Program | Definition,
    target: str | Path | Target = "host",
    threads: int | None = None,
    sizes: Mapping[str, int] | None = None,
    seed: int = 0,
    relaxed: bool = False,
    rules: tuple[Rule, ...] = (),
    algorithm: str = "",
) -> Comparison:
    """Every element that the compiled ``program`` computes from small whole numbers, against the reference.

    The reference is the program itself, whatever algorithm was chosen; a relaxed one may differ by its stated error.
    """
    kernel, form = compile_chosen(program, target, threads, Wishes(relaxed, rules, algorithm))
    source = _normalised(program) if isinstance(program, Definition) else program
    bound = bind_sizes(source, {}, sizes)
    arrays = fill(source, seed, bound)
    found = kernel(*(arrays[t.name] for t in source.inputs), sizes=bound or None)
    several = found if isinstance(found, tuple) else (found,)
    results = {t.name: array for t, array in zip(source.outputs, several, strict=True)}
    return compared(source, kernel, form, arrays, bound, results)


def compared(
    program: Program,
    kernel: Kernel | SimulatedKernel,
    form: Algorithm,
    arrays: Mapping[str, Array],
    sizes: Mapping[str, int],
    results: Mapping[str, Array],
    whole: bool = True,
) -> Comparison:
    """``results`` of a kernel that computes ``program`` in some form, against the reference; see ``compare``."""
    planned = kernel.main or kernel.program if isinstance(kernel, Kernel) else kernel.program
    relaxation = relaxation_of(form.name, form.error, program, arrays, sizes) if form.error else None
    wanted = evaluate(program, arrays, sizes)
    return compare(program, kernel.plan, sizes, results, wanted, whole, planned, relaxation)


def default_threads(target: Target) -> int:
    """``DOVETAIL_THREADS``, else the cores of the target."""
    wanted = os.environ.get("DOVETAIL_THREADS", "")
    if not wanted:
        return max(1, target.units[0].count[0])
    return _threads(int(wanted) if wanted.isdigit() else 0, target, f"DOVETAIL_THREADS={wanted}")


class _Compilation:
    """One program on its way through the stages; ``seconds`` says how long each took."""

    def __init__(self, program: Program, target: Target, threads: int, cache: Cache | None) -> None:
        self.program, self.target, self.threads, self.cache = program, target, threads, cache
        self.brief = _is_small(program)
        self.shelf = Shelf(cache, program, target)
        self.seconds: dict[str, float] = {}

    def kernel(self, given: Plan | None) -> Kernel:
        """With the plan that is given, or kept, or the default one; with the code that is kept, or new code."""
        flat = self.time("simplify", lambda: collapse(self.program))
        plan = given or self.time("plan", lambda: self.shelf.plan(self.threads, lambda: self.plan(flat)))
        kept = self.time("cache", lambda: self.shelf.kernel(plan))
        if kept is not None:
            return self.loaded(flat, plan, kept)
        nest = self.time("nest", lambda: build_nest(flat, plan, self.target))
        with ThreadPoolExecutor(1) as worker:
            code = self.code(nest, worker)
            kernel = cache(lambda: self.loaded(flat, plan, code()))
            subject = Subject(self.program, flat, plan, nest, self.target, self.threads, kernel, self.uncertified)
            certificate = self.time("certificate", lambda: certify(subject))
        made = replace(code(), certificate=certificate)
        self.time("cache", lambda: self.shelf.keep_kernel(plan, made))
        return self.certified(flat, kernel(), certificate)

    def plan(self, flat: Program) -> Plan:
        return default_plan(flat, self.target, self.threads, tile_fits(flat, self.target))

    def code(self, nest: Nest, worker: Executor) -> Callable[[], Stored]:
        """Object code, made by ``worker``: LLVM leaves the interpreter to whoever called meanwhile."""
        module = self.time("lower", lambda: lower(nest, self.target))
        making = worker.submit(emit_object, module, self.target, self.brief)
        parts = (module.entry, module.shared, module.private, module.buffers)
        return lambda: Stored(*parts, self.time("llvm", making.result), UNCHECKED)

    def loaded(self, flat: Program, plan: Plan, made: Stored) -> Kernel:
        code = self.time("load", lambda: self.load(made))
        views = {t.name: tuple(e.const for e in t.shape) for t in flat.tensors if t.role is Role.CONST}
        parts = (self.program, plan, self.target.name, self.threads, code)
        kernel = Kernel(*parts, UNCHECKED, lambda: "", views, seconds=self.seconds)
        return self.certified(flat, kernel, made.certificate)

    def certified(self, flat: Program, kernel: Kernel, certificate: Certificate) -> Kernel:
        """``kernel`` with its certificate; it is never part of a ring of objects, so its code goes when it does."""
        plan, target, threads = kernel.plan, self.target, self.threads
        kernel.certificate = certificate
        kernel.explanation = lambda: explain(flat, plan, target, threads, certificate)
        return kernel

    def load(self, made: Stored) -> Code:
        relax = self.target.llvm.relax if self.target.llvm else ""
        symbols = dict(pool.symbols(relax, self.cache)) if self.threads > 1 else {}
        symbols |= symbols_beside(self.target.external_instructions)
        loaded = load_object(made.code, symbols)
        return Code(loaded, made.entry, made.shared.bytes, made.private.bytes, made.buffers, status_bytes)

    def uncertified(self, flat: Program, plan: Plan) -> Kernel:
        """The kernel of another program, for a certificate of this one to look at."""
        other = _Compilation(flat, self.target, self.threads, self.cache)
        other.brief = self.brief
        with ThreadPoolExecutor(1) as worker:
            return other.loaded(flat, plan, other.code(build_nest(flat, plan, self.target), worker)())

    def time(self, name: str, work: Callable[[], T]) -> T:
        """The result of ``work``; its time goes to ``name``, without what steps inside it have taken for themselves."""
        begun, before = time.perf_counter(), sum(self.seconds.values())
        result = work()
        elsewhere = sum(self.seconds.values()) - before
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - begun - elsewhere
        return result


class _Undisturbed:
    """The interpreter as it serves a compilation best, for as long as any runs, and then as it was.

    Threads change over often enough that LLVM, on a thread of its own, is not kept waiting. Garbage is not looked for:
    what a compilation makes it holds on to, and looking through all of the process takes as long as a small program.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.running = 0
        self.interval, self.collects = 0.0, False

    def __enter__(self) -> None:
        with self.lock:
            self.running += 1
            if self.running == 1:
                self.interval, self.collects = sys.getswitchinterval(), gc.isenabled()
                sys.setswitchinterval(min(self.interval, TURN_SECONDS))
                gc.disable()

    def __exit__(self, *problem: object) -> None:
        with self.lock:
            self.running -= 1
            if not self.running:
                sys.setswitchinterval(self.interval)
                if self.collects:
                    gc.enable()


_undisturbed = _Undisturbed()


def _is_small(program: Program) -> bool:
    """Whether so little is computed that making the code is what takes time."""
    return work_in(program, {s.name: s.high for s in program.sizes}).operations < SMALL_OPERATIONS


def _target(target: str | Path | Target) -> Target:
    return target if isinstance(target, Target) else load_target(target)


def _threads(wanted: int | None, target: Target, where: str = "") -> int:
    if wanted is None:
        return default_threads(target)
    if isinstance(wanted, bool) or not isinstance(wanted, int) or not 1 <= wanted <= pool.MAX_THREADS:
        what = where or f"threads = {wanted!r}"
        raise CallError(f"{what} is no number of threads", hint=f"a whole number from 1 to {pool.MAX_THREADS}")
    return wanted


def _check(program: Program, target: Target, constants: Mapping[str, object]) -> None:
    """Refuse, before any work, what could not be run."""
    missing = missing_features(target)
    if missing:
        raise TargetError(
            f"this machine cannot run code for '{target.name}'",
            why=f"it lacks {', '.join(missing)}",
            hint="target 'host', or dovetail compile --emit to make code for another machine",
        )
    known = [t.name for t in program.tensors if t.role is Role.CONST]
    for name in constants:
        if name not in known:
            why = f"its constants: {', '.join(known)}" if known else "it has none"
            raise CallError(f"'{name}' is not a constant of the program", why=why, hint="declare it: const ...")
