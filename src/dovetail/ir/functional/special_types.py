"""Types of the patterns that no scheme describes: any number of terms, members of tuples, places."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from dovetail.ir.functional.scalar_types import arithmetic
from dovetail.ir.functional.size_facts import place_facts
from dovetail.ir.functional.term import Pattern, Places
from dovetail.ir.functional.type_errors import Path
from dovetail.ir.functional.types import Array, Function, Tuple, Type, Unknown, array
from dovetail.ir.index import Index, constant
from dovetail.ir.program import Combine

if TYPE_CHECKING:
    from dovetail.ir.functional.inference import Inference

Env = Mapping[str, Type]


def _zip(inference: Inference, term: Pattern, path: Path, env: Env) -> Type:
    """Arrays of one size."""
    _given(inference, term, path)
    size = inference.fresh_size()
    members = []
    for number, arg in enumerate(term.args):
        element = inference.fresh_type()
        inference.visit(arg, (*path, number), env, Array(size, element))
        members.append(element)
    return Array(size, Tuple(tuple(members)))


def _tuple(inference: Inference, term: Pattern, path: Path, env: Env) -> Type:
    _given(inference, term, path)
    return Tuple(tuple(inference.visit(arg, (*path, k), env, None) for k, arg in enumerate(term.args)))


def _array(inference: Inference, term: Pattern, path: Path, env: Env) -> Type:
    """Values of one type."""
    _given(inference, term, path)
    element = inference.fresh_type()
    for number, arg in enumerate(term.args):
        inference.visit(arg, (*path, number), env, element)
    return Array(constant(len(term.args)), element)


def _get(inference: Inference, term: Pattern, path: Path, env: Env) -> Type:
    """A member, as soon as it is known how many there are."""
    (number,) = term.settings
    tuple_type: Type = inference.fresh_type("t")
    result = inference.fresh_type("r")

    def attempt(default: bool) -> str | bool:
        found = inference.known(tuple_type)
        if isinstance(found, Unknown) or not isinstance(number, Index) or not number.is_constant:
            return False
        if not isinstance(found, Tuple):
            return f"get of {inference.resolve(found)}"
        if not 0 <= number.const < len(found.members):
            return f"member {number} of {inference.resolve(found)}"
        clash = inference.equate(result, found.members[number.const])
        return clash is None or f"member {number} is {clash.right}, where {clash.left} is needed"

    if term.args:
        inference.visit(term.args[0], (*path, 0), env, tuple_type)
    inference.wait(path, term, attempt, (tuple_type,))
    return result if term.args else Function((tuple_type,), result)


def _view(inference: Inference, term: Pattern, path: Path, env: Env) -> Type:
    """The data is indexed in as many dimensions as there are indices; the result is over the loops."""
    (places,) = term.settings
    element = inference.fresh_type()
    if not isinstance(places, Places):
        return _unplaced(inference, term, path, env)
    sizes = tuple(inference.fresh_size() for _ in places.indices)
    data = array(sizes, element)
    result = array(tuple(loop.extent for loop in places.loops), element)
    if term.args:
        inference.visit(term.args[0], (*path, 0), env, data)
    inference.facts += ((path, fact) for fact in place_facts(places, sizes, inference.ranges))
    return result if term.args else Function((data,), result)


def _scatter(inference: Inference, term: Pattern, path: Path, env: Env) -> Type:
    """The data is over the loops; with an ``op=`` its elements are combined, in the type that is computed in."""
    combine, *sizes, places = term.settings
    if not isinstance(places, Places) or not isinstance(combine, str):
        return _unplaced(inference, term, path, env)
    element: Type = inference.fresh_type()
    data = array(tuple(loop.extent for loop in places.loops), element)
    if len(sizes) != len(places.indices):
        raise inference.misuse(path, term, f"{len(sizes)} sizes for {len(places.indices)} indices")
    if term.args:
        inference.visit(term.args[0], (*path, 0), env, data)
    extents = tuple(size for size in sizes if isinstance(size, Index))
    inference.facts += ((path, fact) for fact in place_facts(places, extents, inference.ranges))
    function = Combine(combine).function
    stored = element
    if function is not None:
        stored = _combined(inference, term, path, element, function)
    result = array(extents, stored)
    return result if term.args else Function((data,), result)


def _steps(inference: Inference, term: Pattern, path: Path, env: Env) -> Type:
    """From the arrays to what is written of each: an array over the places' loops. The arrays keep their types."""
    _, *settings = term.settings
    writes = [
        (target.const, places)
        for target, places in zip(settings[1::3], settings[2::3], strict=True)
        if isinstance(target, Index) and isinstance(places, Places)
    ]
    if not writes:
        raise inference.misuse(path, term, "steps that write nothing")
    ranks = {target: len(places.indices) for target, places in writes}
    if sorted(ranks) != list(range(len(ranks))):
        raise inference.misuse(path, term, f"writes of arrays {', '.join(map(str, sorted(ranks)))}")
    sizes = [tuple(inference.fresh_size() for _ in range(ranks[k])) for k in range(len(ranks))]
    state = _one_or_all([array(extents, inference.fresh_type()) for extents in sizes])
    loops = [tuple(loop.extent for loop in places.loops) for _, places in writes]
    written = _one_or_all([array(extents, inference.fresh_type()) for extents in loops])
    params = (Function(state.members if isinstance(state, Tuple) else (state,), written), state)
    for target, places in writes:
        inference.facts += ((path, fact) for fact in place_facts(places, sizes[target], inference.ranges))
    for k in reversed(range(len(term.args))):
        inference.visit(term.args[k], (*path, k), env, params[k])
    rest = params[len(term.args) :]
    return Function(rest, state) if rest else state


def _one_or_all(types: list[Type]) -> Type:
    return types[0] if len(types) == 1 else Tuple(tuple(types))


def _combined(inference: Inference, term: Pattern, path: Path, element: Type, function: str) -> Type:
    """The type of elements combined by ``function``; elements may be arrays."""
    sizes = []
    element = inference.known(element)
    while isinstance(element, Array):
        sizes.append(element.size)
        element = inference.known(element.element)
    result, inner = inference.fresh_type("r"), element
    inference.wait(
        path, term, lambda default: arithmetic(function, (inner, inner), result, inference, default), (inner,)
    )
    return array(tuple(sizes), result)


def _unplaced(inference: Inference, term: Pattern, path: Path, env: Env) -> Type:
    """A ``view`` or ``scatter`` at places that are not known: a rule's ``?p``."""
    data, result = inference.fresh_type(), inference.fresh_type("r")
    if term.args:
        inference.visit(term.args[0], (*path, 0), env, data)
        return result
    return Function((data,), result)


def _call(inference: Inference, term: Pattern, path: Path, env: Env) -> Type:
    """A function of as many terms as follow it."""
    _given(inference, term, path)
    types = tuple(inference.visit(arg, (*path, k), env, None) for k, arg in enumerate(term.args) if k)
    result = inference.fresh_type("r")
    inference.visit(term.args[0], (*path, 0), env, Function(types, result))
    return result


def _given(inference: Inference, term: Pattern, path: Path) -> None:
    if not term.args:
        raise inference.misuse(path, term, f"{term.name} of nothing")


SPECIAL: dict[str, Callable[[Inference, Pattern, Path, Env], Type]] = {
    "zip": _zip,
    "tuple": _tuple,
    "array": _array,
    "get": _get,
    "view": _view,
    "scatter": _scatter,
    "steps": _steps,
    "call": _call,
}
