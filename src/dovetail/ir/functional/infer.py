"""Types of terms and definitions. ``inference`` finds them."""

from __future__ import annotations

from collections.abc import Sequence

from dovetail.base.errors import TermError
from dovetail.ir.functional.inference import Env, Inference, Typing
from dovetail.ir.functional.show import show_line
from dovetail.ir.functional.term import Definition, Meta, Pattern, Places, Term, walk
from dovetail.ir.functional.type_errors import place, pretty
from dovetail.ir.functional.types import Function, Scalar, Tuple, Type, shape
from dovetail.ir.index import Index
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
    _check_names(definition)
    typing = typing_of(definition)
    for path, kind in typing.at.items():
        product = next((n for size in shape(kind)[0] for n in size.names() if " " in n), None)
        if product is not None and "?" not in product:
            where = place(definition.body, path)
            hint = "give one of them a fixed size"
            raise TermError(f"{product} is no size: a product of run-time sizes", where=where, hint=hint)
    return results_of(definition, typing)


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
            hint = "apply it to what it takes" if isinstance(inner, Function) else hint
            what = pretty(f"result '{name}' has type {kind}")
            raise TermError(what, why="a result is a number or an array of numbers", hint=hint)
        if owned.get(name, kind) != kind:
            raise TermError(f"result '{name}' has type {kind}, as a parameter it has type {owned[name]}")
    return types


def _check_names(definition: Definition) -> None:
    """Parameters have names of their own, sizes are declared, and nothing is left for a rule to fill in."""
    names = [param.name for param in definition.params] + [size.name for size in definition.sizes]
    again = next((name for name in names if names.count(name) > 1), None)
    if again is not None:
        raise TermError(f"'{again}' is the name of two parameters or sizes of '{definition.name}'")
    used = [(name, f"{param.name}: {param.type}") for param in definition.params for name in _sizes_in(param.type)]
    for term in walk(definition.body):
        if isinstance(term, Meta):
            raise TermError(
                f"'?{term.name}' in '{definition.name}'", why="a name with ? stands for any term, in rules only"
            )
        if isinstance(term, Pattern):
            used += [(name, show_line(term, 90)) for name in _sizes_of(term)]
    known = {size.name for size in definition.sizes}
    for name, where in used:
        if name not in known:
            hint = f"a run-time size is declared first: size {name} in 1..1024"
            raise TermError(f"unknown size '{name}'", where=f"in {where}", hint=hint)


def _sizes_in(kind: Type) -> list[str]:
    return [name for size in shape(kind)[0] for name in sorted(size.names())]


def _sizes_of(term: Pattern) -> list[str]:
    """The run-time sizes in the settings of a pattern."""
    found: set[str] = set()
    for setting in term.settings:
        if isinstance(setting, Index):
            found |= setting.names()
        elif isinstance(setting, Places):
            inside = [loop.extent for loop in setting.loops] + [*setting.indices, *(c.index for c in setting.where)]
            found |= frozenset().union(*(i.names() for i in inside)) - {loop.name for loop in setting.loops}
    return sorted(found)
