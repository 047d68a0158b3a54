"""A program on its way to a kernel: plan -> nest -> code, certified, or taken from the cache with its certificate."""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from typing import TypeVar

from dovetail.certify.certificate import SMALL_OPERATIONS, Subject, certify, joined
from dovetail.codegen.compile import emit_object
from dovetail.codegen.lower import lower
from dovetail.codegen.shares import status_bytes
from dovetail.explain import explain
from dovetail.ir.certificate import Certificate
from dovetail.ir.nest import Nest
from dovetail.ir.plan import Plan
from dovetail.ir.program import Program, Role
from dovetail.ir.work import work as work_in
from dovetail.mapping.tiles import tile_fits
from dovetail.runtime import pool
from dovetail.runtime.beside import symbols_beside
from dovetail.runtime.cache import Cache
from dovetail.runtime.jit import load_object
from dovetail.runtime.kernel import Code, Kernel
from dovetail.schedule.ahead import planned_part, split_ahead
from dovetail.schedule.default import default_plan
from dovetail.schedule.estimate import fastest_flat
from dovetail.schedule.flats import flat_of, flats
from dovetail.schedule.lower.build import build_nest
from dovetail.stored import Shelf, Stored
from dovetail.targets.model import Target

T = TypeVar("T")
TURN_SECONDS = 0.0002
UNCHECKED = Certificate("", "", "", ())


def kernel_of(program: Program, target: Target, threads: int, store: Cache | None, plan: Plan | None) -> Kernel:
    """``program`` as it is, as a kernel."""
    main = split_ahead(program).main if plan is None else planned_part(program, plan)
    work = Compilation(main, target, threads, store)
    kernel = work.kernel(plan)
    return kernel if main is program else _with_ahead(program, kernel, work, store)


def _with_ahead(program: Program, kernel: Kernel, work: Compilation, store: Cache | None) -> Kernel:
    """``kernel`` computes ``program`` but for constants that are made of others: with a kernel that makes those."""
    ahead = split_ahead(program).ahead
    assert ahead is not None
    other = work.time("ahead", lambda: Compilation(ahead, work.target, work.threads, store).kernel(None))
    certificate = joined(str(program), kernel.certificate, other.certificate)
    main, before = kernel.explanation, other.explanation

    def explanation() -> str:
        return "\n\n".join([main(), "once, when the constants are known:", before()])

    parts = replace(kernel, program=program, main=kernel.program, ahead=other)
    parts.certificate, parts.explanation = certificate, explanation
    return parts


def is_small(program: Program) -> bool:
    """Whether so little is computed that making the code is what takes time."""
    return work_in(program, {s.name: s.high for s in program.sizes}).operations < SMALL_OPERATIONS


class Compilation:
    """One program on its way through the stages; ``seconds`` says how long each took."""

    def __init__(self, program: Program, target: Target, threads: int, cache: Cache | None) -> None:
        self.program, self.target, self.threads, self.cache = program, target, threads, cache
        self.brief = is_small(program)
        self.shelf = Shelf(cache, program, target)
        self.seconds: dict[str, float] = {}

    def kernel(self, given: Plan | None) -> Kernel:
        """With the plan that is given, or kept, or the default one; with the code that is kept, or new code."""
        ways = self.time("simplify", lambda: flats(self.program))
        plan = given or self.time("plan", lambda: self.shelf.plan(self.threads, lambda: self.plan(ways)))
        flat = flat_of(ways, plan)
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

    def plan(self, ways: tuple[Program, ...]) -> Plan:
        flat = fastest_flat(ways, self.target, self.threads, tile_fits)
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
        other = Compilation(flat, self.target, self.threads, self.cache)
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


undisturbed = _Undisturbed()
