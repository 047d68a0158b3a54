"""Terms, definitions and their parts as text. ``text`` reads it back."""

from __future__ import annotations

import re

from dovetail.ir.functional.patterns import missing
from dovetail.ir.functional.term import (
    Call,
    Definition,
    Lambda,
    Let,
    Literal,
    Meta,
    Param,
    Pattern,
    Places,
    Scalar,
    Setting,
    Term,
    Var,
    children,
    print_with,
)
from dovetail.ir.primitives import PRIMITIVES
from dovetail.ir.program import Role

WIDTH = 100
"""Columns after which a term is broken over lines."""
_INDENT = "  "
_LOOSE = 0
_TIGHT = 100
_PLAIN = re.compile(r"\??[A-Za-z_][A-Za-z_0-9]*")


def show(term: Term, width: int = WIDTH) -> str:
    """``term`` as text, over several indented lines where it is longer than ``width``."""
    return _broken(term, width, "", 0)


def show_line(term: Term, longest: int = 0) -> str:
    """``term`` on one line, cut after ``longest`` characters where that is given."""
    text = _flat(term, _LOOSE)
    return text if not longest or len(text) <= longest else f"{text[: longest - 4]} ..."


def show_definition(definition: Definition, width: int = WIDTH) -> str:
    """``size`` lines, then ``def name(params) -> results = body``."""
    lines = [str(size) for size in definition.sizes]
    params = ", ".join(map(show_param, definition.params))
    head = f"def {definition.name}({params}) -> {', '.join(definition.results)} ="
    body = _flat(definition.body, _LOOSE)
    if len(head) + 1 + len(body) <= width and not isinstance(definition.body, Let):
        return "\n".join((*lines, f"{head} {body}"))
    return "\n".join((*lines, head, _INDENT + _broken(definition.body, width, _INDENT, 0)))


def show_param(param: Param) -> str:
    """``x: f32[8]``, ``const w: f32[8]``."""
    return f"{'' if param.role is Role.IN else f'{param.role.value} '}{param.name}: {param.type}"


def show_setting(setting: Setting) -> str:
    """A size, the name of a memory, an ``op=``, or places in brackets."""
    if isinstance(setting, Places):
        loops = ", ".join(map(str, setting.loops))
        where = f" where {', '.join(map(str, setting.where))}" if setting.where else ""
        return f"[{loops}{where}: {', '.join(map(str, setting.indices))}]"
    if isinstance(setting, str) and not _PLAIN.fullmatch(setting) and not setting.endswith("="):
        return f'"{setting}"'
    return str(setting)


def _flat(term: Term, binding: int) -> str:
    """``term`` on one line; in parentheses where it binds less than ``binding``."""
    match term:
        case Var(name):
            return name
        case Meta(name):
            return f"?{name}"
        case Literal(value):
            text = _number(value)
            return f"({text})" if text.startswith("-") and binding else text
        case Lambda(params, body):
            text = f"\\{' '.join(params)} -> {_flat(body, _LOOSE)}"
        case Let(name, value, body):
            text = f"let {name} = {_flat(value, _LOOSE)} in {_flat(body, _LOOSE)}"
        case Call(function, args):
            return f"{_flat(function, _TIGHT)}({', '.join(_flat(arg, _LOOSE) for arg in args)})"
        case Scalar() if _symbol(term):
            return _operation(term, binding)
        case Scalar(function, args):
            return _applied(function, [_flat(arg, _LOOSE) for arg in args])
        case Pattern(name, settings, args):
            return _applied(name, [*map(show_setting, settings), *(_flat(arg, _LOOSE) for arg in args)])
    return f"({text})" if binding else text


def _broken(term: Term, width: int, indent: str, used: int) -> str:
    """``term`` within ``width`` columns, of which the first line has ``used`` taken; later lines are indented."""
    line = _flat(term, _LOOSE)
    if len(indent) + used + len(line) <= width and not isinstance(term, Let):
        return line
    match term:
        case Let(name, value, body):
            bound = _broken(value, width, indent + _INDENT, len(name) + 7)
            return f"let {name} = {bound} in\n{indent}{_broken(body, width, indent, 0)}"
        case Lambda(params, body):
            deeper = indent + _INDENT
            return f"\\{' '.join(params)} ->\n{deeper}{_broken(body, width, deeper, 0)}"
        case Pattern() | Call() if children(term):
            return _broken_application(term, width, indent)
        case Scalar(function, args) if args and not _symbol(term):
            return _stacked(function, [], args, width, indent)
    return line


def _broken_application(term: Pattern | Call, width: int, indent: str) -> str:
    """A function stays on the line of what applies it: ``map(\\v ->``; the other terms follow below."""
    if isinstance(term, Call):
        return _stacked(_flat(term.function, _TIGHT), [], term.args, width, indent)
    return _stacked(term.name, list(map(show_setting, term.settings)), term.args, width, indent)


def _stacked(head: str, settings: list[str], args: tuple[Term, ...], width: int, indent: str) -> str:
    """Settings, short terms and the head of a function on the first line, each other term on lines of its own."""
    deeper = indent + _INDENT
    first = [*settings]
    while len(args) > 1 and isinstance(args[0], Var | Meta | Literal | Scalar) and not children(args[0]):
        first.append(_flat(args[0], _LOOSE))
        args = args[1:]
    lead = f"{head}({''.join(f'{text}, ' for text in first)}"
    if isinstance(args[0], Lambda):
        body = _broken(args[0].body, width, deeper, 0)
        lead += f"\\{' '.join(args[0].params)} ->\n{deeper}{body}"
        args = args[1:]
        lead += "," if args else ""
    lines = [_broken(arg, width, deeper, 0) for arg in args]
    return lead.rstrip() + (f"\n{deeper}" if lines else "") + f",\n{deeper}".join(lines) + ")"


def _symbol(term: Scalar) -> str | None:
    """How it is written between or before its terms; None where it is written like a function."""
    row = PRIMITIVES.get(term.function)
    if row is None or missing(term) or (row.name == "neg" and isinstance(term.args[0], Literal)):
        return None
    return row.symbol


def _operation(term: Scalar, binding: int) -> str:
    row = PRIMITIVES[term.function]
    if row.arity == 1:
        text = f"{row.symbol}{_flat(term.args[0], row.binding + 1)}"
    else:
        left, right = term.args
        text = f"{_flat(left, row.binding)} {row.symbol} {_flat(right, row.binding + 1)}"
    return f"({text})" if row.binding < binding else text


def _applied(name: str, parts: list[str]) -> str:
    return f"{name}({', '.join(parts)})" if parts else name


def _number(value: int | float | bool | None) -> str:
    if value is None or isinstance(value, bool):
        return {None: "none", True: "true", False: "false"}[value]
    return repr(value)


print_with(show, show_definition)
