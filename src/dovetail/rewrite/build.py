"""The right side of a rule with what its metas stand for put in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dovetail.ir.functional.patterns import apply
from dovetail.ir.functional.simplify import beta
from dovetail.ir.functional.term import (
    Call,
    Lambda,
    Let,
    Literal,
    Meta,
    Pattern,
    Places,
    Setting,
    Term,
    Var,
    children,
    free_names,
    fresh,
    substitute,
    walk,
    with_children,
)
from dovetail.ir.index import Condition, Index
from dovetail.ir.program import Loop
from dovetail.rewrite.match import Binding
from dovetail.rewrite.shape import Value
from dovetail.rewrite.sizes import indices_of, resolve


def build(after: Term, binding: Binding[Term]) -> Term | None:
    """The term that takes the place of what was matched; None where one of its sizes cannot be written down.

    Names that the rule binds are changed where they would catch a variable of what was matched.
    """
    if not all(_writable(part, binding) for part in walk(after)):
        return None
    taken = frozenset().union(*map(free_names, binding.terms.values())) if binding.terms else frozenset()
    return _build(after, binding, taken)


def applied(function: Term, args: tuple[Term, ...]) -> Term:
    """``function(args)`` without a call where there need not be one."""
    body = beta(function, args) if isinstance(function, Lambda) else None
    return apply(function, args) if body is None else body


def _writable(term: Term, binding: Binding[Term]) -> bool:
    match term:
        case Meta(name) if name not in binding.terms:
            value = binding.settings.get(name)
            return isinstance(value, Index) and value.is_constant
        case Pattern(_, settings, _):
            return all(
                resolve(index, binding.settings) is not None for setting in settings for index in indices_of(setting)
            )
    return True


def _build(term: Term, binding: Binding[Term], taken: frozenset[str]) -> Term:
    match term:
        case Meta(name):
            return binding.terms[name] if name in binding.terms else _number(name, binding.settings)
        case Call(Meta(name), args):
            return applied(binding.terms[name], tuple(_build(arg, binding, taken) for arg in args))
        case Lambda(params, body) if taken.intersection(params):
            names = _clear(params, taken | free_names(body))
            body = substitute(body, {old: Var(new) for old, new in zip(params, names, strict=True)})
            return Lambda(names, _build(body, binding, taken))
        case Let(name, value, body) if name in taken:
            (new,) = _clear((name,), taken | free_names(body))
            body = substitute(body, {name: Var(new)})
            return Let(new, _build(value, binding, taken), _build(body, binding, taken))
        case Pattern(_, settings, args):
            new_settings = tuple(_setting(setting, binding.settings) for setting in settings)
            return replace(term, settings=new_settings, args=tuple(_build(arg, binding, taken) for arg in args))
    return with_children(term, tuple(_build(child, binding, taken) for child in children(term)))


def _clear(names: tuple[str, ...], taken: frozenset[str]) -> tuple[str, ...]:
    found: list[str] = []
    for name in names:
        found.append(fresh(name, taken | set(found)))
    return tuple(found)


def _number(name: str, settings: Mapping[str, Value]) -> Term:
    """A size where a term is asked for."""
    value = settings[name]
    assert isinstance(value, Index), "checked by _writable"
    return Literal(value.const)


def _setting(setting: Setting, values: Mapping[str, Value]) -> Setting:
    match setting:
        case Index():
            return _size(setting, values)
        case str():
            return _given(values[setting[1:]]) if setting.startswith("?") else setting
        case Places(loops, indices, where):
            return Places(
                tuple(Loop(loop.name, _size(loop.extent, values)) for loop in loops),
                tuple(_size(index, values) for index in indices),
                tuple(Condition(_size(condition.index, values), condition.equal) for condition in where),
            )


def _given(value: Value) -> Setting:
    assert isinstance(value, Index | str | Places), "settings of terms are bound to settings of terms"
    return value


def _size(index: Index, values: Mapping[str, Value]) -> Index:
    found = resolve(index, values)
    assert found is not None, "checked by _writable"
    return found
