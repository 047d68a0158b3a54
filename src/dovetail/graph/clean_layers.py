"""Layers that a model spells out in arithmetic, found again: activations, norms, softmax.

d = sub(x, reduce_mean(x))                              y = layer_norm(x, scale, bias) {epsilon = eps}
v = reduce_mean(mul(d, d))                        ->
y = add(mul(div(d, sqrt(add(v, eps))), scale), bias)
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod, sqrt

from dovetail.graph.clean_rule import CleanRule, close, number, numbers, other, settings
from dovetail.graph.sheet import Sheet
from dovetail.ir.graph.graph import Node
from dovetail.ir.index import ONE

_MOST_FACTORS = 6


def _silu(sheet: Sheet, node: Node) -> str | None:
    for x, gate in _either(node):
        made = sheet.made_by(gate, "sigmoid")
        if made is not None and made.operands == (x,):
            return sheet.add("silu", x)
    return None


def _gelu(sheet: Sheet, node: Node) -> str | None:
    """A product of x, a half, and 1 + erf(x / sqrt(2)) or 1 + tanh(...)."""
    factors = _factors(sheet, node.results[0])
    rest = [f for f in factors if number(sheet, f) is None]
    half = prod(found for f in factors if (found := number(sheet, f)) is not None)
    if len(rest) != 2 or not close(half, 0.5):
        return None
    for x, gate in (rest, reversed(rest)):
        made = sheet.made_by(gate, "add")
        one = [] if made is None else [(a, c) for a, c in _either(made) if number(sheet, c) == 1.0]
        if not one or sheet.types[x] != sheet.types[node.results[0]]:
            continue
        inner = sheet.made_by(one[0][0], "erf", "tanh")
        if inner is not None and inner.op == "erf" and _scaled_by(sheet, inner.operands[0], x, sqrt(0.5)):
            return sheet.add("gelu", x)
        if inner is not None and inner.op == "tanh" and _cubic(sheet, inner.operands[0], x):
            return sheet.add("gelu", x, approximate="tanh")
    return None


def _factors(sheet: Sheet, value: str) -> list[str]:
    """What is multiplied to make ``value``; products that others read stay whole."""
    found: list[str] = []
    waiting = [value]
    while waiting and len(found) + len(waiting) <= _MOST_FACTORS:
        part = waiting.pop()
        made = sheet.made_by(part, "mul")
        if made is not None and (part == value or sheet.uses(part) == 1):
            waiting += made.operands
        else:
            found.append(part)
    return found + waiting


def _scaled_by(sheet: Sheet, value: str, x: str, factor: float) -> bool:
    """Whether ``value`` is x times ``factor``."""
    made = sheet.made_by(value, "mul", "div")
    if made is None or x not in made.operands:
        return False
    if made.op == "div":
        divisor = number(sheet, made.operands[1])
        return made.operands[0] == x and divisor not in (None, 0.0) and close(1.0 / (divisor or 1.0), factor)
    return close(number(sheet, other(made, x)), factor)


def _cubic(sheet: Sheet, value: str, x: str) -> bool:
    """Whether ``value`` is sqrt(2 / pi) * (x + 0.044715 * x**3)."""
    made = sheet.made_by(value, "mul")
    for inner, factor in [] if made is None else _either(made):
        total = sheet.made_by(inner, "add") if close(number(sheet, factor), 0.7978845608028654) else None
        if total is not None and x in total.operands:
            parts = sorted(_factors(sheet, other(total, x)), key=lambda f: f != x)
            rest = [f for f in parts if f != x]
            return len(parts) == 4 and len(rest) == 1 and close(number(sheet, rest[0]), 0.044715)
    return False


def _softmax(sheet: Sheet, node: Node) -> str | None:
    """``e / sum(e)`` with ``e = exp(x - max(x))``."""
    e, total = node.operands
    made, summed = sheet.made_by(e, "exp"), sheet.made_by(total, "reduce_sum")
    axis = None if summed is None else _axis(sheet, summed)
    if made is None or summed is None or axis is None or summed.operands != (e,):
        return None
    apart = sheet.made_by(made.operands[0], "sub")
    top = None if apart is None else sheet.made_by(apart.operands[1], "reduce_max")
    if apart is None or top is None or top.operands != apart.operands[:1] or _axis(sheet, top) != axis:
        return None
    return sheet.add("softmax", apart.operands[0], axis=axis)


def _norm(sheet: Sheet, node: Node) -> str | None:
    """``d / sqrt(mean(d * d) + eps)`` of what is left of x without its mean, or of x itself."""
    found = _deviation(sheet, node)
    if found is None:
        return None
    d, epsilon, axes = found
    shape = sheet.types[d].shape
    if axes != tuple(range(len(shape) - len(axes), len(shape))) or not sheet.types[d].dtype.is_float:
        return None
    apart = sheet.made_by(d, "sub")
    mean = None if apart is None else sheet.made_by(apart.operands[1], "reduce_mean")
    if apart is not None and mean is not None and mean.operands == apart.operands[:1] and _axes(sheet, mean) == axes:
        return sheet.add("layer_norm", apart.operands[0], axis=axes[0], epsilon=epsilon)
    return sheet.add("rms_norm", d, axis=axes[0], epsilon=epsilon)


def _deviation(sheet: Sheet, node: Node) -> tuple[str, float, tuple[int, ...]] | None:
    """d, eps and the axes of ``d / sqrt(mean(d * d) + eps)``."""
    for d, by in (node.operands,) if node.op == "div" else _either(node):
        root = _root(sheet, node, by)
        total = None if root is None else sheet.made_by(root, "add")
        for mean, small in [] if total is None else _either(total):
            epsilon, made = number(sheet, small), sheet.made_by(mean, "reduce_mean")
            axes = None if made is None else _axes(sheet, made)
            square = None if made is None else sheet.made_by(made.operands[0], "mul")
            if epsilon is not None and axes and square is not None and square.operands == (d, d):
                return d, epsilon, axes
    return None


def _root(sheet: Sheet, node: Node, by: str) -> str | None:
    """What the root is taken of, where a node divides by a root or multiplies with its reciprocal."""
    if node.op == "div":
        made = sheet.made_by(by, "sqrt")
    else:
        made = sheet.made_by(by, "rsqrt")
        inverse = sheet.made_by(by, "reciprocal")
        made = made if inverse is None else sheet.made_by(inverse.operands[0], "sqrt")
    return None if made is None else made.operands[0]


def _affine(sheet: Sheet, node: Node) -> str | None:
    """A scale behind a norm, then a bias behind that, are its operands."""
    wanted = ("layer_norm", "rms_norm") if node.op == "mul" else ("layer_norm",)
    for value, c in _either(node):
        made = sheet.made_by(value, *wanted)
        if made is None or sheet.uses(value) > 1 or sheet.array(c) is None:
            continue
        if len(made.operands) != (1 if node.op == "mul" else 2):
            continue
        axis, t = settings(sheet, made)["axis"], sheet.types[value]
        inner = t.shape[axis if isinstance(axis, int) else -1 :]
        given = sheet.types[c]
        front, back = given.shape[: given.rank - len(inner)], given.shape[max(given.rank - len(inner), 0) :]
        if back != inner or any(extent != ONE for extent in front) or given.dtype != t.dtype:
            continue
        array = sheet.array(c)
        assert array is not None
        vector = sheet.constant(array.reshape([extent.const for extent in inner]), given)
        return sheet.add(made.op, *made.operands, vector, **dict(made.attributes))
    return None


def _axes(sheet: Sheet, node: Node) -> tuple[int, ...] | None:
    """Axes that a reduction keeps as axes of one element."""
    given, rank = settings(sheet, node), sheet.types[node.operands[0]].rank
    if given["keepdims"] != 1:
        return None
    return tuple(range(rank)) if given["axes"] is None else tuple(sorted(a % rank for a in numbers(given["axes"])))


def _axis(sheet: Sheet, node: Node) -> int | None:
    axes = _axes(sheet, node)
    return axes[0] if axes is not None and len(axes) == 1 else None


def _either(node: Node) -> Iterator[tuple[str, str]]:
    """The two operands, both ways round."""
    first, second = node.operands
    yield first, second
    yield second, first


_WHY = "the operator says what its parts spell out"
LAYERS = (
    CleanRule("silu", ("mul",), _silu, _WHY),
    CleanRule("gelu", ("mul",), _gelu, _WHY, exact=False),
    CleanRule("softmax", ("div",), _softmax, _WHY, exact=False),
    CleanRule("norm", ("div", "mul"), _norm, _WHY, exact=False),
    CleanRule("norm-affine", ("mul", "add"), _affine, "the norm scales and shifts by itself", exact=False),
)
