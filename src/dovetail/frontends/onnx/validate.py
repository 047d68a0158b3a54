"""What a model must be beyond its parts: known opsets, operators used as defined, names made once and before use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from dovetail.base.errors import LimitError, ModelError, UnsupportedError
from dovetail.base.limits import ModelLimits
from dovetail.base.words import printable
from dovetail.frontends.onnx.definitions import SUPPORTED, check_node
from dovetail.frontends.onnx.model import Attribute, AttributeReference, FunctionKey, OnnxFunction, OnnxModel, OnnxNode
from dovetail.frontends.onnx.scopes import CheckNode, graphs_of, ordered_graph, ordered_nodes
from dovetail.frontends.onnx.upgrade import OLDEST, upgrade

Functions = Mapping[FunctionKey, OnnxFunction]
IR_VERSIONS = (3, 13)
"""Formats of files; before the first there were no opsets."""


def validate(model: OnnxModel, limits: ModelLimits) -> OnnxModel:
    """``model`` with the nodes of each graph in an order in which everything is made before it is read."""
    if not IR_VERSIONS[0] <= model.ir_version <= IR_VERSIONS[1]:
        raise UnsupportedError(
            f"format version {model.ir_version}",
            f"versions {IR_VERSIONS[0]} to {IR_VERSIONS[1]} can be read",
            hint="save the model again with a current onnx package",
        )
    _check_opsets(model.opsets, "the model")
    functions = {key: _function(function, model.functions) for key, function in model.functions.items()}
    graph = ordered_graph(model.graph, (), _checker(model.opsets, functions, None))
    if not graph.outputs:
        raise ModelError("the model has no outputs", where=f"graph '{printable(graph.name)}'")
    _check_size(model, limits)
    return upgrade(replace(model, graph=graph, functions=functions))


def _check_opsets(opsets: Mapping[str, int], where: str) -> None:
    if not opsets:
        raise ModelError("no opset is imported: nothing says what operators mean", where=where)
    for domain, version in opsets.items():
        oldest, newest = SUPPORTED.get(domain, (version, version))
        if not oldest <= version <= newest:
            raise UnsupportedError(
                f"opset {version} of {domain or 'ai.onnx'}",
                f"opsets {oldest} to {newest} can be read",
                where=where,
                hint="onnx.version_converter, or another opset when exporting",
            )


def _function(function: OnnxFunction, functions: Functions) -> OnnxFunction:
    where = f"function '{printable(function.name)}'"
    _check_opsets(function.opsets, where)
    if 0 < function.opsets.get("", OLDEST) < OLDEST:
        raise UnsupportedError(f"opset {function.opsets['']} of a function", f"only {OLDEST} or newer", where=where)
    if len(set(function.inputs)) != len(function.inputs) or not all(function.inputs):
        raise ModelError("an input of a function has no name, or that of another", where=where)
    made = set(function.inputs)
    check = _checker(function.opsets, functions, {*function.attributes, *function.defaults})
    nodes = ordered_nodes(function.nodes, (made,), check)
    for name in function.outputs:
        if name not in made:
            raise ModelError(f"the output '{printable(name)}' is made by nothing", where=where)
    return replace(function, nodes=nodes)


def _checker(opsets: Mapping[str, int], functions: Functions, referable: set[str] | None) -> CheckNode:
    """A check of single nodes; ``referable`` are the attributes of the function they are in, None in a graph."""

    def check(node: OnnxNode, where: str) -> None:
        if node.domain not in opsets:
            raise ModelError(f"no opset of '{printable(node.domain or 'ai.onnx')}' is imported", where=where)
        function = functions.get((node.domain, node.op, node.overload))
        if function is not None:
            _check_call(node, function, where)
        elif node.domain in SUPPORTED:
            check_node(node, opsets[node.domain], where)
        for value in node.attributes.values():
            _check_reference(value, referable, where)

    return check


def _check_call(node: OnnxNode, function: OnnxFunction, where: str) -> None:
    for what, given, names in (
        ("inputs", node.inputs, function.inputs),
        ("outputs", node.outputs, function.outputs),
    ):
        if len(given) > len(names):
            raise ModelError(
                f"function '{printable(function.name)}' has {len(names)} {what} but is called with {len(given)}",
                where=where,
            )
    for name in function.attributes:
        if name not in node.attributes:
            raise ModelError(
                f"function '{printable(function.name)}' needs an attribute '{printable(name)}'", where=where
            )


def _check_reference(value: Attribute, referable: set[str] | None, where: str) -> None:
    if isinstance(value, AttributeReference) and value.name not in (referable or ()):
        raise ModelError(
            f"an attribute stands for '{printable(value.name)}'",
            where=where,
            why="no function around it has such an attribute",
        )


def _check_size(model: OnnxModel, limits: ModelLimits) -> None:
    """Functions do not call themselves, and their bodies in place of all calls are not too many nodes."""
    sizes: dict[FunctionKey, int] = {}
    for key in _callees_first(model.functions):
        sizes[key] = sum(_nodes_of(node, model.functions, sizes) for node in model.functions[key].nodes)
    total = sum(_nodes_of(node, model.functions, sizes) for node in model.graph.nodes)
    if total > limits.inlined_nodes:
        raise LimitError(
            f"the model has {total} nodes with all functions in place, more than the {limits.inlined_nodes} allowed",
            hint="ModelLimits(inlined_nodes=...) when the file can be trusted",
        )


def _callees_first(functions: Functions) -> list[FunctionKey]:
    """Each function after those it calls; depth first without recursion, as calls can be many deep."""
    calls = {key: iter(sorted(_calls(function.nodes, functions))) for key, function in functions.items()}
    done: dict[FunctionKey, None] = {}
    for start in functions:
        stack = {} if start in done else {start: None}
        while stack:
            key = next(reversed(stack))
            call = next((call for call in calls[key] if call not in done), None)
            if call is None:
                done[key] = stack.pop(key)
            elif call in stack:
                raise ModelError("a function calls itself", where=f"function '{printable(functions[key].name)}'")
            else:
                stack[call] = None
    return list(done)


def _nodes_of(node: OnnxNode, functions: Functions, sizes: dict[FunctionKey, int]) -> int:
    inner = sum(_nodes_of(part, functions, sizes) for graph in graphs_of(node) for part in graph.nodes)
    return 1 + inner + sizes.get((node.domain, node.op, node.overload), 0)


def _calls(nodes: Iterable[OnnxNode], functions: Functions) -> set[FunctionKey]:
    """The functions that ``nodes`` and the graphs inside them call."""
    keys = {(node.domain, node.op, node.overload) for node in nodes} & functions.keys()
    return keys.union(*(_calls(graph.nodes, functions) for node in nodes for graph in graphs_of(node)))
