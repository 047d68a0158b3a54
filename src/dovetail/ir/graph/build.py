"""A graph made step by step, with the type of everything made so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dovetail.base.errors import GraphError
from dovetail.ir.graph.graph import Attribute, Graph, Node, Type, Value
from dovetail.ir.graph.verify import Operators, check_name, result_types
from dovetail.ir.program import Size


class Builder:
    """``x = b.input("x", t)``, ``y = b.add("relu", x)``, ``b.graph(y)``; a wrong node is refused at once."""

    def __init__(self, name: str, operators: Operators, sizes: Sequence[Size] = ()) -> None:
        self.name, self.operators = name, operators
        self.types: dict[str, Type] = {}
        self._sizes = {size.name: size for size in sizes}
        self._inputs: list[Value] = []
        self._constants: list[Value] = []
        self._nodes: list[Node] = []
        self._last = 0

    def input(self, name: str, t: Type) -> str:
        self._inputs.append(Value(name, t))
        return self._named(name, t)

    def constant(self, name: str, t: Type) -> str:
        self._constants.append(Value(name, t))
        return self._named(name, t)

    def add(self, op: str, *operands: str, **attributes: Attribute) -> str:
        """The value that a node with one result makes."""
        return self.add_many(op, operands, 1, attributes)[0]

    def add_many(
        self,
        op: str,
        operands: Sequence[str],
        count: int,
        attributes: Mapping[str, Attribute] | None = None,
        bodies: Sequence[Graph] = (),
    ) -> tuple[str, ...]:
        """The ``count`` values that a node makes."""
        results = tuple(self._fresh() for _ in range(count))
        node = Node(op, tuple(operands), results, tuple(sorted((attributes or {}).items())), tuple(bodies))
        for name, t in zip(results, result_types(node, self.types, self.operators, self._sizes), strict=True):
            self.types[name] = t
        self._nodes.append(node)
        return results

    def graph(self, *outputs: str) -> Graph:
        return Graph(
            self.name,
            tuple(self._inputs),
            outputs,
            tuple(self._nodes),
            tuple(self._constants),
            tuple(self._sizes.values()),
        )

    def _named(self, name: str, t: Type) -> str:
        check_name(name, Value(name, t))
        if name in self.types or name in self._sizes:
            raise GraphError(f"'{name}' is made twice", where=f"{name}: {t}")
        self.types[name] = t
        return name

    def _fresh(self) -> str:
        while (name := f"v{self._last}") in self.types or name in self._sizes:
            self._last += 1
        self._last += 1
        return name
