"""Patterns as data.

    Pattern("swish", "mul(?x, sigmoid(?x))", "silu(?x)")
    Pattern("qkv", "matmul(?x, ?q), matmul(?x, ?k), matmul(?x, ?v)",
            "a, b, c = split(matmul(?x, concat(?q, ?k, ?v){axis = 1})){sizes = (?m, ?m, ?m), axis = 1}  a, b, c",
            types=("x: ?t[?n, ?l]", "q: ?t[?l, ?m]", "k: ?t[?l, ?m]", "v: ?t[?l, ?m]"), when=("constant(?q)", ...))

``before`` is looked for, ``after`` takes its place; both are text or traced functions. ``types`` gives names to the
sizes and dtypes of what was matched, ``when`` says when the pattern may be used. What takes the place may also be a
``program`` over the holes, whose declarations are then types of them, or the ``call`` of an instruction of a target
file; in ``after`` they are operators of these names, so that operands can be adapted:
``program(?x, concat(?a, ?b){axis = 0})``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

from dovetail.base.errors import PatternError
from dovetail.ir.functional.types import Type
from dovetail.rewrite.conditions import Condition
from dovetail.rewrite.patterns.form import Form, FormBuilder, Hole
from dovetail.rewrite.patterns.own import CALL, PROGRAM, Source, read_source
from dovetail.rewrite.patterns.text import parse_form
from dovetail.rewrite.patterns.trace import traced
from dovetail.rewrite.patterns.wellformed import check_forms, parsed_conditions, parsed_types, stated_error

Side = str | Form


@dataclass(frozen=True, slots=True)
class Pattern:
    """``before`` may be replaced by ``after``, which gives the same values, but for ``error`` roundings of them."""

    name: str
    before: Side
    after: Side = ""
    types: tuple[str, ...] = ()
    when: tuple[str, ...] = ()
    program: str = ""
    call: str = ""
    error: str = ""
    doc: str = ""

    @staticmethod
    def traced(
        function: Callable[..., object],
        replacement: Callable[..., object] | str = "",
        *,
        name: str = "",
        when: tuple[str, ...] = (),
        types: tuple[str, ...] = (),
        program: str = "",
        call: str = "",
        error: str = "",
    ) -> Pattern:
        """The pattern that two Python functions describe: their parameters are the holes, annotations their types."""
        called = name or function.__name__.strip("_")
        before, annotated = traced(function, called)
        after: Side = replacement if isinstance(replacement, str) else traced(replacement, called)[0]
        return Pattern(called, before, after, (*annotated, *types), when, program, call, error, function.__doc__ or "")

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, eq=False)
class ReadPattern:
    """A pattern that was read and checked."""

    pattern: Pattern
    before: Form
    after: Form
    types: tuple[tuple[str, Type], ...]
    conditions: tuple[Condition, ...]
    source: Source | None
    """The program that ``after`` may use as an operator."""
    roundings: float

    @property
    def name(self) -> str:
        return self.pattern.name


@cache
def read_pattern(pattern: Pattern) -> ReadPattern:
    """The pattern, read and checked once; a PatternError says what is wrong with it."""
    if not pattern.name:
        raise PatternError("a pattern has no name", where=str(pattern.before))
    source = read_source(pattern.name, pattern.program) if pattern.program else None
    if pattern.program and pattern.call:
        raise PatternError("a program and a call", where=f"pattern '{pattern.name}'", hint="one of them")
    before, after = _form(pattern, "before"), _after(pattern, source)
    types = parsed_types(pattern.name, pattern.types)
    if source is not None and not pattern.after:
        types += tuple(zip(source.inputs, source.types, strict=True))
    conditions = parsed_conditions(pattern.name, pattern.when)
    check_forms(pattern.name, before, after, types, conditions, _own_names(pattern))
    return ReadPattern(pattern, before, after, types, conditions, source, stated_error(pattern.name, pattern.error))


def _own_names(pattern: Pattern) -> Mapping[str, bool]:
    return {PROGRAM: bool(pattern.program), CALL: bool(pattern.call)}


def _form(pattern: Pattern, key: str) -> Form:
    given = pattern.before if key == "before" else pattern.after
    return parse_form(given, f"pattern '{pattern.name}', {key}") if isinstance(given, str) else given


def _after(pattern: Pattern, source: Source | None) -> Form:
    """The right side; where none is given, the program on the holes that it calls by their names."""
    if pattern.after:
        return _form(pattern, "after")
    if source is None:
        hint = 'after = "silu(?x)", a program' + (', or after = "call(?x)"' if pattern.call else "")
        raise PatternError("nothing takes the pattern's place", where=f"pattern '{pattern.name}'", hint=hint)
    builder = FormBuilder()
    operands = tuple(builder.add(Hole(name)) for name in source.inputs)
    return source.applied(builder, operands)
