"""Types of terms and definitions. ``inference`` finds them."""

from __future__ import annotations

from collections.abc import Sequence

from dovetail.base.errors import TermError
from dovetail.ir.functional.inference import Env, Inference, Typing
from dovetail.ir.functional.term import Definition, Term
from dovetail.ir.functional.type_errors import pretty
from dovetail.ir.functional.types import Scalar, Tuple, Type, shape
from dovetail.ir.program import Role, Size


def infer(term: Term, env: Env, sizes: Sequence[Size] = ()) -> Type:
    """The type of ``term`` where variables have the types ``env``; run-time sizes are numbers, too."""
    inference = Inference(sizes)
    found = inference.infer(term, env)
    inference.settle()
    return inference.resolve(found)


def types_of(term: Term, env: Env, sizes: Sequence[Size] = ()) -> Typing:
    """The type of ``term`` and of all terms in it."""
    inference = Inference(sizes)
    found = inference.infer(term, env)
    inference.settle()
    return inference.typing(found)


def check(definition: Definition) -> tuple[Type, ...]:
    """The types of the results of ``definition``, which must be well typed."""
    return results_of(definition, typing_of(definition))


def typing_of(definition: Definition) -> Typing:
    """The type of a definition's body and of all terms in it; paths begin at the body."""
    return types_of(definition.body, {param.name: param.type for param in definition.params}, definition.sizes)


def results_of(definition: Definition, typing: Typing) -> tuple[Type, ...]:
    """One type for each result; each must be numbers or an array of numbers, as its ``inout`` parameter is."""
    several = isinstance(typing.type, Tuple)
    types = typing.type.members if isinstance(typing.type, Tuple) else (typing.type,)
    if len(types) != len(definition.results):
        what = f"'{definition.name}' names {len(definition.results)} results, its body gives {typing.type}"
        raise TermError(what, hint="tuple(a, b) gives two" if not several else "one name for each member")
    owned = {param.name: param.type for param in definition.params if param.role is Role.INOUT}
    for name, kind in zip(definition.results, types, strict=True):
        inner = shape(kind)[1]
        if not isinstance(inner, Scalar):
            hint = "several results are a tuple of arrays, not an array of tuples" if isinstance(inner, Tuple) else None
            what = pretty(f"result '{name}' has type {kind}")
            raise TermError(what, why="a result is a number or an array of numbers", hint=hint)
        if owned.get(name, kind) != kind:
            raise TermError(f"result '{name}' has type {kind}, as a parameter it has type {owned[name]}")
    return types
