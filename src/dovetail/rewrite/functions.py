"""Functions as terms: their application, and their shortest spelling."""

from __future__ import annotations

from dovetail.ir.functional.patterns import PATTERNS, apply, missing
from dovetail.ir.functional.term import Call, Lambda, Pattern, Scalar, Term, Var, free_names, substitute


def applied(function: Term, args: tuple[Term, ...]) -> Term:
    """``function(args)`` without a call where there need not be one."""
    if isinstance(function, Lambda) and len(function.params) == len(args):
        return substitute(function.body, dict(zip(function.params, args, strict=True)))
    return apply(function, args)


def shortened(function: Lambda) -> Term:
    """``\\\\a -> map(f, a)`` becomes ``map(f)``; other functions stay as they are."""
    params = tuple(Var(name) for name in function.params)
    match function.body:
        case Call(short, args) if args == params:
            pass
        case Scalar(name, args) if args[-len(params) :] == params:
            short = Scalar(name, args[: -len(params)])
        case Pattern(name, settings, args) if not PATTERNS[name].several and args[-len(params) :] == params:
            short = Pattern(name, settings, args[: -len(params)])
        case _:
            return function
    return function if missing(short) not in (0, len(params)) or free_names(short) & set(function.params) else short
