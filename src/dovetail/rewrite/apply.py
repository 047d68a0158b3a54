"""Rules at places of a term: match, ask the conditions, choose sizes, build the right side, check its type.

A place is the way down from the outermost term: (1, 0) is child 0 of child 1, in the order of ``children``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product

from dovetail.base.errors import RuleError, TermError
from dovetail.ir.functional.simplify import same, simplify
from dovetail.ir.functional.term import Definition, Term
from dovetail.ir.functional.types import Type
from dovetail.ir.program import Role, Size
from dovetail.rewrite.build import build
from dovetail.rewrite.conditions import Condition, Facts, chosen, condition_metas, satisfied, values_of
from dovetail.rewrite.match import Binding, match
from dovetail.rewrite.rule import RESULT, Compiled, Rule, compiled
from dovetail.rewrite.term_host import TermHost
from dovetail.rewrite.typed import Path, Typed, match_type

Chosen = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Context:
    """What rules may know besides the term: ranges of sizes, constant parameters, what the user vouches for."""

    ranges: Mapping[str, Size] = field(default_factory=dict)
    constants: frozenset[str] = frozenset()
    allowed: frozenset[str] = frozenset()
    choices: int = 64
    """How many values are tried for a size that a rule may choose."""
    host: TermHost = field(default_factory=TermHost)


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A rule that can fire: what it replaces at ``at``, by what, and with which chosen sizes."""

    rule: Rule
    at: Path
    before: Term
    after: Term
    chosen: tuple[tuple[str, int], ...]
    whole: Typed
    """The term around, with the new part in its place."""


def context_of(definition: Definition, allowed: frozenset[str] = frozenset()) -> Context:
    """What is known of a definition as a whole."""
    constants = frozenset(param.name for param in definition.params if param.role is Role.CONST)
    return Context({size.name: size for size in definition.sizes}, constants, allowed)


def rewrite(definition: Definition, rule: Rule, at: Path, choose: Chosen | None = None) -> Definition | None:
    """The definition after the rule has fired at one place; None where it does not fire there."""
    found = next(rewrites(Typed.of(definition), rule, at, context_of(definition), choose), None)
    return None if found is None else replace(definition, body=simplify(found.whole.term))


def everywhere(definition: Definition, rule: Rule, allowed: frozenset[str] = frozenset()) -> Iterator[Rewrite]:
    """Every way in which the rule can fire: all places, outermost first, all matches and all sizes to choose."""
    whole = Typed.of(definition)
    context = context_of(definition, allowed)
    for at in whole.paths():
        yield from rewrites(whole, rule, at, context)


def rewrites(
    whole: Typed, rule: Rule, at: Path, context: Context, choose: Chosen | None = None, checked: bool = True
) -> Iterator[Rewrite]:
    """Every way in which the rule can fire at one place. The right side is simplified, and has the type it had before.

    ``choose`` fixes sizes that the rule leaves open. A rule that would change nothing does not fire. Where the type is
    not ``checked`` it is looked at when types are asked for.
    """
    read = compiled(rule)
    part = whole.at(at)
    for binding in match(read.shape, part, context.host):
        typed = _with_types(read, binding, whole, at)
        if typed is None:
            continue
        facts = Facts(typed, _Typing(whole, at, typed), context.ranges, context.constants, context.allowed)
        for given, picked in _choices(read, facts, context, choose or {}):
            new = build(read.after, given.binding)
            new = None if new is None else simplify(new)
            if new is not None and not same(new, part):
                around = replaced(whole, at, new, rule) if checked else whole.supposed(at, new)
                yield Rewrite(rule, at, part, new, picked, around)


@dataclass(frozen=True, slots=True)
class _Typing:
    """The types of what metas stand for, found when they are asked for."""

    whole: Typed
    at: Path
    binding: Binding[Term]

    def __call__(self, name: str) -> Type | None:
        if name in self.binding.terms:
            return self.whole.type_inside(self.at, self.binding.terms[name])
        return self.whole.types[self.at] if name == RESULT else self.binding.types.get(name)


def _with_types(read: Compiled, binding: Binding[Term], whole: Typed, at: Path) -> Binding[Term] | None:
    """The binding with the sizes and dtypes that ``types`` names; None where a type is another one."""
    if not read.types:
        return binding
    settings, types = dict(binding.settings), dict(binding.types)
    for name, pattern in read.types:
        given = whole.types[at] if name == RESULT else whole.type_inside(at, binding.terms[name])
        if given is None or not match_type(pattern, given, types, settings):
            return None
    return replace(binding, settings=settings, types=types)


def _choices(
    read: Compiled, facts: Facts, context: Context, choose: Chosen
) -> Iterator[tuple[Facts, tuple[tuple[str, int], ...]]]:
    """The facts with each choice of the free sizes for which all conditions hold."""
    free = {choice.name for choice in read.choices}
    early = [condition for condition in read.conditions if not condition_metas(condition) & free]
    if not _all(early, facts):
        return
    late = [condition for condition in read.conditions if condition_metas(condition) & free]
    sources = [
        (choose[choice.name],) if choice.name in choose else values_of(choice, facts.binding)[: context.choices]
        for choice in read.choices
    ]
    for values in product(*sources):
        binding = facts.binding
        picked = tuple(zip((choice.name for choice in read.choices), values, strict=True))
        for name, value in picked:
            binding = chosen(binding, name, value)
        if _all(late, new := replace(facts, binding=binding)):
            yield new, picked


def _all(conditions: list[Condition], facts: Facts) -> bool:
    return all(satisfied(condition, facts) for condition in conditions)


def replaced(whole: Typed, at: Path, new: Term, rule: Rule) -> Typed:
    """The term with a new part, whose type must be that of the old one: else a RuleError names the rule."""
    try:
        return whole.replaced(at, new)
    except TermError as problem:
        raise RuleError(
            f"rule '{rule.name}' breaks types: {problem.what}",
            where=f"{whole.at(at)}\n-> {new}",
            why="\n".join(filter(None, (problem.where, problem.why))),
            hint="let 'types' and 'when' say for which sizes the rule is right",
        ) from None
