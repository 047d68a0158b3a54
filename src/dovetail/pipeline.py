"""The compiler on one screen: text -> program -> fits -> plan -> nest -> code -> kernel."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from dovetail.base.limits import DEFAULT_LIMITS, Limits
from dovetail.codegen.compile import emit_object
from dovetail.codegen.lower import LlvmModule, lower
from dovetail.explain import explain
from dovetail.ir.certificate import Certificate
from dovetail.ir.fit import MappingResult
from dovetail.ir.parse import parse
from dovetail.ir.plan import Plan
from dovetail.ir.program import Program, Role
from dovetail.ir.verify import verify as verify_program
from dovetail.mapping.find import find_mappings
from dovetail.runtime import pool
from dovetail.runtime.jit import load_object
from dovetail.runtime.kernel import Code, Kernel
from dovetail.schedule.collapse import collapse
from dovetail.schedule.default import default_plan
from dovetail.schedule.lower.build import build_nest
from dovetail.targets.load import load_target
from dovetail.targets.model import Target

T = TypeVar("T")


def program(text: str, name: str = "program", limits: Limits = DEFAULT_LIMITS) -> Program:
    """The program ``text`` describes, parsed and verified."""
    parsed = parse(text, name, limits)
    verify_program(parsed, limits)
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
    program: Program,
    target: str | Path | Target = "host",
    threads: int | None = None,
    constants: Mapping[str, object] | None = None,
    plan: Plan | None = None,
) -> Kernel:
    """``program`` as a kernel: a callable over arrays."""
    machine = _target(target)
    threads = threads or default_threads(machine)
    clock = _Clock()
    flat = clock.time("simplify", lambda: collapse(program))
    plan = plan or clock.time("plan", lambda: default_plan(flat, machine, threads))
    nest = clock.time("nest", lambda: build_nest(flat, plan, machine))
    module = clock.time("lower", lambda: lower(nest, machine))
    code = clock.time("llvm", lambda: emit_object(module, machine))
    loaded = clock.time("load", lambda: _load(module, code, threads))
    certificate = Certificate("", "", "", ())
    views = {t.name: tuple(e.const for e in t.shape) for t in flat.tensors if t.role is Role.CONST}
    chosen = plan
    kernel = Kernel(
        program,
        plan,
        machine.name,
        threads,
        loaded,
        certificate,
        lambda: explain(flat, chosen, machine, threads, certificate),
        views,
        seconds=clock.seconds,
    )
    if constants:
        clock.time("constants", lambda: kernel.bind(constants))
    return kernel


def default_threads(target: Target) -> int:
    """``DOVETAIL_THREADS``, else the cores of the target."""
    wanted = os.environ.get("DOVETAIL_THREADS", "")
    return max(1, int(wanted)) if wanted.isdigit() else max(1, target.units[0].count[0])


def _load(module: LlvmModule, code: bytes, threads: int) -> Code:
    symbols = pool.symbols(relax="pause") if threads > 1 else {}
    loaded = load_object(code, symbols)
    return Code(loaded, module.entry, module.shared.bytes, module.private.bytes, module.buffers)


def _target(target: str | Path | Target) -> Target:
    return target if isinstance(target, Target) else load_target(target)


class _Clock:
    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def time(self, name: str, work: Callable[[], T]) -> T:
        begun = time.perf_counter()
        result = work()
        self.seconds[name] = time.perf_counter() - begun
        return result
