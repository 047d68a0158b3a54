"""Costs: a number, or an expression of an instruction's parameters such as ``120 + m * n * k / 235``.

cost = number | parameter | cost (+ - * / // %) cost | -cost | (cost) | max(cost, ...) | min(cost, ...) | ceil(cost)
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from functools import lru_cache

from dovetail.base.errors import TargetError

_BINARY: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_CALLS: dict[str, Callable[..., float]] = {"max": max, "min": min, "ceil": math.ceil}


def evaluate_cost(text: str, params: Mapping[str, int] | None = None) -> float:
    """The cycles ``text`` stands for when the parameters have these values."""
    return _evaluate(_parse(text), params or {}, text)


def cost_names(text: str) -> frozenset[str]:
    """Parameters a cost depends on; a TargetError when it is not a cost."""
    return _names(text)


@lru_cache(maxsize=4096)
def _names(text: str) -> frozenset[str]:
    tree = _parse(text)
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - set(_CALLS)
    _evaluate(tree, dict.fromkeys(names, 1), text)
    return frozenset(names)


@lru_cache(maxsize=4096)
def _parse(text: str) -> ast.expr:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, RecursionError, MemoryError, ValueError) as problem:
        raise TargetError(f"'{text}' is not a cost", hint='a number or e.g. "4 + n / 8"') from problem


def _evaluate(node: ast.expr, params: Mapping[str, int], text: str) -> float:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        return node.value
    if isinstance(node, ast.Name) and node.id in params:
        return params[node.id]
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        left, right = _evaluate(node.left, params, text), _evaluate(node.right, params, text)
        if right == 0 and isinstance(node.op, ast.Div | ast.FloorDiv | ast.Mod):
            raise TargetError(f"the cost '{text}' divides by zero")
        return _BINARY[type(node.op)](left, right)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_evaluate(node.operand, params, text)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _CALLS and node.args:
        return _CALLS[node.func.id](*(_evaluate(arg, params, text) for arg in node.args))
    raise TargetError(
        f"'{text}' is not a cost: '{ast.unparse(node)}' has no meaning there",
        hint="numbers, parameters, + - * / // %, max, min, ceil",
    )
