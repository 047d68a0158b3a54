"""Messages about types: the two types, where they part, and where in the term that is."""

from __future__ import annotations

import re

from dovetail.base.errors import TermError
from dovetail.ir.functional.patterns import scalar_arity
from dovetail.ir.functional.show import show_line
from dovetail.ir.functional.solve import Clash
from dovetail.ir.functional.term import Literal, Pattern, Scalar, Term, children
from dovetail.ir.functional.types import Array, Function, Tuple, Type, Unknown
from dovetail.ir.functional.types import Scalar as Number

Path = tuple[int, ...]
_LONGEST = 90


def subterm(term: Term, path: Path) -> Term:
    """The term at ``path``: child ``path[-1]`` of ... child ``path[0]``."""
    for number in path:
        term = children(term)[number]
    return term


def place(root: Term, path: Path) -> str:
    """Where in ``root`` a message points to: what is around the term, and its path."""
    around = subterm(root, path[:-1]) if path else root
    at = f" (path {'.'.join(map(str, path))})" if path else ""
    return f"in {show_line(around, _LONGEST)}{at}"


def explain(what: str, at: tuple[Term, Path] | None, found: Type, expected: Type, clash: Clash) -> TermError:
    """``found`` where ``expected`` is needed, and where the two part."""
    where = None
    if at is not None:
        root, path = at
        where = place(root, path)
        parent = subterm(root, path[:-1]) if path else None
        special = _special(parent, clash)
        if special is not None:
            return TermError(pretty(special[0]), where=where, why=special[1], hint=special[2])
        what = f"'{show_line(subterm(root, path), _LONGEST)}' does not fit"
    apart = f"\nthey part at {clash.left} and {clash.right}" if (clash.left, clash.right) != (found, expected) else ""
    types = f"found   {found}\nneeded  {expected}" if at else f"{found}\n{expected}"
    text = pretty(f"{what}\0{types}{apart}\0{_hint(found, expected, clash) or ''}")
    what, why, hint = text.split("\0")
    return TermError(what, where=where, why=why, hint=hint or None)


def misuse(root: Term, path: Path, term: Term, what: str) -> TermError:
    """A primitive or pattern that has no meaning for what it is given."""
    hint = None
    if isinstance(term, Scalar) and "[" in what:
        count = scalar_arity(term.function)
        hint = f"arithmetic is on numbers: map({term.function}, {'x' if count == 1 else 'zip(x, y)'})"
    elif isinstance(term, Scalar) and " of " in what:
        hint = f"cast what it is given, e.g. {'i32' if ' of f' in what else 'f32'}(x)"
    elif isinstance(term, Scalar):
        hint = "a condition is a comparison: v > 0" if term.function == "select" else "cast one of them, e.g. i64(x)"
    elif isinstance(term, Literal):
        hint = f"cast what it meets, e.g. {'i32' if isinstance(term.value, int) else 'f32'}(x)"
    elif isinstance(term, Pattern) and what.startswith("get of"):
        hint = f"get is for tuples; an element of an array is view([: {term.settings[0]}], x)"
    inside = "" if isinstance(term, Literal) else f" in '{show_line(term, _LONGEST)}'"
    return TermError(pretty(what + inside), where=place(root, path) if path else None, hint=hint)


def pretty(text: str) -> str:
    """``text`` with the names of unknowns shortened: ``?_a12`` is ``?a``, a second one ``?a2``."""
    names: dict[str, str] = {}
    used: dict[str, int] = {}

    def short(match: re.Match[str]) -> str:
        if match.group() not in names:
            prefix = match.group(1)
            used[prefix] = used.get(prefix, 0) + 1
            names[match.group()] = f"?{prefix}{used[prefix] if used[prefix] > 1 else ''}"
        return names[match.group()]

    return re.sub(r"\?_([A-Za-z_]*?)\d+\b", short, text)


def _special(parent: Term | None, clash: Clash) -> tuple[str, str, str | None] | None:
    """Sizes that do not divide, in words."""
    if isinstance(parent, Pattern) and parent.name == "split" and not isinstance(clash.left, Array | Tuple | Function):
        size = clash.left
        if "?_k" in str(clash.right):
            what = f"{size} elements cannot be split into parts of {parent.settings[0]}"
            return (
                what,
                f"{size} is not a multiple of {parent.settings[0]}",
                "pad the data first, or split by a divisor",
            )
    return None


def _hint(found: Type, expected: Type, clash: Clash) -> str | None:
    if isinstance(found, Function) and not isinstance(expected, Function):
        return f"give it the {len(found.params)} terms it still takes"
    if isinstance(expected, Function) and not isinstance(found, Function):
        return "a function: \\v -> ..., map(f), add"
    if isinstance(found, Function) and isinstance(clash.left, Tuple) and len(found.params) > 1:
        return "a function of several values takes tuples of them: map(f, zip(x, y))"
    if isinstance(found, Unknown) and isinstance(expected, Array):
        return "repeat(n, 0) is an array of zeros; none fits any type"
    if isinstance(clash.right, Array) and not isinstance(clash.left, Array):
        return "split makes an array of arrays, repeat an array of one value"
    if isinstance(clash.left, Array) and not isinstance(clash.right, Array):
        return "map applies a function to every element"
    if isinstance(clash.left, Number) and isinstance(clash.right, Number):
        return f"a cast: {clash.right}(x)"
    return None
