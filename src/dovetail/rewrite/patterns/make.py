"""What takes the place of a match: the nodes of the pattern's right side, on the values that were matched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from dovetail.base.errors import GraphError, PatternError
from dovetail.base.suggest import closest
from dovetail.ir.graph.bound import Array
from dovetail.ir.graph.edit import Replacement
from dovetail.ir.graph.graph import Attribute, Node, Type, Value
from dovetail.ir.graph.operator import Operator
from dovetail.ir.graph.verify import Operators, result_types
from dovetail.ir.index import Index
from dovetail.ir.program import Size
from dovetail.rewrite.graph_attributes import ATTRIBUTE_FUNCTIONS, plain_attribute
from dovetail.rewrite.graph_host import as_value
from dovetail.rewrite.graph_text import AnyAttribute, AttributeTerm, FixedAttribute
from dovetail.rewrite.patterns.find import Match
from dovetail.rewrite.patterns.form import Chain, Each, Form, Hole, Item, Number, Operation, Part, Result
from dovetail.rewrite.patterns.own import CALL, PROGRAM, call_operator, program_operator
from dovetail.rewrite.shape import Value as Setting
from dovetail.targets.model import Instruction

Calls = Mapping[str, Instruction]
"""Instructions that patterns may call, by name."""


@dataclass(frozen=True, slots=True, eq=False)
class Setup:
    """What all matches in one graph share. ``names`` are free."""

    operators: Operators
    types: Mapping[str, Type]
    names: Iterator[str]
    sizes: Mapping[str, Size] = field(default_factory=dict)
    calls: Calls = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Made:
    """New nodes and constants, the data of these, and the operators that the pattern brought along."""

    replacement: Replacement
    data: Mapping[str, Array]
    operators: Mapping[str, Operator]


def make(match: Match, setup: Setup) -> Made:
    """The replacement of a match; a PatternError where it cannot be made, or has another type."""
    maker = _Maker(match, setup)
    values = maker.form(match.read.after, {**dict(match.found.holes)}, None)
    for old, new in zip(match.found.sinks, values, strict=True):
        if maker.types[new] != setup.types[old]:
            raise PatternError(
                f"the replacement of pattern '{match.pattern.name}' has another type",
                where="\n".join(map(str, maker.nodes)) or f"{old} is {new}",
                why=f"'{old}' is {setup.types[old]}, its replacement is {maker.types[new]}",
                hint="let 'types' and 'when' say for which values the pattern is right",
            )
    replaced = tuple((old, new) for old, new in zip(match.found.sinks, values, strict=True) if old != new)
    constants = tuple(Value(name, maker.types[name]) for name in maker.data)
    own = {node.op: maker.operators[node.op] for node in maker.nodes if node.op not in setup.operators}
    return Made(Replacement(replaced, tuple(maker.nodes), constants), maker.data, own)


class _Maker:
    """Nodes made so far."""

    def __init__(self, match: Match, setup: Setup) -> None:
        self.match, self.setup = match, setup
        self.items = dict(match.found.items)
        self.types = _Layered(setup.types)
        self.operators: dict[str, Operator] = {}
        self.nodes: list[Node] = []
        self.data: dict[str, Array] = {}

    def form(self, form: Form, holes: Mapping[str, str], step: int | None) -> tuple[str, ...]:
        """The values that the sinks of a form are; ``step`` is the one whose values ``each`` means."""
        values: list[tuple[str, ...]] = []
        for part in form.parts:
            values.append(self._part(part, values, holes, step))
        return tuple(values[sink][0] for sink in form.sinks)

    def _part(
        self, part: Part, values: list[tuple[str, ...]], holes: Mapping[str, str], step: int | None
    ) -> tuple[str, ...]:
        """The value of a part: one, but for several results and for ``each``."""
        match part:
            case Hole(name) | Item(name):
                if name in holes:
                    return (holes[name],)
                assert step is not None, "what each step has of its own is read in a step"
                return (self.items[name][step],)
            case Number(value):
                return (self._constant(value),)
            case Operation():
                return self._operation(part, tuple(one for place in part.operands for one in values[place]))
            case Result(operation, number):
                return (values[operation][number],)
            case Each(form):
                return tuple(self.form(form, holes, at)[0] for at in range(self._steps(form)))
            case Chain():
                return (self._chain(part, values[part.start][0], holes),)

    def _chain(self, chain: Chain, value: str, holes: Mapping[str, str]) -> str:
        count = self.match.settings[chain.count]
        assert isinstance(count, Index) and count.is_constant
        for step in range(count.const):
            (value,) = self.form(chain.step, {**holes, chain.previous: value}, step)
        return value

    def _steps(self, form: Form) -> int:
        lengths = {len(self.items[name]) for name in form.holes if name in self.items}
        if len(lengths) != 1:
            what = "each reads holes of several repetitions" if lengths else "each reads nothing that steps have"
            raise PatternError(what, where=f"pattern '{self.match.pattern.name}', after")
        return lengths.pop()

    def _operation(self, part: Operation, operands: tuple[str, ...]) -> tuple[str, ...]:
        known = self._known(part)
        attributes: dict[str, Attribute] = {}
        for name, term in part.attributes:
            found = plain_attribute(self._attribute(name, term))
            if found is not None:
                attributes[name] = found
        results = tuple(next(self.setup.names) for _ in range(part.results))
        node = Node(known, operands, results, tuple(sorted(attributes.items())))
        table = self.setup.operators if known in self.setup.operators else self.operators
        try:
            types = result_types(node, self.types, table, self.setup.sizes)
        except GraphError as problem:
            raise PatternError(
                f"pattern '{self.match.pattern.name}': {problem.what}",
                where=f"{node}\nin place of {', '.join(self.match.found.sinks)}",
                why=problem.why,
                hint="let 'types' and 'when' say for which values the pattern is right",
            ) from None
        self.types.update(zip(results, types, strict=True))
        self.nodes.append(node)
        return results

    def _known(self, part: Operation) -> str:
        """The name of the operator; that of a program or a call is made when it is first used."""
        pattern = self.match.pattern
        if part.op == PROGRAM and self.match.read.source is not None:
            named = {key: self.match.settings[key] for key in self.match.read.before.attribute_metas}
            own = program_operator(self.match.read.source, tuple(sorted(named.items())))
        elif part.op == CALL and pattern.call:
            instruction = self.setup.calls.get(pattern.call)
            if instruction is None:
                why = "the target file has no instruction of this name that is the call of a symbol"
                hint = closest(pattern.call, self.setup.calls) if self.setup.calls else "--target, a file with 'call'"
                raise PatternError(f"pattern '{pattern.name}' calls '{pattern.call}'", why=why, hint=hint)
            own = call_operator(instruction)
        else:
            return part.op
        self.operators[own.name] = own
        return own.name

    def _attribute(self, name: str, term: AttributeTerm) -> Setting:
        match term:
            case AnyAttribute(meta):
                return self.match.settings[meta]
            case FixedAttribute(value):
                return as_value(value)
        made = ATTRIBUTE_FUNCTIONS[term.function][1](*(self._attribute(name, arg) for arg in term.args))
        if made is None:
            where = f"pattern '{self.match.pattern.name}', after"
            raise PatternError(f"the attribute '{name}' cannot be made of what was matched", where=where)
        return as_value(made)

    def _constant(self, value: float) -> str:
        """A number of the dtype of what the pattern makes."""
        name, dtype = next(self.setup.names), self.setup.types[self.match.found.sinks[0]].dtype
        self.data[name] = np.array(value).astype(dtype.numpy)
        self.types[name] = Type(dtype, ())
        return name


class _Layered(dict[str, Type]):
    """Types of new values on top of those of a graph, which may be many."""

    def __init__(self, below: Mapping[str, Type]) -> None:
        super().__init__()
        self._below = below

    def __missing__(self, name: str) -> Type:
        return self._below[name]
