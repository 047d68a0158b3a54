"""The one matcher: from the sink of a pattern upwards through its operands.

It branches at commutative operations only (and where ``?f(shape)`` may take one of several operands apart). What it
walks over is a ``Host``: terms here, graphs in ``graph_host``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import repeat
from typing import Generic, Protocol, TypeVar

from dovetail.ir.functional.sizes import substitute
from dovetail.ir.functional.term import Places
from dovetail.ir.functional.types import Type
from dovetail.ir.index import Index, variable
from dovetail.rewrite.shape import Anything, Applied, Binder, Bound, Node, Shape, Split, Value

N = TypeVar("N")


@dataclass(frozen=True, slots=True)
class Opened(Generic[N]):
    """A binder taken apart: what stands outside it, the names it binds, and what it binds them in."""

    outside: tuple[N, ...]
    names: tuple[str, ...]
    body: N


@dataclass(frozen=True, slots=True)
class Binding(Generic[N]):
    """What the metas of a rule stand for; ``inside`` are the operations that were matched, sink first."""

    terms: Mapping[str, N]
    settings: Mapping[str, Value]
    types: Mapping[str, Type]
    inside: tuple[N, ...] = ()


class Host(Protocol[N]):
    """What the matcher must know of the thing it walks over."""

    def label(self, node: N) -> str:
        """The operation, with how many operands it has."""

    def settings(self, node: N) -> Mapping[str, Value]:
        """What is fixed when it is compiled, by position or name."""

    def operands(self, node: N) -> tuple[N, ...]:
        """Where its values come from."""

    def same(self, first: N, second: N) -> bool:
        """Whether both are the same value."""

    def variable(self, node: N) -> str | None:
        """The name of a variable; None for an operation."""

    def free(self, node: N) -> frozenset[str]:
        """Variables bound outside of it."""

    def opened(self, node: N, label: str, count: int, taken: frozenset[str]) -> Opened[N] | None:
        """A binder taken apart; names that are made up are not ``taken``."""

    def abstracted(self, names: tuple[str, ...], node: N) -> N:
        """``node`` as a function of the variables."""

    def splits(self, node: N) -> Iterator[tuple[N, N]]:
        """Each way of writing ``node`` as a function of one operand, and that operand."""

    def accepts(self, binding: Binding[N]) -> bool:
        """Whether what was found may be replaced."""


def match(shape: Shape, node: N, host: Host[N]) -> Iterator[Binding[N]]:
    """Every way in which ``node`` has the shape."""
    for binding in _match(shape, node, host, (), Binding({}, {}, {})):
        if host.accepts(binding):
            yield binding


def _match(shape: Shape, node: N, host: Host[N], scope: tuple[str, ...], binding: Binding[N]) -> Iterator[Binding[N]]:
    """``scope`` are the names, in what is walked over, of the variables that the pattern binds."""
    match shape:
        case Anything(name):
            if not scope or host.free(node).isdisjoint(scope):
                yield from _bind(name, node, host, binding)
        case Bound(level):
            name_ = host.variable(node)
            if name_ == scope[level] and name_ not in scope[level + 1 :]:
                yield binding
        case Node():
            yield from _node(shape, node, host, scope, binding)
        case Binder(label, count, outside, body):
            opened = host.opened(node, label, count, frozenset(scope))
            if opened is not None:
                for found in _all(outside, opened.outside, host, scope, binding):
                    yield from _match(body, opened.body, host, (*scope, *opened.names), found)
        case Applied(name, levels):
            names = tuple(scope[level] for level in levels)
            hidden = any(scope[level] in scope[level + 1 :] for level in levels)
            if not hidden and host.free(node).intersection(scope) <= set(names):
                yield from _bind(name, host.abstracted(names, node), host, binding)
        case Split(name, inner):
            for function, operand in host.splits(node):
                if host.free(function).isdisjoint(scope):
                    for found in _bind(name, function, host, binding):
                        yield from _match(inner, operand, host, scope, found)


def _node(shape: Node, node: N, host: Host[N], scope: tuple[str, ...], binding: Binding[N]) -> Iterator[Binding[N]]:
    if host.label(node) != shape.label or host.variable(node) in scope:
        return
    operands = host.operands(node)
    if not shape.commutative and not all(map(_likely, shape.operands, operands, repeat(host))):
        return
    found = _settings(shape.settings, host.settings(node), binding) if shape.settings else binding
    if found is None:
        return
    found = Binding(found.terms, found.settings, found.types, (*found.inside, node))
    yield from _all(shape.operands, operands, host, scope, found)
    if shape.commutative and not host.same(operands[0], operands[1]):
        exchanged = (operands[1], operands[0], *operands[2:])
        yield from _all(shape.operands, exchanged, host, scope, found)


def _likely(shape: Shape, node: N, host: Host[N]) -> bool:
    """Whether an operand may match, by its label alone."""
    return not isinstance(shape, Node) or host.label(node) == shape.label


def _all(
    shapes: tuple[Shape, ...], nodes: tuple[N, ...], host: Host[N], scope: tuple[str, ...], binding: Binding[N]
) -> Iterator[Binding[N]]:
    if len(shapes) != len(nodes):
        return
    if not shapes:
        yield binding
        return
    for found in _match(shapes[0], nodes[0], host, scope, binding):
        yield from _all(shapes[1:], nodes[1:], host, scope, found)


def _bind(name: str, node: N, host: Host[N], binding: Binding[N]) -> Iterator[Binding[N]]:
    if name not in binding.terms:
        yield Binding({**binding.terms, name: node}, binding.settings, binding.types, binding.inside)
    elif host.same(binding.terms[name], node):
        yield binding


def _settings(
    wanted: tuple[tuple[str, Value], ...], given: Mapping[str, Value], binding: Binding[N]
) -> Binding[N] | None:
    known = dict(binding.settings)
    for key, pattern in wanted:
        if key not in given or not match_setting(pattern, given[key], known):
            return None
    return Binding(binding.terms, known, binding.types, binding.inside)


def match_setting(pattern: Value, given: Value, known: dict[str, Value]) -> bool:
    """Whether a setting is the one wanted; what its metas stand for is added to ``known``."""
    if isinstance(pattern, str) and pattern.startswith("?"):
        return _same(known.setdefault(pattern[1:], given), given)
    if isinstance(pattern, Places) and isinstance(given, Places):
        return _match_places(pattern, given, known)
    if isinstance(pattern, Index) and isinstance(given, Index):
        return match_size(pattern, given, known)
    return type(pattern) is type(given) and pattern == given


def match_size(pattern: Index, given: Index, known: dict[str, Value]) -> bool:
    """Whether ``pattern`` is ``given`` for some value of the one meta in it that is not yet known."""
    values = {f"?{name}": value for name, value in known.items() if isinstance(value, Index)}
    pattern = substitute(pattern, values)
    unknown = [atom for atom, _ in pattern.terms if isinstance(atom, str) and "?" in atom]
    if not unknown:
        return pattern == given
    if len(unknown) > 1 or " " in unknown[0]:
        return False
    factor = pattern.coefficient(unknown[0])
    rest = given - pattern + Index(((unknown[0], factor),), 0)
    divisible = not any(c % factor for _, c in rest.terms) and rest.const % factor == 0
    if divisible:
        known[unknown[0][1:]] = Index(tuple((a, c // factor) for a, c in rest.terms), rest.const // factor)
    return divisible


def _same(first: Value, second: Value) -> bool:
    if isinstance(first, Places) and isinstance(second, Places):
        return _match_places(first, second, {})
    return type(first) is type(second) and first == second


def _match_places(pattern: Places, given: Places, known: dict[str, Value]) -> bool:
    """Places match up to the names of their loops."""
    if len(pattern.loops) != len(given.loops) or [c.equal for c in pattern.where] != [c.equal for c in given.where]:
        return False
    wanted, found = _numbered(pattern), _numbered(given)
    return len(wanted) == len(found) and all(match_size(a, b, known) for a, b in zip(wanted, found, strict=True))


def _numbered(places: Places) -> tuple[Index, ...]:
    """Extents, indices and conditions, over numbered loops."""
    names = {loop.name: variable(f"%{number}") for number, loop in enumerate(places.loops)}
    parts = (*(loop.extent for loop in places.loops), *places.indices, *(c.index for c in places.where))
    return tuple(part.substitute(names) for part in parts)
