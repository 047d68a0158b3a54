"""Messages about types: the two types, where they part, and where in the term that is."""

from __future__ import annotations

import re

from dovetail.base.errors import TermError
from dovetail.ir.functional.show import show_line
from dovetail.ir.functional.solve import Clash
from dovetail.ir.functional.term import Pattern, Scalar, Term, children
from dovetail.ir.functional.types import Array, Function, Tuple, Type

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
        what = f"{show_line(subterm(root, path), _LONGEST)}"
    types = f"{'it' if at else 'one'} has type  {found}\n{'needed is ' if at else 'the other '}  {expected}"
    apart = f"\nthey part at {clash.left} and {clash.right}" if (clash.left, clash.right) != (found, expected) else ""
    what = f"{what} does not fit" if at else what
    text = pretty(f"{what}\0{types}{apart}\0{_hint(found, expected, clash) or ''}")
    what, why, hint = text.split("\0")
    return TermError(what, where=where, why=why, hint=hint or None)


def misuse(root: Term, path: Path, term: Term, what: str) -> TermError:
    """A primitive or pattern that has no meaning for what it is given."""
    hint = None
    if isinstance(term, Scalar) and "[" in what:
        inside = f"zip({', '.join('xyz'[: len(term.args)])})" if len(term.args) > 1 else "x"
        hint = f"arithmetic is on numbers: map({term.function}, {inside})"
    elif isinstance(term, Scalar) and " of " in what:
        hint = f"cast what it is given, e.g. {'i32' if ' of f' in what else 'f32'}(x)"
    return TermError(pretty(f"{what} in {show_line(term, _LONGEST)}"), where=place(root, path), hint=hint)


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
    if isinstance(found, Function) and isinstance(clash.right, Tuple | Array) and len(found.params) > 1:
        return "a function of several values takes tuples of them: map(f, zip(x, y))"
    if isinstance(clash.left, Array) != isinstance(clash.right, Array):
        return "map applies a function to every element"
    return None
