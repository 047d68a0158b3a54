"""The hardware level: rules that a target file implies.

What an instruction computes is a program; raised to a term, with metas for its operands, it is the left side of a rule,
and the call of the instruction the right side.

    for i<64, k<64: y[i] += w[i, k] * x[k]     MVMul64, f16

    map(\\wi -> reduce(add, 0, map(mul, zip(wi, ?x))), ?w)  ->  MVMul64(?w, ?x)     w: f16[64, 64], x: f16[64]

Other spellings of the same computation follow: results in another order of dimensions, factors exchanged, and loops
that run once left out, for which an operand gets a dimension of one element.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations, permutations

from dovetail.base.dtypes import DType
from dovetail.base.errors import DovetailError
from dovetail.ir.expr import Expr, Position, Read, rebuild, walk
from dovetail.ir.functional.raise_program import raise_program
from dovetail.ir.functional.simplify import simplify
from dovetail.ir.functional.term import Lambda, Meta, Pattern, Scalar, Term, free_names, nameless, substitute
from dovetail.ir.functional.term import rebuild as rebuild_term
from dovetail.ir.index import Access, Index, constant, variable
from dovetail.ir.primitives import PRIMITIVES
from dovetail.ir.program import Program, Role, Statement, Tensor
from dovetail.rewrite.layouts import first, padded, reordered, with_unit, without_unit
from dovetail.rewrite.rule import Rule
from dovetail.rewrite.run import written_out
from dovetail.rewrite.tables.instruction_sizes import allowed, parameter
from dovetail.targets.model import Instruction, Target

MOST_OUT_LOOPS = 3
"""Loops of a result whose orders are all spelled out."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A computation of a machine, whatever its sizes: ``body`` over operands, each with its loops, outermost first."""

    body: Term
    operands: tuple[tuple[str, tuple[str, ...]], ...]
    result: tuple[str, ...]
    """Loops of the result, outermost first."""
    reduced: tuple[str, ...]

    @property
    def loops(self) -> tuple[str, ...]:
        return (*self.result, *self.reduced)

    @property
    def pattern(self) -> Term:
        """The body with a meta for each operand."""
        return substitute(self.body, {name: Meta(name) for name, _ in self.operands})

    @property
    def key(self) -> Term:
        """Equal for shapes that match the same terms."""
        numbered = {name: Meta(f"{k}") for k, (name, _) in enumerate(self.operands)}
        return nameless(substitute(self.body, numbered))


@dataclass(frozen=True, slots=True)
class Spelling:
    """One way in which an instruction is found: a shape, the dtypes it has there, and the rule."""

    instruction: Instruction
    shape: Shape
    once: tuple[str, ...]
    """Loops of the instruction that run once, and are not in the shape."""
    operands: tuple[DType, ...]
    result: DType
    rule: Rule


@dataclass(frozen=True, slots=True)
class Refused:
    """An instruction of which no rule is made, and why."""

    instruction: str
    reason: str


def hardware_rules(target: Target) -> tuple[Rule, ...]:
    """A rule for every spelling of every instruction that computes."""
    return tuple(spelling.rule for spelling in spellings(target))


@lru_cache(64)
def spellings(
    target: Target, functions: frozenset[str] | None = None, dtypes: frozenset[str] = frozenset()
) -> tuple[Spelling, ...]:
    """Every way in which instructions of ``target`` are found in terms, in the order of its file.

    With ``functions``, only of instructions that apply no others, to no other ``dtypes``: a processor has thousands.
    """
    chosen = target.instructions if functions is None else target.instructions_for(functions, dtypes)
    return tuple(s for i in chosen for found in (spelled(i),) if not isinstance(found, Refused) for s in found)


@lru_cache(16)
def refusals(target: Target) -> tuple[Refused, ...]:
    """The instructions that no rule is made of."""
    return tuple(found for i in target.instructions if isinstance(found := spelled(i), Refused))


@lru_cache(4096)
def spelled(instruction: Instruction) -> tuple[Spelling, ...] | Refused:
    """The spellings of one instruction: plain ones first, then those with loops that run once."""
    reason = _reason(instruction)
    if reason:
        return Refused(instruction.name, reason)
    found: dict[Term, Spelling] = {}
    try:
        meaning = _meaning(instruction)
        for view in _views(instruction):
            for spelling in _spellings(instruction, view, meaning):
                found.setdefault(spelling.shape.key, spelling)
    except DovetailError as problem:
        return Refused(instruction.name, f"it cannot be raised: {problem.what}")
    return tuple(found.values())


def _reason(instruction: Instruction) -> str:
    """Why no rule is made of an instruction."""
    program = instruction.program
    if instruction.is_copy:
        return "it moves data"
    if len(program.statements) > 1 or program.statements[0].seq or program.statements[0].where:
        return "it is more than plain loops"
    statement = program.statements[0]
    reads = [node.access for node in walk(statement.value) if isinstance(node, Read)]
    if not reads:
        return "it reads nothing"
    if any(isinstance(node, Position) for node in walk(statement.value)):
        return "it computes with its own loop counters"
    if len({a.tensor for a in reads}) < len(reads):
        return "it reads an operand in two places"
    if not all(_is_plain(access) for access in (statement.out, *reads)):
        return "its elements are not addressed by one loop in each dimension"
    if any(parameter(instruction, loop.name) is None and not loop.extent.is_constant for loop in statement.loops):
        return "the extent of a loop is not a number or a parameter"
    return ""


def _is_plain(access: Access) -> bool:
    names = [index.terms[0][0] for index in access.indices if len(index.terms) == 1]
    return access.indices == tuple(variable(str(n)) for n in names) and len(set(names)) == len(names)


@dataclass(frozen=True, slots=True)
class _View:
    """An instruction's statement with loops of the result in this order, without those that run ``once``."""

    result: tuple[str, ...]
    once: tuple[str, ...]


def _views(instruction: Instruction) -> Iterator[_View]:
    statement = instruction.program.statements[0]
    kept = _loops(statement.out)
    for count in range(len(kept)):
        for once in combinations(kept, count):
            rest = tuple(name for name in kept if name not in once)
            orders = permutations(rest) if len(rest) <= MOST_OUT_LOOPS else (rest,)
            yield from (_View(order, once) for order in orders)


def _spellings(instruction: Instruction, view: _View, meaning: Lambda) -> Iterator[Spelling]:
    """The spelling that ``raise`` gives, and the one with the factors exchanged."""
    program = instruction.program
    statement = program.statements[0]
    reduced = tuple(x.name for x in statement.loops if x.name not in _loops(statement.out))
    order = (*view.result, *reduced)
    seen = {access.tensor: tuple(n for n in order if n in _loops(access)) for access in statement.reads()}
    variant = _variant(program, view, seen, _some_sizes(instruction))
    body = rebuild_term(simplify(raise_program(variant, "instruction").body), _written_out)
    operands = tuple((t.name, seen[t.name]) for t in variant.tensors if t.name in seen)
    for spelled_body in dict.fromkeys((body, exchanged(body))):
        yield _spelling(instruction, view, meaning, Shape(spelled_body, operands, view.result, reduced))


def _spelling(instruction: Instruction, view: _View, meaning: Lambda, shape: Shape) -> Spelling:
    program = instruction.program
    statement = program.statements[0]
    dtypes = tuple(program.tensor(name).dtype for name, _ in shape.operands)
    result = program.tensor(statement.out.tensor).dtype
    rule = Rule(
        name=instruction.name,
        before=shape.pattern,
        after=_called(instruction, view, shape, meaning),
        when=_conditions(instruction, view),
        types=tuple(f"{name}: {d}{_sizes(loops)}" for (name, loops), d in zip(shape.operands, dtypes, strict=True)),
        level="hardware",
        doc=f"{instruction.source}: {statement}",
    )
    return Spelling(instruction, shape, view.once, dtypes, result, rule)


def exchanged(term: Term) -> Term:
    """A term with the operands of its commutative operation in the other order; itself where it has none."""

    def change(part: Term) -> Term:
        match part:
            case Pattern("map", _, (Scalar(name) as function, Pattern("zip", _, (a, b)))) if _commutes(name):
                return Pattern("map", (), (function, Pattern("zip", (), (b, a))))
            case Pattern("map", _, (Lambda((p, q), body), Pattern("zip", _, (a, b)))) if _is_symmetric(p, q, body):
                return Pattern("map", (), (Lambda((q, p), body), Pattern("zip", (), (b, a))))
        return part

    return rebuild_term(term, change)


def _is_symmetric(p: str, q: str, body: Term) -> bool:
    """Whether a function of two numbers is a commutative operation of them, each cast or not."""
    while isinstance(body, Scalar) and len(body.args) == 1:
        body = body.args[0]
    return isinstance(body, Scalar) and _commutes(body.function) and free_names(body) == {p, q}


def _commutes(function: str) -> bool:
    return function in PRIMITIVES and PRIMITIVES[function].commutative


def _written_out(term: Term) -> Term:
    """``max(0)`` as ``\\v -> max(0, v)``: so it is found in whichever order it is written."""
    return written_out(term) if isinstance(term, Scalar) and term.args else term


def _meaning(instruction: Instruction) -> Lambda:
    """What an instruction computes, as a function of its operands in their own order; sums start from nothing."""
    program = instruction.program
    statement = program.statements[0]
    own = {access.tensor: _loops(access) for access in statement.reads()}
    view = _View(_loops(statement.out), ())
    found = raise_program(_variant(program, view, own, _some_sizes(instruction)), "instruction")
    return Lambda(tuple(p.name for p in found.params), simplify(found.body))


def _variant(program: Program, view: _View, seen: dict[str, tuple[str, ...]], sizes: dict[str, int]) -> Program:
    """The program with its dimensions in the order of ``view`` and ``seen``, for some sizes."""
    statement = program.statements[0]
    extents = {x.name: x.extent.substitute({n: constant(v) for n, v in sizes.items()}) for x in statement.loops}
    shown = {**seen, statement.out.tensor: view.result}

    def access(name: str) -> Access:
        return Access(name, tuple(variable(loop) for loop in shown[name]))

    def change(node: Expr) -> Expr:
        return Read(access(node.access.tensor)) if isinstance(node, Read) else node

    value = rebuild(statement.value, change)
    loops = tuple(replace(x, extent=extents[x.name]) for x in statement.loops if x.name not in view.once)
    tensors = [
        Tensor(
            Role.OUT if t.name == statement.out.tensor else Role.IN,
            t.name,
            t.dtype,
            tuple(extents[loop] for loop in shown[t.name] if loop not in view.once),
        )
        for t in program.tensors
    ]
    found = Statement(loops, access(statement.out.tensor), statement.combine, value)
    return Program(tuple(tensors), (found,))


def _called(instruction: Instruction, view: _View, shape: Shape, meaning: Lambda) -> Term:
    """The call, its operands and its result brought into the order that the instruction has them in."""
    statement = instruction.program.statements[0]
    own = {access.tensor: _loops(access) for access in statement.reads()}
    by_name: dict[str, Term] = {}
    for name, seen in shape.operands:
        term = reordered(Meta(name), seen, [loop for loop in own[name] if loop in seen])
        for depth, loop in enumerate(own[name]):
            if loop in view.once:
                more = _least(instruction, loop) - 1
                term = with_unit(term, depth)
                term = padded(constant(more), term, depth) if more else term
        by_name[name] = term
    call: Term = Pattern("call", (instruction.name,), (meaning, *(by_name[name] for name in meaning.params)))
    left = list(_loops(statement.out))
    for loop in view.once:
        depth = left.index(loop)
        call = first(constant(1), call, depth) if _least(instruction, loop) > 1 else call
        call = without_unit(call, depth, len(left))
        left.remove(loop)
    return reordered(call, left, view.result)


def _conditions(instruction: Instruction, view: _View) -> tuple[str, ...]:
    """What the sizes must be: extents, ranges of parameters, and the constraints of the file."""
    found: list[str] = []
    values: dict[str, Index] = {}
    ranges = {size.name: size for size in instruction.program.sizes}
    for loop in instruction.program.statements[0].loops:
        once = loop.name in view.once
        size = constant(_least(instruction, loop.name)) if once else variable(f"?{size_name(loop.name)}")
        name = parameter(instruction, loop.name)
        if name is not None:
            values[name] = size
        if name is None and not once:
            found.append(f"{size} == {loop.extent}")
        elif name is not None and not once:
            found += [f"{size} >= {ranges[name].low}", f"{size} <= {ranges[name].high}"]
    found += [str(condition.substitute(values)) for condition in instruction.constraints]
    return tuple(dict.fromkeys(found))


def _least(instruction: Instruction, loop: str) -> int:
    """The least size of a loop: what is there once is padded to it."""
    return allowed(instruction, loop)[0]


def size_name(loop: str) -> str:
    """What the size of a loop is called in rules."""
    return f"n_{loop}"


def _sizes(loops: tuple[str, ...]) -> str:
    return f"[{', '.join(f'?{size_name(loop)}' for loop in loops)}]" if loops else ""


def _some_sizes(instruction: Instruction) -> dict[str, int]:
    """Values of the parameters at which a program is raised: terms do not depend on them, above 1."""
    return {size.name: max(2, size.low) for size in instruction.program.sizes}


def _loops(access: Access) -> tuple[str, ...]:
    return tuple(str(index.terms[0][0]) for index in access.indices)
