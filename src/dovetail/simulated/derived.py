"""A definition on a simulated machine: rules choose the instruction of every operation, the planner all the rest.

The definition is mapped (``rewrite.mapped``), its operations are normalised to a program of as many statements, and of
the fits of each statement only those of the instruction that its operation was derived to are planned with.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dovetail.base.errors import RewriteError
from dovetail.ir.expr import Apply, walk
from dovetail.ir.fit import Fit
from dovetail.ir.functional.normalise import normalise
from dovetail.ir.functional.term import Definition
from dovetail.ir.plan import Plan
from dovetail.ir.program import Program, Statement
from dovetail.rewrite.mapped import Mapped, map_definition
from dovetail.schedule.placed.choose import default_placed_plan
from dovetail.schedule.placed.space import works
from dovetail.schedule.placed.zeros import zero_target
from dovetail.simulated.kernel import SimulatedKernel
from dovetail.simulated.lowered import all_fits
from dovetail.simulated.prepare import prepared
from dovetail.targets.model import Target

Key = tuple[object, ...]
"""What tells operations apart: how they combine, what they apply, and the shapes of what they read and write."""
RUN_TIME = "its sizes are known only when it is called, and rules fit operations to sizes"


@dataclass
class DerivedKernel(SimulatedKernel):
    """A kernel whose instructions follow from a derivation; ``underived`` says why, where they do not."""

    mapped: Mapped | None = None
    underived: str = ""

    def explain(self) -> str:
        """What was chosen and why, after how it was derived."""
        first = f"not derived: {self.underived}" if self.mapped is None else self._derived(self.mapped)
        return f"{first}\n\n{super().explain()}"

    def _derived(self, mapped: Mapped) -> str:
        lines = [str(mapped), "", *map(str, mapped.operations)]
        return "\n".join([*lines, *(f"not derived: {self.underived}" for _ in range(bool(self.underived)))])


def derived_kernel(definition: Definition, target: Target) -> DerivedKernel:
    """``definition`` as a kernel of a simulated machine."""
    if definition.sizes:
        return DerivedKernel(normalise(definition), target, underived=RUN_TIME)
    try:
        mapped = map_definition(definition, target)
    except RewriteError as problem:
        return DerivedKernel(normalise(definition), target, underived=problem.what)
    program = normalise(mapped.plain)
    allowed = allowed_instructions(mapped)
    main = prepared(program, target)
    fits, left = derived_fits(main, target, allowed)
    plan: Plan = default_placed_plan(main, zero_target(target), fits)
    why = f"no plan can be made of what was derived for {', '.join(left)}" if left else ""
    return DerivedKernel(program, target, plan, mapped=mapped, underived=why)


def allowed_instructions(mapped: Mapped) -> dict[Key, frozenset[str]]:
    """The instructions that operations were derived to."""
    found: dict[Key, frozenset[str]] = {}
    for operation in mapped.operations:
        for statement, program in _statements(operation.definition):
            key = operation_key(program, statement)
            mine = frozenset({operation.instruction} if operation.instruction else ())
            found[key] = found.get(key, frozenset()) | mine
    return found


def derived_fits(
    program: Program, target: Target, allowed: Mapping[Key, frozenset[str]]
) -> tuple[tuple[Fit, ...], tuple[str, ...]]:
    """The fits that a plan may use, and the instructions that were derived but that plans cannot be made of."""
    fits = all_fits(program, target)
    kept: list[Fit] = []
    left: list[str] = []
    for number, statement in enumerate(program.statements):
        mine = tuple(fit for fit in fits if fit.statement == number)
        wanted = allowed.get(operation_key(program, statement))
        chosen = tuple(fit for fit in mine if wanted is not None and fit.instruction in wanted)
        if wanted and not any(True for _ in works(program, target, chosen, number)):
            left += sorted(wanted)
            chosen = mine
        kept += mine if wanted is None else chosen
    return tuple(kept), tuple(dict.fromkeys(left))


def operation_key(program: Program, statement: Statement) -> Key:
    """Equal for statements that do the same operation on arrays of the same shapes."""

    def of(name: str) -> tuple[str, ...]:
        tensor = program.tensor(name)
        return (tensor.dtype.name, *map(str, tensor.shape))

    functions = sorted(node.function for node in walk(statement.value) if isinstance(node, Apply))
    extents = sorted(str(loop.extent) for loop in statement.all_loops if str(loop.extent) != "1")
    reads = sorted(of(access.tensor) for access in statement.reads())
    return (statement.combine, tuple(functions), tuple(extents), of(statement.out.tensor), tuple(reads))


def _statements(definition: Definition) -> Iterator[tuple[Statement, Program]]:
    program = normalise(definition)
    return ((statement, program) for statement in program.statements)
