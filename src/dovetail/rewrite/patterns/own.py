"""Operators that patterns bring along: a program of the user's, or what an instruction of the target file computes.

    program = "in x: f32[?n]  out y: f32[?n]  for i<?n: y[i] = x[i] * x[i]"      ->   an operator of one operand
    call    = "square8", an instruction with  computes = "for l<8: y[l] = x[l] * x[l]"   ->   the same

The extents of an instruction are those of one call of it: as an operator it takes tensors of any extents, and the
calls tile them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256

from dovetail.base.errors import OperatorError, ParseError, PatternError
from dovetail.ir.functional.type_text import parse_type
from dovetail.ir.functional.types import Type as TermType
from dovetail.ir.graph.graph import Type
from dovetail.ir.graph.operator import Operator
from dovetail.ir.index import Index, variable
from dovetail.ir.program import Loop, Program, Role, Statement
from dovetail.rewrite.graph_attributes import term_type
from dovetail.rewrite.patterns.form import Form, FormBuilder, Operation, Result
from dovetail.rewrite.shape import Value
from dovetail.rewrite.typed import match_type
from dovetail.targets.model import Instruction

PROGRAM, CALL = "program", "call"
"""What the right side of a pattern calls its program, and the call of an instruction."""
_IN = re.compile(r"\bin\s+([A-Za-z_]\w*)\s*:\s*([^\[\s]+\s*(?:\[[^\]]*\])?)\s*;?")
_OUT = re.compile(r"\bout\s+([A-Za-z_]\w*)\s*:")
_META = re.compile(r"\?([A-Za-z_]\w*)")


@dataclass(frozen=True, slots=True)
class Source:
    """A program with metas: what it takes, and the rest of its text, which makes ``outputs`` tensors."""

    name: str
    inputs: tuple[str, ...]
    types: tuple[TermType, ...]
    text: str
    outputs: int

    def applied(self, builder: FormBuilder, operands: tuple[int, ...]) -> Form:
        """The program on these operands, as the whole right side of a pattern."""
        made = builder.add(Operation(PROGRAM, operands, (), self.outputs))
        if self.outputs == 1:
            return builder.form(made)
        return builder.form(*(builder.add(Result(made, number)) for number in range(self.outputs)))


def read_source(pattern: str, text: str) -> Source:
    """The program of a pattern; a PatternError where its declarations cannot be read."""
    where = f"pattern '{pattern}', program"
    declared = _IN.findall(text)
    outputs = len(_OUT.findall(text))
    if not declared or not outputs:
        hint = "in x: f32[?n]  out y: f32[?n]  for i<?n: y[i] = ..."
        raise PatternError(f"the program declares no {'out' if declared else 'in'}", where=where, hint=hint)
    try:
        types = tuple(parse_type(kind.strip()) for _, kind in declared)
    except ParseError as problem:
        raise PatternError(problem.what, where=where, why=problem.where, hint="in x: f32[?n, ?k]") from None
    return Source(pattern, tuple(name for name, _ in declared), types, _IN.sub("", text), outputs)


@lru_cache(maxsize=1024)
def program_operator(source: Source, settings: tuple[tuple[str, Value], ...]) -> Operator:
    """The operator that a program is, its attributes being ``settings``; called by what it computes."""

    def function(*operands: Type) -> str:
        sizes: dict[str, Value] = dict(settings)
        kinds: dict[str, TermType] = {}
        for name, wanted, given in zip(source.inputs, source.types, operands, strict=True):
            if not match_type(wanted, term_type(given), kinds, sizes):
                raise OperatorError(f"'{name}' of the program of pattern '{source.name}' cannot be {given}")
        return _META.sub(lambda found: _spelled(source, found.group(1), sizes, kinds), source.text)

    return _operator(source.name, f"{source}{settings}", function, source.inputs)


@lru_cache(maxsize=1024)
def call_operator(instruction: Instruction) -> Operator:
    """The operator that computes, of whole tensors, what an instruction computes of its operands."""
    program = instruction.program
    inputs = tuple(t for t in program.tensors if t.role in (Role.IN, Role.CONST))

    def function(*operands: Type) -> str:
        (statement,) = program.statements
        extents: dict[str, Index] = {}
        for tensor, given in zip(inputs, operands, strict=True):
            if given.dtype != tensor.dtype or given.rank != len(tensor.shape):
                raise OperatorError(
                    f"{instruction.name} takes '{tensor.name}' as {tensor.dtype} of rank "
                    f"{len(tensor.shape)}, not {given}"
                )
            _note_extents(instruction, statement, tensor.name, given, extents)
        return _widened(instruction, program, extents)

    return _operator(instruction.name, f"{instruction.name}\n{program}", function, tuple(t.name for t in inputs))


def _note_extents(
    instruction: Instruction, statement: Statement, tensor: str, given: Type, extents: dict[str, Index]
) -> None:
    """What the extents of an operand say about the loops that walk it."""
    for access in (one for one in statement.reads() if one.tensor == tensor):
        for index, extent in zip(access.indices, given.shape, strict=True):
            walked = next((loop.name for loop in statement.loops if index == variable(loop.name)), None)
            if walked is None:
                raise OperatorError(f"{instruction.name} cannot be an operator", why=f"it reads {access}")
            if extents.setdefault(walked, extent) != extent:
                raise OperatorError(
                    f"{instruction.name} takes one extent for {walked}, not {extents[walked]} and {extent}"
                )


def _widened(instruction: Instruction, program: Program, extents: Mapping[str, Index]) -> str:
    """The statement over all of the operands, and the declaration of what it makes."""
    (statement,) = program.statements
    missing = [loop.name for loop in statement.loops if loop.name not in extents]
    if missing:
        raise OperatorError(
            f"{instruction.name} cannot be an operator", why=f"no operand says how long {missing[0]} is"
        )
    loops = tuple(Loop(loop.name, extents[loop.name]) for loop in statement.loops)
    made = next(t for t in program.tensors if t.name == statement.out.tensor)
    shape = ", ".join(str(index.substitute(_lasts(loops)) + 1) for index in statement.out.indices)
    return f"out {made.name}: {made.dtype}[{shape}]\n{replace(statement, loops=loops)}"


def _lasts(loops: tuple[Loop, ...]) -> dict[str, Index]:
    return {loop.name: loop.extent - 1 for loop in loops}


def _operator(name: str, content: str, function: object, operands: tuple[str, ...]) -> Operator:
    assert callable(function)
    plain = re.sub(r"\W+", "_", name)
    called = f"{plain}_{sha256(content.encode()).hexdigest()[:8]}"
    return Operator(called, function, operands, len(operands), False, {})


def _spelled(source: Source, name: str, sizes: Mapping[str, Value], kinds: Mapping[str, TermType]) -> str:
    if name in kinds:
        return str(kinds[name])
    value = sizes.get(name)
    if isinstance(value, Index):
        return f"({value})" if value.terms else str(value)
    if isinstance(value, int | float):
        return repr(value)
    raise OperatorError(f"'?{name}' in the program of pattern '{source.name}' is not bound to a number")
