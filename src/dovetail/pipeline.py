"""The compiler on one screen: text -> program -> fits -> plan -> nest -> code -> kernel."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, overload

from dovetail.algorithm import DIRECT, Algorithm, Wishes, chosen, explored
from dovetail.base.errors import CallError, TargetError
from dovetail.base.limits import DEFAULT_EXPLORE_LIMITS, DEFAULT_LIMITS, DEFAULT_MODEL_LIMITS, Limits, ModelLimits
from dovetail.compare import Array, Comparison, compare, relaxation_of
from dovetail.compilation import is_small, kernel_of, undisturbed
from dovetail.ir.bind import bind_sizes
from dovetail.ir.evaluate import evaluate
from dovetail.ir.fill import fill
from dovetail.ir.fit import MappingResult
from dovetail.ir.functional.term import Definition
from dovetail.ir.parse import parse
from dovetail.ir.plan import Plan
from dovetail.ir.program import Program, Role
from dovetail.ir.verify import verify as verify_program
from dovetail.mapping.find import find_mappings
from dovetail.mapping.tiles import tile_fits
from dovetail.runtime.cache import Cache, open_cache
from dovetail.runtime.kernel import Kernel
from dovetail.runtime.threads import thread_count
from dovetail.schedule.estimate import arithmetic_cycles, estimate_cycles
from dovetail.stored import Shelf
from dovetail.targets.host import missing_features
from dovetail.targets.load import load_target
from dovetail.targets.model import Target

if TYPE_CHECKING:
    from dovetail.model.opened import Function
    from dovetail.model.torch_module import CompiledModule
    from dovetail.rewrite.explore import Exploration
    from dovetail.rewrite.patterns.file import Patterns
    from dovetail.rewrite.rule import Rule
    from dovetail.simulated.kernel import SimulatedKernel


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


def load(
    path: str | Path,
    target: str | Path | Target = "host",
    threads: int | None = None,
    cache: bool = True,
    limits: ModelLimits = DEFAULT_MODEL_LIMITS,
    patterns: Patterns | None = None,
    dynamic: bool | None = None,
) -> Function:
    """The model in a file, as a function over arrays: ``.onnx``, or ``.dovetail``, which was compiled before.

    An ONNX model is compiled for the shapes it is called with, when they are first seen: the first one gets code of its
    own, those that follow share code that takes sizes at run time, where it can. With ``dynamic=True`` all share it,
    with ``False`` none does. ``patterns`` is a file of them, or patterns (see ``pattern``): what they match in the
    model's graph is mapped as they say, and checked.
    """
    opened: Function = import_module("dovetail.model.opened").open_model(
        path, target, threads, cache=cache, limits=limits, patterns=patterns, dynamic=dynamic
    )
    return opened


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


@overload
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
) -> Kernel | SimulatedKernel: ...


@overload
def compile(
    program: Callable[..., object],
    example_inputs: Sequence[object],
    /,
    threads: int | None = None,
    *,
    cache: bool = True,
    strict: bool = False,
    patterns: Patterns | None = None,
    dynamic: bool | None = None,
) -> CompiledModule: ...


def compile(
    program: Program | Definition | Callable[..., object],
    target: str | Path | Target | Sequence[object] = "host",
    threads: int | None = None,
    constants: Mapping[str, object] | None = None,
    plan: Plan | None = None,
    cache: bool = True,
    relaxed: bool = False,
    rules: tuple[Rule, ...] = (),
    algorithm: str = "",
    strict: bool = False,
    patterns: Patterns | None = None,
    dynamic: bool | None = None,
) -> Kernel | SimulatedKernel | CompiledModule:
    """``program`` as a kernel: a callable over arrays, certified, or taken from the cache with its certificate.

    Without a ``plan`` the algorithm is chosen, too: what rules make of the convolutions in it, and of anything by
    ``rules`` of your own, is taken where it is estimated to be faster. ``relaxed`` allows rules that round otherwise.
    ``algorithm`` is the name of the rule to take instead, or "direct".

    A target without an [llvm] table is simulated: its kernels run on the simulator and count cycles. The instructions
    of a definition's operations are then those that rules derive, where none of these options says otherwise.

    A PyTorch module comes with a tuple of example inputs: ``compile(module, (x,))``. It is exported, compiled for the
    shapes it is called with, and called with tensors; ``strict`` refuses what would have to run in PyTorch,
    ``patterns`` are put in place in its graph. From the second shape on, code takes sizes at run time where it can;
    ``dynamic=True``: from the start, for any batch; ``False``: never. Model files are opened by ``load``.
    """
    if isinstance(program, Program | Definition):
        assert isinstance(target, str | Path | Target), "example inputs go with a PyTorch module"
        return compile_chosen(program, target, threads, Wishes(relaxed, rules, algorithm), constants, plan, cache)[0]
    if isinstance(program, str | Path):
        raise CallError("compile takes a program, a definition or a PyTorch module", hint=f"dovetail.load({program!r})")
    if isinstance(target, str | Path | Target):
        raise CallError("a PyTorch module is compiled with example inputs", hint="compile(module, (x,))")
    module = import_module("dovetail.model.torch_module")
    made: CompiledModule = module.compile_module(
        program, target, threads=threads, cache=cache, strict=strict, patterns=patterns, dynamic=dynamic
    )
    return made


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
    threads = thread_count(threads, machine)
    _check(program, machine, constants or {})
    with undisturbed:
        begun = time.perf_counter()
        form = _algorithm(program, machine, threads, store, wishes, plan)
        spent = time.perf_counter() - begun
        kernel = kernel_of(form.program, machine, threads, store, plan)
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
    count = 1 if machine.llvm is None else thread_count(threads, machine)
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
    count = 1 if machine.llvm is None else thread_count(threads, machine)
    return explored(program, Wishes(relaxed, rules), _estimate(machine, count), seconds)


def _algorithm(
    program: Program, target: Target, threads: int, store: Cache | None, wishes: Wishes, plan: Plan | None
) -> Algorithm:
    """The form that a plan is of, or the one that is estimated to be the fastest."""
    if plan is not None:
        wishes = replace(wishes, algorithm=plan.form or DIRECT)
    elif target.llvm is not None and is_small(program) and not (wishes.rules or wishes.algorithm):
        return Algorithm(program)  # not worth a question
    wishes = replace(wishes, finite=target.llvm is None)
    least = None if target.llvm is None else lambda form: arithmetic_cycles(form, target, threads)
    return chosen(program, Shelf(store, program, target), threads, wishes, _estimate(target, threads), least)


def _estimate(target: Target, threads: int) -> Callable[[Program], float]:
    """What a program takes on a target, by the model that its scheduler plans with."""
    if target.llvm is None:
        estimates: Callable[[Program], float] = import_module("dovetail.simulated.estimate").Estimates(target)
        return estimates
    return lambda form: estimate_cycles(form, target, threads, tile_fits)


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


def _target(target: str | Path | Target) -> Target:
    return target if isinstance(target, Target) else load_target(target)


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
