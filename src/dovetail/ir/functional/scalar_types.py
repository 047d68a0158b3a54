"""The type of scalar arithmetic, and the type that numbers written in it take.

Arithmetic is done in the join of its terms' types, small floats in f32, and has that type. A number takes the type of
what it meets. Comparisons are bool, ``orelse`` has the join itself: nothing is computed.
"""

from __future__ import annotations

from collections.abc import Iterable

from dovetail.base.dtypes import DTYPES, DType, Kind, compute_type, join
from dovetail.base.errors import ProgramError
from dovetail.ir.functional.solve import Equations
from dovetail.ir.functional.types import Scalar, Type, Unknown
from dovetail.ir.primitives import PRIMITIVES

BOOL = Scalar(DTYPES["bool"])
_NOT_OF_BOOL = ("sub", "neg", "floordiv", "mod", "shl", "shr")


def result_type(function: str) -> Scalar | None:
    """The type of the result where no term decides it."""
    target = function.removeprefix("bitcast_")
    if target in DTYPES:
        return Scalar(DTYPES[target])
    return BOOL if function in PRIMITIVES and PRIMITIVES[function].result == "bool" else None


def arithmetic(function: str, args: tuple[Type, ...], result: Type, known: Equations, default: bool) -> str | bool:
    """Type ``function`` of ``args``: True when done, False when too little is known, or what is wrong with it.

    With ``default``, numbers that meet no type take i64, or f32 where one is written as a float.
    """
    types = [known.known(arg) for arg in args]
    wrong = next((t for t in types if not isinstance(t, Scalar | Unknown)), None)
    if wrong is not None:
        return f"{function} of {known.resolve(wrong)}"
    target = function.removeprefix("bitcast_")
    if target in DTYPES:
        return _cast(function, DTYPES[target], types[0], known, default)
    if function == "select":
        clash = known.equate(types[0], BOOL)
        if clash is not None:
            return f"select by {clash.left}"
        types = types[1:]
    own = _own(types, known, default)
    if own is None:
        _number_of_numbers(function, types, result, known)
    if own is None or isinstance(own, str):
        return own or False
    computed = own if function == "orelse" else compute_type(own)
    refused = _refusal(function, computed)
    if refused is not None:
        return refused
    for kind in types:
        if isinstance(kind, Unknown):
            known.equate(kind, Scalar(computed))
    clash = known.equate(result, result_type(function) or Scalar(computed))
    return True if clash is None else f"{function} gives {clash.right}, where {clash.left} is needed"


def _number_of_numbers(function: str, types: list[Type], result: Type, known: Equations) -> None:
    """Arithmetic on numbers that have no type yet is one itself: all take the type of what it meets."""
    result = known.known(result)
    names = [t.name for t in types if isinstance(t, Unknown)]
    if not isinstance(result, Unknown) or result.name in known.numbers or len(names) < len(types):
        return
    if all(name in known.numbers for name in names):
        is_float = function in PRIMITIVES and PRIMITIVES[function].result == "float"
        known.numbers[result.name] = is_float or any(known.numbers[name] for name in names)
        known.news.append(result.name)
        for kind in types:
            known.equate(kind, result)


def _own(types: list[Type], known: Equations, default: bool) -> DType | str | None:
    """The joined type; None when a type is still to come, text when there is no such type."""
    dtypes = [t.dtype for t in types if isinstance(t, Scalar)]
    names = [t.name for t in types if isinstance(t, Unknown)]
    if not all(name in known.numbers or name in known.nothing for name in names):
        return None
    if not dtypes:
        number = any(known.numbers.get(name, False) for name in names)
        return DTYPES["f32" if number else "i64"] if default else None
    try:
        return _joined(dtypes)
    except ProgramError as error:
        return error.what


def _joined(dtypes: Iterable[DType]) -> DType:
    first, *rest = dtypes
    for other in rest:
        first = join(first, other)
    return first


def _cast(function: str, target: DType, arg: Type, known: Equations, default: bool) -> str | bool:
    if isinstance(arg, Unknown):
        if not default or not (arg.name in known.numbers or arg.name in known.nothing):
            return False
        number = Scalar(DTYPES["f32" if known.numbers.get(arg.name) else "i64"])
        known.equate(arg, number)
        arg = number
    assert isinstance(arg, Scalar)
    if function != target.name and (arg.dtype.bits != target.bits or target.kind is Kind.BOOL):
        return f"{function} of {arg}: the widths differ" if arg.dtype.bits != target.bits else f"{function} of {arg}"
    return True


def _refusal(function: str, own: DType) -> str | None:
    result = PRIMITIVES[function].result if function in PRIMITIVES else "join"
    wrong = (
        (result == "float" and not own.is_float)
        or (result == "integer" and own.is_float)
        or (own.kind is Kind.BOOL and function in _NOT_OF_BOOL)
    )
    return f"{function} of {own}" if wrong else None
