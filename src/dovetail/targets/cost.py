"""Costs: a number, or an expression of an instruction's parameters such as ``120 + m * n * k / 235``.

cost = number | parameter | cost (+ - * / // %) cost | -cost | (cost) | max(cost, ...) | min(cost, ...) | ceil(cost)
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TypeGuard

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
_ARITY: dict[str, Sequence[int]] = {"max": range(2, 9), "min": range(2, 9), "ceil": (1,)}
_DIVISIONS = (ast.Div, ast.FloorDiv, ast.Mod)
_MOST_TEXT = 300
"""Characters of a cost; longer ones could nest deeper than Python recurses."""
Bounds = tuple[float, float]


def evaluate_cost(text: str, params: Mapping[str, int] | None = None) -> float:
    """The cycles ``text`` stands for when the parameters have these values."""
    try:
        return _evaluate(_parse(text), params or {}, text)
    except (OverflowError, ValueError):
        raise TargetError(f"the cost '{text}' is beyond all numbers") from None


def cost_names(text: str) -> frozenset[str]:
    """Parameters a cost depends on; a TargetError when it is not a cost."""
    return _names(text)


def cost_bounds(text: str, ranges: Mapping[str, Bounds]) -> Bounds | None:
    """Numbers between which a cost lies for all parameters in ``ranges``; None when it might divide by zero."""
    try:
        return _bounds(_parse(text), ranges)
    except (OverflowError, ValueError):
        return None


@lru_cache(maxsize=4096)
def _names(text: str) -> frozenset[str]:
    names = frozenset(node.id for node in ast.walk(_parse(text)) if isinstance(node, ast.Name)) - set(_CALLS)
    if not names:
        evaluate_cost(text)
    return names


@lru_cache(maxsize=4096)
def _parse(text: str) -> ast.expr:
    if len(text) > _MOST_TEXT:
        raise TargetError(f"a cost of {len(text)} characters", hint=f"at most {_MOST_TEXT}")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, RecursionError, MemoryError, ValueError) as problem:
        raise TargetError(f"'{text}' is not a cost", hint='a number or e.g. "4 + n / 8"') from problem
    _check(tree, text)
    return tree


def _check(node: ast.expr, text: str) -> None:
    """Raise unless ``node`` is built of what costs are built of."""
    inner: list[ast.expr] = []
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        inner = [node.left, node.right]
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = [node.operand]
    elif isinstance(node, ast.Call) and not node.keywords and len(node.args) in _ARITY.get(_called(node), ()):
        inner = node.args
    elif not isinstance(node, ast.Name) and not (isinstance(node, ast.Constant) and type(node.value) in (int, float)):
        raise TargetError(
            f"'{text}' is not a cost: '{ast.unparse(node)}' has no meaning there",
            hint="numbers, parameters, + - * / // %, max, min, ceil",
        )
    for part in inner:
        _check(part, text)


def _called(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else ""


def _evaluate(node: ast.expr, params: Mapping[str, int], text: str) -> float:
    if isinstance(node, ast.Name):
        if node.id not in params:
            raise TargetError(f"'{text}' is not a cost: '{node.id}' has no value there")
        return params[node.id]
    if isinstance(node, ast.BinOp):
        left, right = _evaluate(node.left, params, text), _evaluate(node.right, params, text)
        if right == 0 and isinstance(node.op, _DIVISIONS):
            raise TargetError(f"the cost '{text}' divides by zero")
        return _BINARY[type(node.op)](left, right)
    if isinstance(node, ast.UnaryOp):
        return -_evaluate(node.operand, params, text)
    if isinstance(node, ast.Call):
        return _CALLS[_called(node)](*(_evaluate(arg, params, text) for arg in node.args))
    assert isinstance(node, ast.Constant) and isinstance(node.value, int | float)
    return node.value


def _bounds(node: ast.expr, ranges: Mapping[str, Bounds]) -> Bounds | None:
    if isinstance(node, ast.Name):
        return ranges[node.id]
    if isinstance(node, ast.Constant):
        assert isinstance(node.value, int | float)
        return node.value, node.value
    parts = [_bounds(part, ranges) for part in ast.iter_child_nodes(node) if _is_part(part, node)]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    if isinstance(node, ast.UnaryOp):
        return -known[0][1], -known[0][0]
    if isinstance(node, ast.Call):
        function = _CALLS[_called(node)]
        return function(*(low for low, _ in known)), function(*(high for _, high in known))
    assert isinstance(node, ast.BinOp)
    return _binary_bounds(node.op, *known)


def _binary_bounds(operation: ast.operator, left: Bounds, right: Bounds) -> Bounds | None:
    """The least and the greatest result lie at ends of the operands; a remainder lies below its divisor."""
    if isinstance(operation, _DIVISIONS) and right[0] <= 0 <= right[1]:
        return None
    if isinstance(operation, ast.Mod):
        return min(0, right[0]), max(0, right[1])
    ends = [_BINARY[type(operation)](a, b) for a in left for b in right]
    return min(ends), max(ends)


def _is_part(part: ast.AST, node: ast.expr) -> TypeGuard[ast.expr]:
    """An operand, and not the name of a function or an operator."""
    return isinstance(part, ast.expr) and not (isinstance(node, ast.Call) and part is node.func)
