"""Rules about operators, applied to graphs: round by round, everywhere at once.

In one round each value is looked at in order; matches that share an operation wait for the next round. A rule that
would change the type of a value is an error that names it.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from dovetail.base.errors import GraphError, RewriteError, RuleError
from dovetail.base.limits import DEFAULT_REWRITE_LIMITS, RewriteLimits
from dovetail.ir.graph.edit import Replacement, free_names, replace_values
from dovetail.ir.graph.graph import Attribute, Graph, Node, Type
from dovetail.ir.graph.verify import Operators, infer, verify
from dovetail.ops.table import OPERATORS
from dovetail.rewrite.conditions import Condition, Test
from dovetail.rewrite.graph_attributes import (
    ATTRIBUTE_FUNCTIONS,
    GRAPH_PREDICATES,
    GraphFacts,
    plain_attribute,
    term_type,
)
from dovetail.rewrite.graph_host import GraphHost, as_value
from dovetail.rewrite.graph_rule import GraphRule, compiled_graph_rule
from dovetail.rewrite.graph_text import AnyAttribute, AnyValue, AttributeTerm, FixedAttribute, GraphTerm
from dovetail.rewrite.match import Binding, match
from dovetail.rewrite.rule import RESULT, Rule
from dovetail.rewrite.shape import Value
from dovetail.rewrite.sizes import holds
from dovetail.rewrite.typed import match_type


@dataclass(frozen=True, slots=True)
class GraphRewrite:
    """A rule that can fire at ``value``: the operations it replaces, sink first, and what takes their place."""

    rule: Rule
    value: str
    inside: tuple[str, ...]
    replacement: Replacement


@dataclass(frozen=True, slots=True)
class GraphStep:
    """A rule that fired: which value, what was there and what is."""

    rule: str
    kind: str
    value: str
    before: tuple[str, ...]
    after: tuple[str, ...]

    def __str__(self) -> str:
        before, after = ("\n".join(f"  {line}" for line in part) for part in (self.before, self.after))
        return f"{self.rule} ({self.kind}) at {self.value}\n{before}\n->\n{after or '  ' + self.value + ' is there'}"


@dataclass(frozen=True, slots=True)
class GraphDerivation:
    """A graph and the rules that led from it to another; ``stopped`` names the limit that ended it too early."""

    start: Graph
    end: Graph
    steps: tuple[GraphStep, ...]
    stopped: str = ""

    def __str__(self) -> str:
        parts = [str(self.start), *map(str, self.steps), str(self.end)]
        return "\n\n".join([*parts, f"stopped by {self.stopped}"] if self.stopped else parts)

    def finished(self) -> GraphDerivation:
        """Itself; a RewriteError where a limit stopped it."""
        if not self.stopped:
            return self
        limit, _, why = self.stopped.partition("; ")
        raise RewriteError(f"rewriting the graph '{self.start.name}' was stopped by {limit}", why=why)


def derive_graph(
    graph: Graph,
    rules: Iterable[Rule],
    limits: RewriteLimits = DEFAULT_REWRITE_LIMITS,
    operators: Operators = OPERATORS,
) -> GraphDerivation:
    """The graph after all ``rules`` of the DSL level, tried in their order wherever they fire, until none does."""
    table = _by_label(rules)
    start, until = graph, time.monotonic() + limits.seconds
    types = verify(graph, operators)
    steps: list[GraphStep] = []
    while found := _round(graph, types, table, operators):
        if stopped := _over(found, steps, graph, limits, until):
            return GraphDerivation(start, graph, tuple(steps), stopped)
        steps += [_step(graph, one) for one in found]
        graph = _replaced(graph, types, found, operators)
        types = infer(graph, operators)
    return GraphDerivation(start, graph, tuple(steps))


def graph_rewrites(
    graph: Graph, rule: Rule, operators: Operators = OPERATORS, types: dict[str, Type] | None = None
) -> Iterator[GraphRewrite]:
    """Every way in which one rule can fire."""
    types = verify(graph, operators) if types is None else types
    host, read = GraphHost(graph, operators), compiled_graph_rule(rule)
    for node in graph.nodes:
        for value in node.results:
            yield from _rewrites(read, value, host, types, free_names(graph, "r"))


def apply_graph_rewrite(graph: Graph, found: GraphRewrite, operators: Operators = OPERATORS) -> Graph:
    """The graph after one rule has fired; a RuleError where that changes a type."""
    return _replaced(graph, verify(graph, operators), [found], operators)


def _by_label(rules: Iterable[Rule]) -> dict[str, list[GraphRule]]:
    table: dict[str, list[GraphRule]] = {}
    for rule in rules:
        read = compiled_graph_rule(rule)
        table.setdefault(read.shape.label, []).append(read)
    return table


def _round(
    graph: Graph, types: dict[str, Type], table: dict[str, list[GraphRule]], operators: Operators
) -> list[GraphRewrite]:
    """Matches that share no operation, the first that fires at each value."""
    host, names = GraphHost(graph, operators), free_names(graph, "r")
    found: list[GraphRewrite] = []
    taken: set[str] = set()
    for node in graph.nodes:
        value = node.results[0]
        ways = (way for read in table.get(host.label(value), ()) for way in _rewrites(read, value, host, types, names))
        way = next((way for way in ways if taken.isdisjoint(way.inside)), None)
        if way is not None:
            taken.update(way.inside)
            found.append(way)
    return found


def _rewrites(
    read: GraphRule, value: str, host: GraphHost, types: dict[str, Type], names: Iterator[str]
) -> Iterator[GraphRewrite]:
    for binding in match(read.shape, value, host):
        facts = _facts(read, GraphFacts(host.graph, types, value, binding))
        if facts is not None and all(_satisfied(condition, facts) for condition in read.conditions):
            nodes: list[Node] = []
            new = _built(read.after, facts.binding, names, nodes)
            if new is not None and new != value:
                yield GraphRewrite(read.rule, value, binding.inside, Replacement(((value, new),), tuple(nodes)))


def _facts(read: GraphRule, facts: GraphFacts) -> GraphFacts | None:
    """The facts with what ``types`` names; None where a type is another one."""
    settings, kinds = dict(facts.binding.settings), dict(facts.binding.types)
    for name, pattern in read.types:
        given = facts.types[facts.root] if name == RESULT else facts.type_of(name)
        if not match_type(pattern, term_type(given), kinds, settings):
            return None
    return replace(facts, binding=replace(facts.binding, settings=settings, types=kinds))


def _satisfied(condition: Condition, facts: GraphFacts) -> bool:
    if isinstance(condition, Test):
        return GRAPH_PREDICATES[condition.predicate].meaning(facts, *condition.metas) == condition.wanted
    return holds(condition, facts.binding.settings, {size.name: size for size in facts.graph.sizes})


def _built(term: GraphTerm, binding: Binding[str], names: Iterator[str], nodes: list[Node]) -> str | None:
    """The value that a term is; its nodes are added. None where an attribute cannot be made."""
    if isinstance(term, AnyValue):
        return binding.terms[term.name]
    operands = [_built(operand, binding, names, nodes) for operand in term.operands]
    attributes: dict[str, Attribute] = {}
    for name, attribute in term.attributes:
        value = _attribute(attribute, binding)
        if value is None and not isinstance(attribute, AnyAttribute):
            return None
        found = plain_attribute(value)
        if found is not None:
            attributes[name] = found
    known = tuple(operand for operand in operands if operand is not None)
    if len(known) < len(operands):
        return None
    nodes.append(Node(term.op, known, (name := next(names),), tuple(sorted(attributes.items()))))
    return name


def _attribute(term: AttributeTerm, binding: Binding[str]) -> Value:
    match term:
        case AnyAttribute(name):
            return binding.settings[name]
        case FixedAttribute(value):
            return as_value(value)
    return as_value(ATTRIBUTE_FUNCTIONS[term.function][1](*(_attribute(arg, binding) for arg in term.args)))


def _replaced(graph: Graph, types: dict[str, Type], found: list[GraphRewrite], operators: Operators) -> Graph:
    try:
        return replace_values(graph, [one.replacement for one in found], operators, types)
    except GraphError as problem:
        if len(found) == 1:
            names = "\n".join(str(node) for node in found[0].replacement.nodes)
            raise RuleError(
                f"rule '{found[0].rule.name}' breaks types: {problem.what}",
                where=problem.where or names,
                why=problem.why,
                hint="let 'types' and 'when' say for which values the rule is right",
            ) from None
    for one in found[:-1]:
        _replaced(graph, types, [one], operators)
    return _replaced(graph, types, found[-1:], operators)


def _step(graph: Graph, found: GraphRewrite) -> GraphStep:
    made = (graph.producer(value) for value in reversed(found.inside))
    before = tuple(str(node) for node in made if node is not None)
    ((old, new),) = found.replacement.values
    after = tuple(str(node) for node in found.replacement.nodes) or (f"{old} is {new}",)
    return GraphStep(found.rule.name, found.rule.kind, found.value, before, after)


def _over(found: list[GraphRewrite], steps: list[GraphStep], graph: Graph, limits: RewriteLimits, until: float) -> str:
    """The limit that forbids one more round."""
    if len(steps) + len(found) > limits.steps:
        stopped = f"the limit of {limits.steps} steps"
    elif time.monotonic() > until:
        stopped = f"the limit of {limits.seconds} seconds"
    elif steps and len(graph.nodes) > limits.nodes:
        stopped = f"the limit of {limits.nodes} nodes"
    else:
        return ""
    fired = Counter([step.rule for step in steps] + [one.rule.name for one in found])
    return f"{stopped}; rule '{fired.most_common(1)[0][0]}' kept firing"
