"""A definition mapped to the instructions of a machine, by rules alone.

    def layer(w: f16[256, 128], x: f16[128], b: f32[256]) -> y = relu of (w times x) + b

    let v2 = join(map(\\w -> MVMul128(w, x), split(128, w))) in
    let v1 = join(map(\\a b -> VVAdd64(a, b), zip(split(64, v2), split(64, b)))) in
    VVRelu(v1)

First every operation gets a pass of its own (``to_operations``). Then each is brought to the sizes of the instruction
that does it in the fewest cycles, by the rules of ``tiling``, and replaced by its call, by a rule of ``hardware``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from dovetail.ir.functional.term import (
    Definition,
    Lambda,
    Let,
    Param,
    Pattern,
    Scalar,
    Term,
    free_names,
)
from dovetail.ir.functional.types import shape
from dovetail.ir.primitives import PRIMITIVES
from dovetail.ir.program import Role
from dovetail.rewrite.calls import readable, readable_derivation
from dovetail.rewrite.choose_instruction import Candidate, Machine, best_candidate, machine_for
from dovetail.rewrite.derivation import Derivation
from dovetail.rewrite.operations import store_part, to_operations
from dovetail.rewrite.outline import broadcast
from dovetail.rewrite.passes import is_view, without_casts
from dovetail.rewrite.rule import Rule
from dovetail.rewrite.run import Run, at_path, written_out
from dovetail.rewrite.straighten import below, operation_of, straighten
from dovetail.rewrite.tables.arithmetic import ARITHMETIC
from dovetail.rewrite.tables.tiling import pad_rule, tile_rule, widen_rule
from dovetail.rewrite.typed import Path
from dovetail.targets.model import Target

MIXED = ("bool", "select")
"""Results of primitives whose operands may have another type than the result."""


@dataclass(frozen=True, slots=True)
class Operation:
    """A stored value of the mapped definition: its name, what it computes, and the instruction that does it.

    An empty instruction: the machine has none, ``reason`` says why; its host does it, where it has one."""

    name: str
    definition: Definition
    """The operation by itself."""
    instruction: str
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.name} by {self.instruction}" if self.instruction else f"{self.name} on the host: {self.reason}"


@dataclass(frozen=True, slots=True)
class Mapped:
    """``definition`` calls instructions; ``operations`` are its stored values in order, ``plain`` without calls."""

    definition: Definition
    plain: Definition
    operations: tuple[Operation, ...]
    derivation: Derivation

    def __str__(self) -> str:
        return str(readable(self.definition))

    def explain(self) -> str:
        """Every step of the derivation, with calls written ``MVMul64(w, x)``."""
        return str(readable_derivation(self.derivation))

    @property
    def on_host(self) -> tuple[Operation, ...]:
        """What no instruction does."""
        return tuple(operation for operation in self.operations if not operation.instruction)


def map_definition(definition: Definition, target: Target, relaxed: bool = False) -> Mapped:
    """``definition`` in terms of ``target``'s instructions, as far as it has them, and how it was derived.

    ``relaxed`` allows rules that round differently."""
    run = Run(definition)
    to_operations(run)
    mapper = _Mapper(
        run, machine_for(run.start, target), tuple(rule for rule in ARITHMETIC if relaxed or rule.kind != "relaxed")
    )
    number = 0
    while number < len(run.stored()):
        number, _ = mapper.prepare(number)
    plain = run.definition
    alone = _alone(run)
    chosen = [mapper.call(number) for number in range(len(alone))]
    operations = tuple(
        Operation(one.results[0], one, instruction, "" if instruction else _reason(one, target))
        for one, instruction in zip(alone, chosen, strict=True)
    )
    return Mapped(run.definition, plain, operations, run.derivation)


@dataclass(slots=True)
class _Mapper:
    run: Run
    machine: Machine
    arithmetic: tuple[Rule, ...]

    def prepare(self, number: int) -> tuple[int, bool]:
        """A stored value in a form that instructions match, where there is one; the number of the next, and whether.

        Values that it needs before it are stored in front of it, and prepared as well."""
        tail = len(self.run.stored()) - number - 1
        done = True
        while len(self.run.stored()) - number > tail:
            count = len(self.run.stored())
            does = (
                self.matches(number) or self.attempt(number, (_straight, _rows)) or self.attempt(number, (_arithmetic,))
            )
            if len(self.run.stored()) == count:
                number += 1
                done &= does
        return number, done

    def matches(self, number: int) -> bool:
        value = self.run.stored()[number]
        return is_view(self.run.at(value)) or best_candidate(self.run, value, self.machine) is not None

    def attempt(self, number: int, steps: tuple[Attempt, ...]) -> bool:
        """Whether steps, one after the other, made a form that instructions match; taken back where they did not."""
        state = self.run.saved()
        if any(step(self, number) for step in steps):
            return True
        self.run.back(state)
        return False

    def call(self, number: int) -> str:
        """The operation brought to the sizes of an instruction, and done by it; its name, empty where there is none."""
        value = self.run.stored()[number]
        found = best_candidate(self.run, value, self.machine)
        if found is None or is_view(self.run.at(value)):
            return ""
        self.fit(found)
        for at in [at for at in below(self.run.at(found.at), found.at) if self.is_sum(at)]:
            partial = best_candidate(self.run, (*at, 0, 0), self.machine)
            if partial is not None:
                self.fit(partial)
        return found.spelling.instruction.name

    def is_sum(self, at: Path) -> bool:
        """Whether partial sums of arrays are summed here."""
        term = self.run.at(at)
        return isinstance(term, Pattern) and term.name == "reduce" and isinstance(term.args[0], Lambda)

    def fit(self, found: Candidate) -> None:
        """Conversions, padding and tiles, then the call."""
        shape = found.spelling.shape
        for (name, _), given, wanted in zip(shape.operands, found.given, found.spelling.operands, strict=True):
            if given != wanted:
                self.first(widen_rule(shape, name, given.name, wanted.name), found.at)
        for loop, size in found.sizes.items():
            part = found.parts[loop]
            whole = -(-size // part) * part
            if whole > size:
                self.first(pad_rule(shape, loop), found.at, {"n": whole})
            if part < whole:
                self.first(tile_rule(shape, loop), found.at, {"n": part})
        self.first(found.spelling.rule, found.at)

    def first(self, rule: Rule, at: Path, choose: Mapping[str, int] | None = None) -> None:
        """The rule at the outermost place below ``at`` where it fires."""
        fired = any(self.run.fire_short(rule, place, choose) for place in list(below(self.run.at(at), at)))
        assert fired, f"{rule} does not fire in {self.run.at(at)}"


Attempt = Callable[[_Mapper, int], bool]


def _straight(mapper: _Mapper, number: int) -> bool:
    """Reductions inside one another, and passes inside one another, made one; casts taken off."""
    return straighten(mapper.run, mapper.run.stored()[number]) and mapper.matches(number)


def _rows(mapper: _Mapper, number: int) -> bool:
    """What is the same for a whole pass made a row of it; rows of numbers are stored."""
    run = mapper.run
    value = run.stored()[number]
    while (found := next(_constants(run.at(value)), None)) is not None:
        mapped, part = found
        at, term = (*value, *mapped), run.at((*value, *mapped))
        _, element = shape(run.type_at(at))
        rule = broadcast(term, part, str(element)) if isinstance(term, Pattern) else None
        if rule is None or not run.fire(rule, at):
            return False
        run.tidy(value)
    if not mapper.matches(number):
        return False
    while (row := next(_number_rows(run.at(run.stored()[number])), None)) is not None:
        store_part(run, run.stored()[number], row)
        number += 1
    return True


def _arithmetic(mapper: _Mapper, number: int) -> bool:
    """An operation that the machine has not, by others that it has."""
    run = mapper.run
    value = run.stored()[number]
    for at in list(below(run.at(value), value)):
        for rule in mapper.arithmetic if isinstance(run.at(at), Scalar) else ():
            if not run.fire_short(rule, at):
                continue
            run.tidy(value)
            tail = len(run.stored()) - number - 1
            to_operations(run)
            while len(run.stored()) - number > tail:
                number, does = mapper.prepare(number)
                if not does:
                    return False
            return True
    return False


ATTEMPTS: tuple[tuple[Attempt, ...], ...] = ((_straight, _rows), (_arithmetic,))
"""Ways to a form that instructions match: steps one after the other, until one of them gives it."""


def _constants(term: Term) -> Iterator[tuple[Path, Path]]:
    """Operands of a pass that are the same for all its elements: the map, and the way from there to the operand."""
    for at in below(term):
        mapped = at_path(term, at)
        if not isinstance(mapped, Pattern) or mapped.name != "map" or len(mapped.args) != 2:
            continue
        function = written_out(mapped.args[0])
        if not isinstance(function, Lambda):
            continue
        inner, path = without_casts(function.body, (0, 0))
        if (
            isinstance(inner, Scalar)
            and inner.function in PRIMITIVES
            and PRIMITIVES[inner.function].result not in MIXED
        ):
            for number, arg in enumerate(inner.args):
                if not free_names(arg).intersection(function.params):
                    yield at, (*path, number)


def _number_rows(term: Term) -> Iterator[Path]:
    """Rows of a number that an operation reads."""
    for at in below(term):
        row = at_path(term, at)
        if at and isinstance(row, Pattern) and row.name == "repeat" and not free_names(row):
            yield at


def _reason(operation: Definition, target: Target) -> str:
    """Why no instruction does an operation."""
    if is_view(operation.body):
        return "it only moves elements"
    work = operation_of(operation.body)
    name = work.function if isinstance(work, Scalar) else work.name if work is not None else operation.name
    dtypes = dict.fromkeys(str(shape(param.type)[1]) for param in operation.params)
    return f"no instruction of '{target.name}' computes {name} of {' and '.join(dtypes)}"


def _alone(run: Run) -> list[Definition]:
    """Every stored value as a definition of what it reads; the result last."""
    found: list[Definition] = []
    for path in run.stored():
        names = run.whole.names_at(path)
        body = run.at(path)
        let = run.at(path[:-1]) if path else None
        results = run.start.results if not isinstance(let, Let) or path[-1] == 1 else (let.name,)
        params = tuple(Param(Role.IN, name, names[name]) for name in names if name in free_names(body))
        found.append(Definition(results[0], params, results, body))
    return found
