"""Where a definition is not yet a chain of single operations: the next part that must be taken out.

A single operation is a nest of maps around one of

    op(atom, ...)                                     a primitive of numbers, casts around it and around its operands
    reduce(op, z, view)                               a reduction
    reduce(op, z, map(mul, zip(view, view)))          a contraction; several such reductions inside one another

over *views*: variables, and what only moves or converts their elements.
"""

from __future__ import annotations

from collections.abc import Iterator

from dovetail.base.dtypes import DTYPES
from dovetail.ir.functional.term import Call, Lambda, Let, Literal, Meta, Pattern, Scalar, Term, Var, children
from dovetail.rewrite.unit_sites import LAYOUT

Path = tuple[int, ...]


def is_view(term: Term) -> bool:
    """Whether a term only says where elements lie, or converts them."""
    match term:
        case Var() | Literal() | Meta():
            return True
        case Scalar(name, args):
            return name in DTYPES and all(map(is_view, args))
        case Lambda(_, body):
            return is_view(body)
        case Pattern(name, _, args):
            return (name in LAYOUT or name == "map") and all(map(is_view, args))
    return False


def without_casts(term: Term, path: Path = ()) -> tuple[Term, Path]:
    """What is cast, and where it stands."""
    while isinstance(term, Scalar) and term.function in DTYPES and term.args:
        term, path = term.args[0], (*path, 0)
    return term, path


def next_part(term: Term) -> Path | None:
    """The first part of a stored value that must be computed and stored before it; None: it is a single operation."""
    return next(_parts(term, ()), None)


def _parts(term: Term, path: Path) -> Iterator[Path]:
    """Parts to take out of a nest, outermost first."""
    match term:
        case Pattern("map", _, (function, data)) if is_view(function):
            yield from _parts(data, (*path, 1))
        case Pattern("map", _, (function, *data)):
            for number in range(len(data)):
                yield from _operands(data[number], (*path, number + 1))
            yield from (
                _parts(function.body, (*path, 0, 0)) if isinstance(function, Lambda) else _parts(function, (*path, 0))
            )
        case Pattern("reduce", _, (Scalar() as function, start, data)):
            yield from () if is_view(start) else ((*path, 1),)
            yield from _reduced(function, data, (*path, 2))
        case Pattern("reduce" | "scan" | "call", _, _):
            return
        case Pattern(_, _, args):
            for number, arg in enumerate(args):
                yield from _parts(arg, (*path, number))
        case Let():
            yield (*path, 0)
        case Scalar():
            inner, at = without_casts(term, path)
            for number, arg in enumerate(children(inner)):
                if not is_view(without_casts(arg)[0]):
                    yield (*at, number)
        case Call():
            return


def _operands(data: Term, path: Path) -> Iterator[Path]:
    """Operands of a map that are computed."""
    if isinstance(data, Pattern) and data.name == "zip":
        for number, arg in enumerate(data.args):
            yield from () if is_view(arg) else ((*path, number),)
    elif not is_view(data):
        yield path


def _reduced(function: Scalar, data: Term, path: Path) -> Iterator[Path]:
    """What is reduced: a view, products of views, or reductions of the same kind of products."""
    if not isinstance(data, Pattern) or data.name != "map" or len(data.args) != 2:
        yield from () if is_view(data) else (path,)
        return
    mapped, operands = data.args
    found = list(_operands(operands, (*path, 1)))
    inside = _reduced_function(function, mapped)
    yield from found if inside else (() if is_view(data) else (path,))


def _reduced_function(function: Scalar, mapped: Term) -> bool:
    """Whether what is mapped is a product of views, or a reduction of such products by the same function."""
    body = mapped.body if isinstance(mapped, Lambda) else mapped
    if isinstance(body, Pattern) and body.name == "reduce" and len(body.args) == 3:
        same = body.args[0] == function and isinstance(body.args[2], Pattern) and body.args[2].name == "map"
        return same and not list(_reduced(function, body.args[2], ()))
    inner, _ = without_casts(body)
    return isinstance(inner, Scalar) and inner.function == "mul" and all(is_view(arg) for arg in inner.args)
