"""Rules about operators of a graph, read and checked once. An attribute that a rule does not name has its default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from dovetail.base.errors import ParseError, RuleError
from dovetail.base.suggest import closest
from dovetail.ir.functional.types import Type
from dovetail.ir.graph.operator import Operator
from dovetail.ops.table import OPERATORS
from dovetail.rewrite.conditions import Condition, Test, condition_metas, parse_condition
from dovetail.rewrite.graph_attributes import ATTRIBUTE_FUNCTIONS, GRAPH_PREDICATES
from dovetail.rewrite.graph_host import as_value
from dovetail.rewrite.graph_text import (
    AnyAttribute,
    AnyValue,
    AttributeTerm,
    FixedAttribute,
    GraphTerm,
    MadeAttribute,
    Operation,
    attribute_metas,
    operations,
    parse_graph_term,
    value_metas,
)
from dovetail.rewrite.rule import RESULT, Rule, check_words, need, parsed_part, parsed_type, type_metas
from dovetail.rewrite.shape import Anything, Node, Shape, Value

Operators = Mapping[str, Operator]


@dataclass(frozen=True, slots=True)
class GraphRule:
    """A rule of the DSL level that was read."""

    rule: Rule
    before: Operation
    after: GraphTerm
    shape: Node
    conditions: tuple[Condition, ...]
    types: tuple[tuple[str, Type], ...]


@cache
def compiled_graph_rule(rule: Rule) -> GraphRule:
    """The rule, read and checked once, against the operators there are."""
    check_words(rule)
    before, after = _term(rule, "before"), _term(rule, "after")
    if isinstance(before, AnyValue):
        raise RuleError(f"rule '{rule.name}' matches every value", where=str(rule), hint="an operator on its left side")
    if rule.choose:
        raise RuleError("a rule about operators chooses no sizes", where=f"rule '{rule.name}', choose")
    conditions = tuple(parsed_part(rule, "when", text, _condition) for text in rule.when)
    types = tuple(parsed_part(rule, "types", text, parsed_type) for text in rule.types)
    shape = _shape(rule, before)
    assert isinstance(shape, Node)
    found = GraphRule(rule, before, after, shape, conditions, types)
    _check_bound(found)
    return found


def _term(rule: Rule, key: str) -> GraphTerm:
    given = rule.before if key == "before" else rule.after
    if not isinstance(given, str):
        raise RuleError(f"'{key}' of a rule about operators is text", where=f"rule '{rule.name}'")
    try:
        term = parse_graph_term(given, f"rule '{rule.name}', {key}")
    except ParseError as problem:
        raise RuleError(problem.what, where=problem.where, hint=problem.hint) from None
    for found in operations(term):
        _check_operation(rule, key, found)
    return term


def _check_operation(rule: Rule, key: str, found: Operation) -> None:
    where = f"rule '{rule.name}', {key}: {rule.before if key == 'before' else rule.after}"
    if found.op not in OPERATORS:
        raise RuleError(f"unknown operator '{found.op}'", where=where, hint=closest(found.op, OPERATORS))
    known = OPERATORS[found.op]
    for name, attribute in found.attributes:
        if name not in known.attributes:
            hint = closest(name, known.attributes) if known.attributes else "it has none"
            raise RuleError(f"{found.op} has no attribute '{name}'", where=where, hint=hint)
        check_attribute(attribute, key, where)
    missing = [n for n, p in known.attributes.items() if p.required and n not in dict(found.attributes)]
    if missing:
        raise RuleError(f"{found.op} needs the attribute '{missing[0]}'", where=where, hint=f"{{{missing[0]} = ?a}}")


def check_attribute(attribute: AttributeTerm, key: str, where: str) -> None:
    """Raise a RuleError unless an attribute of the side ``key`` can be matched, or made."""
    if not isinstance(attribute, MadeAttribute):
        return
    if attribute.function not in ATTRIBUTE_FUNCTIONS:
        names = [name for name in ATTRIBUTE_FUNCTIONS if name]
        raise RuleError(
            f"unknown function '{attribute.function}'", where=where, hint=closest(attribute.function, names)
        )
    if key == "before" and (attribute.function or not all(isinstance(arg, FixedAttribute) for arg in attribute.args)):
        raise RuleError("an attribute that is made cannot be matched", where=where, hint="?p, and a condition on it")
    count = ATTRIBUTE_FUNCTIONS[attribute.function][0]
    if count not in (None, len(attribute.args)):
        raise RuleError(f"{attribute.function} takes {count} attributes, not {len(attribute.args)}", where=where)
    for arg in attribute.args:
        check_attribute(arg, key, where)


def _shape(rule: Rule, term: GraphTerm) -> Shape:
    if isinstance(term, AnyValue):
        return Anything(term.name)
    known = OPERATORS[term.op]
    named = {name: attribute_pattern(attribute) for name, attribute in term.attributes}
    defaults = {name: as_value(p.default) for name, p in known.attributes.items() if name not in named}
    operands = tuple(_shape(rule, operand) for operand in term.operands)
    settings = tuple({**named, **defaults}.items())
    return Node(f"{term.op}({len(operands)})", settings, operands, known.commutative and len(operands) > 1)


def attribute_pattern(attribute: AttributeTerm) -> Value:
    """What the matcher compares an attribute with."""
    match attribute:
        case AnyAttribute(name):
            return f"?{name}"
        case FixedAttribute(value):
            return as_value(value)
        case MadeAttribute(_, args):
            numbers = [arg.value for arg in args if isinstance(arg, FixedAttribute)]
            whole = tuple(number for number in numbers if isinstance(number, int))
            return whole if len(whole) == len(numbers) else tuple(float(number) for number in numbers)


def _condition(text: str) -> Condition:
    return parse_condition(text, {name: (row.arity, row.doc) for name, row in GRAPH_PREDICATES.items()})


def _check_bound(found: GraphRule) -> None:
    values, known = value_metas(found.before), set(attribute_metas(found.before))
    for name, kind in found.types:
        if name != RESULT:
            need(found.rule, "types", frozenset((name,)), values)
        known |= type_metas(kind)
    for condition in found.conditions:
        need(found.rule, "when", condition_metas(condition), values | known if isinstance(condition, Test) else known)
    need(found.rule, "after", value_metas(found.after), values)
    need(found.rule, "after", attribute_metas(found.after), known)
