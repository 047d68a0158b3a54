"""Layouts of arrays as terms: dimensions moved, tiled, padded, added and dropped by transpose, split, join, pad."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dovetail.ir.functional.term import Lambda, Literal, Pattern, Places, Term, Var, free_names, fresh
from dovetail.ir.index import Index, constant


def transposed(term: Term) -> Term:
    return Pattern("transpose", (), (term,))


def joined(term: Term, depth: int = 0) -> Term:
    """Dimensions ``depth`` and the one inside it as one."""
    return at_depth(Pattern("join"), depth, term)


def split(size: Index, term: Term, depth: int = 0) -> Term:
    """Dimension ``depth`` in parts of ``size``."""
    return at_depth(Pattern("split", (size,)), depth, term)


def padded(more: Index, term: Term, depth: int = 0) -> Term:
    """``more`` elements that are not there after those of dimension ``depth``."""
    return at_depth(Pattern("pad", (constant(0), more), (Literal(None),)), depth, term)


def first(count: Index, term: Term, depth: int = 0) -> Term:
    """The first ``count`` elements of dimension ``depth``."""
    return at_depth(Pattern("slice", (constant(0), count, constant(1))), depth, term)


def at_depth(function: Term, depth: int, term: Term) -> Term:
    """``function`` of every part of ``term`` that lies ``depth`` dimensions inside it."""
    for _ in range(depth):
        function = Pattern("map", (), (function,))
    if isinstance(function, Pattern):
        return replace(function, args=(*function.args, term))
    raise AssertionError("layouts are patterns")


def moved(term: Term, source: int, target: int) -> Term:
    """Dimension ``source`` at place ``target``, the others in their order."""
    while source > target:
        source -= 1
        term = at_depth(Pattern("transpose"), source, term)
    while source < target:
        term = at_depth(Pattern("transpose"), source, term)
        source += 1
    return term


def reordered(term: Term, given: Sequence[str], wanted: Sequence[str]) -> Term:
    """A term whose dimensions are called ``given``, with them in the order ``wanted``."""
    order = list(given)
    for place, name in enumerate(wanted):
        at = order.index(name)
        term = moved(term, at, place)
        order.insert(place, order.pop(at))
    return term


def with_unit(term: Term, depth: int) -> Term:
    """One more dimension of one element, at ``depth``."""
    name = fresh("v", free_names(term))
    if depth == 0:
        return Pattern("array", (), (term,))
    return at_depth(_mapped(Lambda((name,), Pattern("array", (), (Var(name),)))), depth - 1, term)


def without_unit(term: Term, depth: int, rank: int) -> Term:
    """A dimension of one element dropped; of a row of one number, the number."""
    if rank == 1:
        return Pattern("view", (Places((), (constant(0),)),), (term,))
    return joined(term, depth if depth + 1 < rank else depth - 1)


def lifted(function: Term, rank: int) -> Term:
    """A function of two numbers as one of two arrays of them."""
    for _ in range(rank):
        function = Lambda(("a", "b"), Pattern("map", (), (function, Pattern("zip", (), (Var("a"), Var("b"))))))
    return function


def repeated(term: Term, sizes: Sequence[Index]) -> Term:
    """An array of ``sizes`` that is ``term`` everywhere."""
    for size in reversed(sizes):
        term = Pattern("repeat", (size,), (term,))
    return term


def mapped(function: Term, operands: Sequence[Term]) -> Term:
    """``function`` of the elements of the operands side by side."""
    data = operands[0] if len(operands) == 1 else Pattern("zip", (), tuple(operands))
    return Pattern("map", (), (function, data))


def _mapped(function: Term) -> Pattern:
    return Pattern("map", (), (function,))
