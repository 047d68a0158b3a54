"""Whether two programs read the same elements for every element they write: by isl, for all values of their sizes.

What a program computes is taken apart into the arithmetic, which must be spelled the same, and for each operand of it
the relation from the element written to the element read, which must be the same set.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dovetail.ir.domain import domain, index_text, variables
from dovetail.ir.expr import Apply, Bitcast, Cast, Expr, Literal, Position, Read
from dovetail.ir.index import Index
from dovetail.ir.program import Combine, Program, Role, Statement
from dovetail.poly.sets import Point, first_missing, set_text


def first_difference(one: Program, other: Program) -> str | None:
    """Words for where the two programs part; None when they read the same. They have no temporaries and no sums."""
    left, right = (_relations(program) for program in (one, other))
    if left.keys() != right.keys():
        return f"they compute different things: {_names(left)}, and {_names(right)}"
    for key, points in left.items():
        for first, second, side in ((points, right[key], "first"), (right[key], points, "second")):
            missing = _missing(first, second)
            if missing is not None:
                return f"operand {key[2]} of {key[1]}: only the {side} reads, for sizes, element and operand, {missing}"
    return None


def is_plain(program: Program) -> bool:
    """Whether each element is computed from elements of inputs, once."""
    plain = all(s.combine is Combine.SET and not s.seq and not s.reduced for s in program.statements)
    return plain and not any(t.role is Role.TEMP for t in program.tensors)


def _relations(program: Program) -> dict[tuple[str, str, int], tuple[str, ...]]:
    found: dict[tuple[str, str, int], tuple[str, ...]] = {}
    for statement in program.statements:
        operands: list[tuple[Index, ...]] = []
        arithmetic = _arithmetic(statement.value, operands)
        for number, indices in enumerate(((), *operands)):
            key = statement.out.tensor, arithmetic, number
            found[key] = (*found.get(key, ()), _points(program, statement, indices))
    return found


def _points(program: Program, statement: Statement, indices: Sequence[Index]) -> str:
    """``{ [sizes, element written, indices] }`` over all points of a statement."""
    sizes = variables(size.name for size in program.sizes)
    loops = variables(loop.name for loop in statement.loops)
    places = (*statement.out.indices, *indices)
    names = [f"e{number}" for number in range(len(places))]
    equal = [f"{name} = {index_text(index)}" for name, index in zip(names, places, strict=True)]
    return set_text((*sizes, *names), (*domain(program, statement), *equal), loops)


def _arithmetic(e: Expr, operands: list[tuple[Index, ...]]) -> str:
    """The value with its operands numbered; their indices are added to ``operands``."""
    match e:
        case Literal():
            return str(e)
        case Read(access):
            operands.append(access.indices)
            return f"{access.tensor}#{len(operands)}"
        case Position(index):
            operands.append((index,))
            return f"#{len(operands)}"
        case Apply(function, args):
            return f"{function}({', '.join(_arithmetic(arg, operands) for arg in args)})"
        case Cast(dtype, arg) | Bitcast(dtype, arg):
            return f"{type(e).__name__} {dtype}({_arithmetic(arg, operands)})"


def _missing(whole: tuple[str, ...], parts: tuple[str, ...]) -> Point | None:
    """The first point of one union that the other does not have."""
    return next(_all_missing(whole, parts), None)


def _all_missing(whole: tuple[str, ...], parts: tuple[str, ...]) -> Iterator[Point]:
    for points in whole:
        missing = first_missing(points, parts)
        if missing is not None:
            yield missing


def _names(relations: dict[tuple[str, str, int], tuple[str, ...]]) -> str:
    return ", ".join(sorted({arithmetic for _, arithmetic, _ in relations}))
