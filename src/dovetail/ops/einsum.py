"""Sums of products by the letters of their axes: ``ij,jk->ik``. A letter that is not in the result is summed."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_letters

from dovetail.base.errors import OperatorError
from dovetail.ir.graph.graph import Type
from dovetail.ir.graph.operator import operators
from dovetail.ir.index import ONE, Index
from dovetail.ops.text import Grid, same_dtype, summed


def einsum(*x: Type, equation: str) -> str:
    """The product of one or two operands, summed over what the result does not have."""
    if len(x) > 2:
        raise OperatorError(f"einsum takes one or two operands, not {len(x)}", hint="two at a time")
    terms, wanted = parsed(equation, [t.rank for t in x])
    extents = _extents(x, terms)
    names = {letter: f"d{number}" for number, letter in enumerate(extents)}
    out = Grid(tuple(names[letter] for letter in wanted), tuple(extents[letter] for letter in wanted))
    inner = ", ".join(f"{names[c]}<{extent}" for c, extent in extents.items() if c not in wanted)
    reads = []
    for number, (t, term) in enumerate(zip(x, terms, strict=True)):
        places = ("0" if have == ONE != extents[c] else names[c] for c, have in zip(term, t.shape, strict=True))
        reads.append(f"x{number}[{', '.join(places)}]")
    return summed(same_dtype(*x), out, inner, " * ".join(reads))


def parsed(equation: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """The letters of each operand and of the result; ``...`` becomes letters of its own, aligned at the last."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise OperatorError(f"'{equation}' is about {len(terms)} operands, not {len(ranks)}")
    free = [letter for letter in ascii_letters if letter not in equation]
    most = max((rank - len(_letters(term, equation)) for term, rank in zip(terms, ranks, strict=True)), default=0)
    if most > len(free):
        raise OperatorError(f"'{equation}' has more axes than there are letters")
    rest = "".join(free[: max(most, 0)])
    found = [_spelt(term, rank, rest, equation) for term, rank in zip(terms, ranks, strict=True)]
    if arrow:
        wanted = right.replace("...", rest)
    else:
        once = sorted(c for c in set(left) if c.isalpha() and left.count(c) == 1)
        wanted = (rest if "..." in left else "") + "".join(once)
    if len(set(wanted)) < len(wanted) or set(wanted) - set("".join(found)):
        raise OperatorError(f"the result of '{equation}' has a letter twice, or one that no operand has")
    return found, wanted


def _spelt(term: str, rank: int, rest: str, equation: str) -> str:
    missing = rank - len(_letters(term, equation))
    if missing < 0 or (missing and "..." not in term):
        raise OperatorError(f"'{term}' in '{equation}' stands for an operand of {rank} axes")
    return term.replace("...", rest[len(rest) - missing :])


def _letters(term: str, equation: str) -> str:
    letters = term.replace("...", "", 1)
    if not all(c in ascii_letters for c in letters):
        raise OperatorError(f"'{equation}' cannot be read", hint="letters, commas, ... and ->")
    return letters


def _extents(x: Sequence[Type], terms: Sequence[str]) -> dict[str, Index]:
    """The extent of each letter: that of the operands, of which some may have 1."""
    found: dict[str, Index] = {}
    for t, term in zip(x, terms, strict=True):
        for letter, extent in zip(term, t.shape, strict=True):
            known = found.setdefault(letter, extent)
            if known == ONE:
                found[letter] = extent
            elif extent not in (known, ONE):
                raise OperatorError(f"axis '{letter}' is {known} and {extent}")
    return found


OPERATORS = operators(einsum)
