"""A graph that grows node by node, with the data and the value of everything in it.

Values are computed as they are made, by the reference evaluator, so that the next node can be chosen with what is in
them in mind: how large they are, whether they are whole numbers, whether something discontinuous may look at them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
import numpy.typing as npt

from dovetail.base.dtypes import DTYPES
from dovetail.base.errors import DovetailError
from dovetail.ir.graph.bound import BoundGraph
from dovetail.ir.graph.evaluate import run_node
from dovetail.ir.graph.graph import Attribute, Graph, Node, Type, Value
from dovetail.ir.graph.verify import result_types
from dovetail.ir.index import constant
from dovetail.ops.table import OPERATORS

Array = npt.NDArray[np.generic]
EXACT = 2**20
"""Whole numbers up to here stay exact in f32 when a few of them are added."""
ELEMENTS = 4096


@dataclass(frozen=True, slots=True)
class Fact:
    """What is known of a value: its array; whether it is exact, whatever order its sums were made in."""

    name: str
    array: Array
    exact: bool

    @property
    def rank(self) -> int:
        return self.array.ndim

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def largest(self) -> float:
        return float(np.abs(self.array.astype(np.float64)).max(initial=0.0))


@dataclass(frozen=True, slots=True)
class Made:
    """A node to be: an exact operator makes exact results of exact operands."""

    op: str
    operands: tuple[Fact, ...]
    attributes: dict[str, Attribute]
    exact: bool
    results: int = 1


class Grown:
    """The graph so far."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.inputs: list[Value] = []
        self.constants: list[Value] = []
        self.nodes: list[Node] = []
        self.facts: dict[str, Fact] = {}
        self.types: dict[str, Type] = {}
        self.data: dict[str, Array] = {}

    def fresh(
        self, shape: Sequence[int], dtype: str = "f32", low: int = -3, high: int = 3, known: bool | None = None
    ) -> Fact:
        """A new input or constant of whole numbers between ``low`` and ``high``."""
        numbers = np.random.default_rng(self.rng.randrange(2**32)).integers(low, high + 1, tuple(shape))
        array = numbers.astype(DTYPES[dtype].numpy)
        is_constant = self.rng.random() < 0.5 if known is None else known
        name = f"{'c' if is_constant else 'x'}{len(self.facts)}"
        value = Value(name, Type(DTYPES[dtype], tuple(constant(n) for n in array.shape)))
        (self.constants if is_constant else self.inputs).append(value)
        self.types[name], self.data[name] = value.type, array
        self.facts[name] = Fact(name, array, True)
        return self.facts[name]

    def pick(self, accepts: Callable[[Fact], bool]) -> Fact | None:
        """One of the values that are accepted, later ones more often; new ones come from ``fresh``."""
        found = [fact for fact in self.facts.values() if fact.array.size and accepts(fact)]
        return self.rng.choices(found, range(1, len(found) + 1))[0] if found else None

    def add(self, made: Made) -> bool:
        """The node, if its operator takes it and its results are worth using: finite and not too large."""
        results = tuple(f"v{len(self.facts) + number}" for number in range(made.results))
        node = Node(made.op, tuple(f.name for f in made.operands), results, tuple(sorted(made.attributes.items())))
        try:
            types = result_types(node, self.types, OPERATORS, {})
            if any(np.prod([e.const for e in t.shape]) > ELEMENTS for t in types):
                return False
            arrays = run_node(node, self.types, OPERATORS, {f.name: f.array for f in made.operands}, {}, {})
        except DovetailError as error:
            raise AssertionError(f"{node} was meant to be valid: {error}") from error
        if not all(np.isfinite(a.astype(np.float64)).all() for a in arrays):
            return False
        exact = made.exact and all(f.exact for f in made.operands)
        if any(np.abs(a.astype(np.float64)).max(initial=0.0) > EXACT for a in arrays):
            return False
        self.nodes.append(node)
        for name, t, array in zip(results, types, arrays, strict=True):
            self.types[name] = t
            self.facts[name] = Fact(name, array, exact)
        return True

    def model(self) -> BoundGraph:
        """Everything that nothing reads is an output, and a few other values."""
        made = [name for node in self.nodes for name in node.results]
        read = {name for node in self.nodes for name in node.operands}
        outputs = tuple(name for name in made if name not in read or self.rng.random() < 0.1)
        used = read | set(outputs)
        inputs = tuple(v for v in self.inputs if v.name in used)
        constants = tuple(v for v in self.constants if v.name in used)
        graph = Graph("model", inputs, outputs, tuple(self.nodes), constants)
        return BoundGraph(graph, {v.name: self.data[v.name] for v in constants})

    def arguments(self, model: BoundGraph) -> list[Array]:
        return [self.data[v.name] for v in model.graph.inputs]
