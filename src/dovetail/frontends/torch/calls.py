"""Nodes of an FX graph read as calls, and converted; what cannot be converted says why."""

from __future__ import annotations

import operator
from collections.abc import Mapping

import torch
from torch.fx import Node

from dovetail.base.errors import GraphError, LimitError, ProgramError, UnsupportedError
from dovetail.frontends.torch.call import Argument, Call, Ref
from dovetail.frontends.torch.context import Context
from dovetail.frontends.torch.convert.table import CONVERSIONS
from dovetail.frontends.torch.elements import type_of
from dovetail.ir.graph.graph import Type

Names = dict[Node, tuple[str | None, ...]]
"""Our names of what a node makes."""


def is_item(node: Node) -> bool:
    """Whether ``node`` takes one of the results of another."""
    return node.op == "call_function" and node.target is operator.getitem


def refusal(node: Node, known: Mapping[Node, object]) -> str | None:
    """Why ``node`` cannot be converted; None if it can."""
    context = Context()
    try:
        names: Names = {}
        for operand in node.all_input_nodes:
            names[operand] = _given(context, operand, known)
        convert(context, node, names)
    except UnsupportedError as error:
        return error.reason
    except (GraphError, ProgramError, LimitError) as error:
        return error.what
    return None


def convert(context: Context, node: Node, names: Names) -> None:
    """Puts what ``node`` makes into the graph, and their names into ``names``."""
    if is_item(node):
        source, number = node.args
        names[node] = (names[source][number],)
        return
    call = _call(node, names)
    if call.op not in CONVERSIONS:
        raise call.unsupported("there is no conversion of it")
    made = CONVERSIONS[call.op](context, call)
    for number, (t, needed) in enumerate(zip(call.results, call.needed, strict=True)):
        name = made[number]
        if needed and (name is None or context.type(name) != t):
            is_ = "missing" if name is None else str(context.type(name))
            raise call.unsupported(f"result {number} is {is_}, PyTorch's is {t}")
        if name is not None:
            context.names.setdefault(name, node.name)
    names[node] = made


def bring_in(context: Context, node: Node, known: Mapping[Node, object]) -> str:
    """The value of ``node``, made elsewhere, as a constant or an input of the graph."""
    value = known.get(node)
    if isinstance(value, torch.Tensor):
        return context.kept(value)
    return context.input(type_of(node.meta["val"]))


def _given(context: Context, node: Node, known: Mapping[Node, object]) -> tuple[str, ...]:
    """All values of an operand, for a trial."""
    if isinstance(known.get(node), torch.Tensor):
        return (bring_in(context, node, known),)
    return tuple(context.input(t) for t in _types(node))


def _call(node: Node, names: Names) -> Call:
    target = node.target
    if not isinstance(target, torch._ops.OpOverload):
        raise UnsupportedError(str(getattr(target, "__name__", target)), "it is not an operator of ATen")
    arguments: dict[str, Argument] = {}
    for place, parameter in enumerate(target._schema.arguments):
        if place < len(node.args):
            given = node.args[place]
        elif parameter.name in node.kwargs:
            given = node.kwargs[parameter.name]
        else:
            given = parameter.default_value
        arguments[parameter.name] = _argument(given, names)
    types = _types(node)
    return Call(str(target), arguments, types, _needed(node, len(types)))


def _argument(given: object, names: Names) -> Argument:
    if isinstance(given, Node):
        (name,) = names[given]
        if name is None:
            raise UnsupportedError(str(given), "a result that was not made is needed")
        return Ref(name, given.meta["val"])
    if isinstance(given, list | tuple):
        return tuple(_argument(item, names) for item in given)
    return given if isinstance(given, bool | int | float | str | None) else str(given)


def _types(node: Node) -> tuple[Type, ...]:
    """The types of what ``node`` makes."""
    val = node.meta.get("val")
    values = val if isinstance(val, list | tuple) else (val,)
    found = []
    for value in values:
        if not isinstance(value, torch.Tensor):
            raise UnsupportedError(str(node.target), "it makes something that is not a tensor")
        found.append(type_of(value))
    return tuple(found)


def _needed(node: Node, count: int) -> tuple[bool, ...]:
    if not isinstance(node.meta.get("val"), list | tuple):
        return (True,)
    read = {user.args[1] for user in node.users if is_item(user) and user.users}
    whole = any(not is_item(user) for user in node.users)
    return tuple(whole or number in read for number in range(count))
