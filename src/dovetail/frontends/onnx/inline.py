"""Bodies of functions, branches and loops put in place of the node that has them.

    y = f(a)        with  f(x) -> (z): t = Relu(x); z = Neg(t)        ->      t' = Relu(a); y = Neg(t')

Values made in the body get names that are free; those of the graphs around it stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dovetail.frontends.onnx.convert.attributes import malformed
from dovetail.frontends.onnx.model import (
    Attribute,
    AttributeReference,
    OnnxFunction,
    OnnxGraph,
    OnnxModel,
    OnnxNode,
    OnnxSparseTensor,
    OnnxTensor,
)


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """A node that is still to be taken, and the versions of the operators it is written in."""

    node: OnnxNode
    opsets: Mapping[str, int]


class Names:
    """Names that no value of the model has."""

    def __init__(self, model: OnnxModel) -> None:
        self._taken = {*_names_of(model.graph), *(n for f in model.functions.values() for n in _names_in(f.nodes))}
        self._last = 0

    def fresh(self, name: str) -> str:
        while True:
            self._last += 1
            if (found := f"{name}.{self._last}") not in self._taken:
                return found


def identity(source: str, result: str, opsets: Mapping[str, int]) -> Work:
    """``result = Identity(source)``."""
    return Work(OnnxNode("Identity", "", (source,), (result,)), opsets)


def constant(tensor: OnnxTensor | OnnxSparseTensor, result: str, opsets: Mapping[str, int]) -> Work:
    """``result = Constant()``."""
    kind = "sparse_value" if isinstance(tensor, OnnxSparseTensor) else "value"
    return Work(OnnxNode("Constant", "", (), (result,), {kind: tensor}), opsets)


def inline_function(node: OnnxNode, function: OnnxFunction, names: Names) -> list[Work]:
    """The nodes of ``function``, called by ``node``."""
    attributes = {**function.defaults, **node.attributes}
    if missing := [name for name in function.attributes if name not in attributes]:
        raise malformed(node, f"the function needs the attribute '{missing[0]}'")
    if len(node.inputs) > len(function.inputs) or len(node.outputs) > len(function.outputs):
        raise malformed(node, "it has more inputs or outputs than the function it calls")
    given = dict(zip(function.inputs, node.inputs, strict=False))
    renames, work = _bound({name: given.get(name, "") for name in function.inputs}, function.opsets, names)
    made = {name for inner in function.nodes for name in inner.outputs if name}
    renames.update({name: names.fresh(name) for name in made})
    nodes = [_with_attributes(inner, attributes) for inner in function.nodes]
    work += [Work(_renamed(inner, renames), function.opsets) for inner in nodes]
    results = zip(function.outputs, node.outputs, strict=False)
    return [*work, *(identity(renames.get(inner, inner), outer, function.opsets) for inner, outer in results if outer)]


def inline_graph(
    graph: OnnxGraph, operands: Sequence[str], results: Sequence[str], opsets: Mapping[str, int], names: Names
) -> list[Work]:
    """The nodes of a body, with its inputs and outputs bound to values of the graph around it."""
    given = dict(zip((value.name for value in graph.inputs), operands, strict=True))
    renames, work = _bound(given, opsets, names)
    renames.update({name: names.fresh(name) for name in {*_made(graph), *graph.initializers} - given.keys()})
    inits = [(name, tensor) for name, tensor in graph.initializers.items() if name not in given]
    work += [constant(tensor, renames[name], opsets) for name, tensor in inits]
    work += [Work(_renamed(inner, renames), opsets) for inner in graph.nodes]
    ends = [(renames.get(value.name, value.name), outer) for value, outer in zip(graph.outputs, results, strict=False)]
    return [*work, *(identity(inner, outer, opsets) for inner, outer in ends if outer)]


def _bound(given: Mapping[str, str], opsets: Mapping[str, int], names: Names) -> tuple[dict[str, str], list[Work]]:
    """New names of a body's inputs, and the nodes that make them what is given; what is left out is ""."""
    renames = {inner: names.fresh(inner) if outer else "" for inner, outer in given.items()}
    return renames, [identity(outer, renames[inner], opsets) for inner, outer in given.items() if outer]


def reads(node: OnnxNode) -> Iterator[str]:
    """Every value of the graph around that ``node`` needs, those that its bodies read too."""
    yield from (name for name in node.inputs if name)
    for body in bodies(node):
        yield from captured(body)


def bodies(node: OnnxNode) -> Iterator[OnnxGraph]:
    for value in node.attributes.values():
        if isinstance(value, OnnxGraph):
            yield value
        elif isinstance(value, tuple):
            yield from (item for item in value if isinstance(item, OnnxGraph))


def captured(graph: OnnxGraph) -> Iterator[str]:
    """Values that ``graph`` reads and does not make."""
    own = {*_made(graph), *graph.initializers, *(value.name for value in graph.inputs)}
    seen = dict.fromkeys(name for node in graph.nodes for name in reads(node))
    yield from (name for name in seen if name not in own)
    yield from (value.name for value in graph.outputs if value.name not in own and value.name not in seen)


def _made(graph: OnnxGraph) -> set[str]:
    return {name for node in graph.nodes for name in node.outputs if name}


def _renamed(node: OnnxNode, names: Mapping[str, str]) -> OnnxNode:
    """``node`` with other values; in its bodies those that they take from around."""
    attributes = {key: _renamed_attribute(value, names) for key, value in node.attributes.items()}
    inputs = tuple(names.get(name, name) for name in node.inputs)
    outputs = tuple(names.get(name, name) for name in node.outputs)
    return replace(node, inputs=inputs, outputs=outputs, attributes=attributes)


def _renamed_attribute(value: Attribute, names: Mapping[str, str]) -> Attribute:
    if isinstance(value, OnnxGraph):
        return _renamed_graph(value, names)
    graphs = tuple(item for item in value if isinstance(item, OnnxGraph)) if isinstance(value, tuple) else ()
    return tuple(_renamed_graph(item, names) for item in graphs) if graphs else value


def _renamed_graph(graph: OnnxGraph, names: Mapping[str, str]) -> OnnxGraph:
    own = {*_made(graph), *graph.initializers, *(value.name for value in graph.inputs)}
    seen = {old: new for old, new in names.items() if old not in own}
    nodes = tuple(_renamed(node, seen) for node in graph.nodes)
    outputs = tuple(replace(value, name=seen.get(value.name, value.name)) for value in graph.outputs)
    return replace(graph, nodes=nodes, outputs=outputs)


def _with_attributes(node: OnnxNode, given: Mapping[str, Attribute]) -> OnnxNode:
    """References to the caller's attributes replaced; one that is not given is left out."""
    found: dict[str, Attribute] = {}
    for key, value in node.attributes.items():
        if isinstance(value, AttributeReference):
            if value.name in given:
                found[key] = given[value.name]
        else:
            found[key] = _attribute_in(value, given)
    return replace(node, attributes=found)


def _attribute_in(value: Attribute, given: Mapping[str, Attribute]) -> Attribute:
    if isinstance(value, OnnxGraph):
        return replace(value, nodes=tuple(_with_attributes(node, given) for node in value.nodes))
    return value


def _names_of(graph: OnnxGraph) -> Iterator[str]:
    yield from graph.initializers
    yield from (value.name for value in (*graph.inputs, *graph.outputs))
    yield from _names_in(graph.nodes)


def _names_in(nodes: Iterable[OnnxNode]) -> Iterator[str]:
    for node in nodes:
        yield from node.inputs
        yield from node.outputs
        for body in bodies(node):
            yield from _names_of(body)
