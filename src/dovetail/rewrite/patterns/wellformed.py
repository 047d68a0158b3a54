"""Whether a pattern means anything, whatever graph it meets: a PatternError names what is wrong and where."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from dovetail.base.errors import PatternError, RuleError
from dovetail.base.suggest import closest
from dovetail.ir.functional.types import Type
from dovetail.ops.table import OPERATORS
from dovetail.rewrite.conditions import Condition, Test, condition_metas, parse_condition
from dovetail.rewrite.graph_attributes import GRAPH_PREDICATES
from dovetail.rewrite.graph_rule import check_attribute
from dovetail.rewrite.patterns.form import Chain, Each, Form, Hole, Item, Number, Operation, Result, reads
from dovetail.rewrite.rule import RESULT, STATED, parsed_type, type_metas

USUAL_ROUNDINGS = 64.0
"""What a replacement may be off by where nothing is stated: a few functions of a few roundings each."""
T = TypeVar("T")


def parsed_types(name: str, texts: tuple[str, ...]) -> tuple[tuple[str, Type], ...]:
    """``x: f32[?n, ?k]`` -> the hole and its type; each hole has one."""
    found = tuple(_parsed(name, "types", text, parsed_type) for text in texts)
    seen: dict[str, Type] = {}
    for (hole, kind), text in zip(found, texts, strict=True):
        if seen.setdefault(hole, kind) != kind:
            raise PatternError(
                f"the hole '?{hole}' is bound to two different types",
                where=f"pattern '{name}', types: {text}",
                why=f"it is {seen[hole]} above",
                hint="two holes, or one type",
            )
    return found


def parsed_conditions(name: str, texts: tuple[str, ...]) -> tuple[Condition, ...]:
    return tuple(_parsed(name, "when", text, _condition) for text in texts)


def stated_error(name: str, text: str) -> float:
    """``256 * eps`` -> 256."""
    if not text:
        return USUAL_ROUNDINGS
    found = STATED.match(text)
    if found is None:
        what = f"'{text}' states no number of roundings"
        raise PatternError(what, where=f"pattern '{name}', error", hint='error = "256 * eps"')
    return float(found.group(1))


def check_forms(
    name: str,
    before: Form,
    after: Form,
    types: tuple[tuple[str, Type], ...],
    conditions: tuple[Condition, ...],
    own: Mapping[str, bool],
) -> None:
    """Raise unless both sides can be read, and the right one says nothing that the left one does not bind."""
    _check_operations(f"pattern '{name}', before", before, "before", {})
    _check_operations(f"pattern '{name}', after", after, "after", own)
    _check_sinks(name, before, after)
    for side, form in (("before", before), ("after", after)):
        for chain in form.chains():
            _check_chain(f"pattern '{name}', {side}", chain)
    _check_items(name, before, after)
    _check_bound(name, before, after, types, conditions)


def _check_operations(where: str, form: Form, key: str, own: Mapping[str, bool]) -> None:
    for found in form.operations():
        if own.get(found.op):
            continue
        if found.op not in OPERATORS:
            raise PatternError(f"unknown operator '{found.op}'", where=where, hint=closest(found.op, OPERATORS))
        known, spliced = OPERATORS[found.op], key == "after"
        count = len(found.operands)
        if not spliced and (count < known.least or (count > len(known.operands) and not known.variadic)):
            least, most = known.least, len(known.operands)
            takes = f"{least} or more" if known.variadic else str(least) if least == most else f"{least} to {most}"
            raise PatternError(f"{found.op} takes {takes} operands, not {count}", where=where)
        for attribute, term in found.attributes:
            if attribute not in known.attributes:
                hint = closest(attribute, known.attributes) if known.attributes else "it has none"
                raise PatternError(f"{found.op} has no attribute '{attribute}'", where=where, hint=hint)
            try:
                check_attribute(term, key, where)
            except RuleError as problem:
                raise PatternError(problem.what, where=where, hint=problem.hint) from None
        missing = [n for n, p in known.attributes.items() if p.required and n not in dict(found.attributes)]
        if missing:
            hint = f"{{{missing[0]} = ?a}}"
            raise PatternError(f"{found.op} needs the attribute '{missing[0]}'", where=where, hint=hint)


def _check_sinks(name: str, before: Form, after: Form) -> None:
    for sink in before.sinks:
        if isinstance(before.parts[sink], Hole | Item | Number):
            hint = "an operator on its left side"
            raise PatternError("the pattern matches every value", where=f"pattern '{name}', before", hint=hint)
    if len(set(before.sinks)) < len(before.sinks):
        raise PatternError("the pattern makes one value twice", where=f"pattern '{name}', before")
    if len(before.sinks) != len(after.sinks):
        what = f"the left side makes {len(before.sinks)} values, the right side {len(after.sinks)}"
        raise PatternError(what, where=f"pattern '{name}'", hint="one for each: a, b = split(...)  a, b")
    if any(isinstance(part, Each) for part in before.parts):
        hint = "repeat(?n, ?h = ?x, add(?h, each(?b)))"
        raise PatternError("each stands outside of a repetition", where=f"pattern '{name}', before", hint=hint)


def _check_chain(where: str, chain: Chain) -> None:
    if chain.least < 1:
        raise PatternError(
            "the repetition can match zero steps",
            where=where,
            why=f"?{chain.count} >= {chain.least}: it would be found between any two operators",
            hint=f"repeat(?{chain.count}, ...), which has one step or more",
        )
    (sink,) = chain.step.sinks
    if not isinstance(chain.step.parts[sink], Operation | Result):
        raise PatternError(
            "the repetition can match zero steps",
            where=where,
            why="its step is no operator: any number of them is nothing at all",
            hint=f"an operator on ?{chain.previous}",
        )
    read = {place for part in chain.step.parts for place in reads(part)}
    if not any(part == Hole(chain.previous) and place in read for place, part in enumerate(chain.step.parts)):
        why = f"nothing in it reads ?{chain.previous}"
        raise PatternError("the steps of the repetition do not follow from each other", where=where, why=why)


def _check_items(name: str, before: Form, after: Form) -> None:
    """A hole is one value, or one for each step."""
    shared = _single(before)
    if both := sorted(before.items & shared):
        raise PatternError(
            f"the hole '?{both[0]}' is bound twice: to one value, and to one for every step",
            where=f"pattern '{name}', before",
            hint=f"each(?{both[0]}) everywhere, or nowhere",
        )
    if wrong := sorted(_single(after) & before.items):
        raise PatternError(
            f"'?{wrong[0]}' is a value for every step",
            where=f"pattern '{name}', after",
            hint=f"each(?{wrong[0]}), which is as many operands as there were steps",
        )
    if wrong := sorted(after.items - before.items):
        raise PatternError(f"'?{wrong[0]}' is not one value for every step", where=f"pattern '{name}', after")
    names = {chain.previous for chain in before.chains()}
    if wrong := sorted(names & shared):
        what = f"'?{wrong[0]}' is the step before, and also another value"
        raise PatternError(what, where=f"pattern '{name}', before", hint="another name for one of them")


def _single(form: Form) -> frozenset[str]:
    """Holes that stand for one value each; inside ``each``, none is known to be one."""
    found = {part.name for part in form.parts if isinstance(part, Hole)}
    for chain in form.chains():
        found |= {part.name for part in chain.step.parts if isinstance(part, Hole)} - {chain.previous}
    return frozenset(found)


def _check_bound(
    name: str,
    before: Form,
    after: Form,
    types: tuple[tuple[str, Type], ...],
    conditions: tuple[Condition, ...],
) -> None:
    values = before.holes
    sizes = set(before.attribute_metas) | {chain.count for chain in before.chains()}
    if both := sorted(values & sizes):
        what = f"'?{both[0]}' is a value and an attribute"
        raise PatternError(what, where=f"pattern '{name}', before", hint="another name for one of them")
    for hole, kind in types:
        if hole != RESULT:
            _need(name, "types", frozenset((hole,)), values)
        sizes |= type_metas(kind)
    for condition in conditions:
        known = values | sizes if isinstance(condition, Test) else frozenset(sizes)
        _need(name, "when", condition_metas(condition), known)
    _need(name, "after", after.holes, values)
    _need(name, "after", after.attribute_metas | {chain.count for chain in after.chains()}, frozenset(sizes))


def _need(name: str, key: str, used: frozenset[str], known: frozenset[str]) -> None:
    for missing in sorted(used - known):
        raise PatternError(
            f"'?{missing}' is not bound",
            where=f"pattern '{name}', {key}",
            why="nothing on the left side or in types says what it is",
            hint=f"bound are {', '.join(f'?{one}' for one in sorted(known))}"
            if known
            else "types that name it: x: ?t[?n]",
        )


def _condition(text: str) -> Condition:
    return parse_condition(text, {name: (row.arity, row.doc) for name, row in GRAPH_PREDICATES.items()})


def _parsed(name: str, key: str, text: str, parse: Callable[[str], T]) -> T:
    try:
        return parse(text)
    except RuleError as problem:
        where = f"pattern '{name}', {key}: {text}"
        raise PatternError(problem.what, where=where, why=problem.why, hint=problem.hint) from None
