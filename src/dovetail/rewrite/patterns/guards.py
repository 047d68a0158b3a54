"""What a pattern asks for beyond its form: types of holes, and conditions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from dovetail.ir.functional.types import Array, Unknown
from dovetail.ir.functional.types import Type as TermType
from dovetail.ir.graph.graph import Graph, Type
from dovetail.rewrite.conditions import Condition, Test
from dovetail.rewrite.graph_attributes import GRAPH_PREDICATES, GraphFacts, term_type
from dovetail.rewrite.match import Binding
from dovetail.rewrite.patterns.pattern import ReadPattern
from dovetail.rewrite.patterns.search import Found
from dovetail.rewrite.rule import RESULT
from dovetail.rewrite.shape import Value
from dovetail.rewrite.sizes import holds
from dovetail.rewrite.typed import match_type


@dataclass(frozen=True, slots=True)
class Bound:
    """A match that its pattern allows: the sizes and dtypes that its types gave names to."""

    settings: Mapping[str, Value]
    kinds: Mapping[str, TermType]


def allowed(read: ReadPattern, found: Found, graph: Graph, types: Mapping[str, Type]) -> Bound | str:
    """What the match binds beside its values, or words for what the pattern does not allow."""
    settings, kinds = dict(found.settings), dict[str, TermType]()
    values = values_of(found)
    for name, wanted in read.types:
        for value in found.sinks[:1] if name == RESULT else values[name]:
            given = types[value]
            if not _same_rank(wanted, given) or not _match(wanted, given, kinds, settings):
                shown = "what it makes" if name == RESULT else f"?{name}, {value},"
                return f"{shown} is {given}, not {wanted}"
    if not read.conditions:
        return Bound(settings, kinds)
    binding = Binding({name: at[0] for name, at in values.items()}, settings, kinds, found.inside)
    facts = GraphFacts(graph, dict(types), found.sinks[0], binding)
    for condition, text in zip(read.conditions, read.pattern.when, strict=True):
        if not _satisfied(condition, facts, values):
            return f"'{text}' is not so"
    return Bound(settings, kinds)


def values_of(found: Found) -> dict[str, tuple[str, ...]]:
    """Each hole, and its values: one, or one for each step."""
    return {**{name: (value,) for name, value in found.holes}, **dict(found.items)}


def _satisfied(condition: Condition, facts: GraphFacts, values: Mapping[str, tuple[str, ...]]) -> bool:
    """A hole of a step is asked about at every step."""
    if not isinstance(condition, Test):
        return holds(condition, facts.binding.settings, {size.name: size for size in facts.graph.sizes})
    meaning = GRAPH_PREDICATES[condition.predicate].meaning
    steps = max((len(values.get(name, "1")) for name in condition.metas), default=1)
    for step in range(steps):
        terms = {name: at[step if len(at) > 1 else 0] for name, at in values.items() if len(at) in (1, steps)}
        binding = replace(facts.binding, terms={**facts.binding.terms, **terms})
        if meaning(replace(facts, binding=binding), *condition.metas) != condition.wanted:
            return False
    return True


def _match(wanted: TermType, given: Type, kinds: dict[str, TermType], settings: dict[str, Value]) -> bool:
    return match_type(wanted, term_type(given), kinds, settings)


def _same_rank(wanted: TermType, given: Type) -> bool:
    """``?t`` alone is any type; ``?t[?n, ?k]`` has two axes."""
    if isinstance(wanted, Unknown):
        return True
    rank = 0
    while isinstance(wanted, Array):
        wanted, rank = wanted.element, rank + 1
    return rank == given.rank
