"""Activations: functions of one element, most with a parameter or two."""

from __future__ import annotations

from math import isfinite

from dovetail.base.errors import OperatorError
from dovetail.ir.graph.graph import Type
from dovetail.ir.graph.operator import operators
from dovetail.ops.pointwise import pointwise
from dovetail.ops.text import broadcast, same_dtype

_SERIES = "{v} * (1.0 + {v} * (0.5 + {v} * (0.16666666666666666 + {v} * 0.041666666666666664)))"
_EXPM1 = f"select(abs({{v}}) < 0.01, {_SERIES}, exp({{v}}) - 1.0)"
"""exp(v) - 1 without cancellation; five terms of its series are exact to f32 below 0.01."""


def elu(x: Type, *, alpha: float = 1.0) -> str:
    """x where it is positive, ``alpha * (exp(x) - 1)`` elsewhere."""
    return _floats(f"select({{x}} > 0, {{x}}, {alpha!r} * {_EXPM1.format(v='{x}')})", x)


def celu(x: Type, *, alpha: float = 1.0) -> str:
    """``max(x, 0) + min(alpha * (exp(x / alpha) - 1), 0)``."""
    below = f"{alpha!r} * {_EXPM1.format(v=f'({{x}} / {alpha!r})')}"
    return _floats(f"max({{x}}, 0.0) + min({below}, 0.0)", x)


def selu(x: Type, *, alpha: float = 1.6732632423543772, gamma: float = 1.0507009873554805) -> str:
    """``gamma * elu(x, alpha)``."""
    return _floats(f"{gamma!r} * select({{x}} > 0, {{x}}, {alpha!r} * {_EXPM1.format(v='{x}')})", x)


def hard_sigmoid(x: Type, *, alpha: float = 0.2, beta: float = 0.5) -> str:
    return _floats(f"max(min({alpha!r} * {{x}} + {beta!r}, 1.0), 0.0)", x)


def hard_swish(x: Type) -> str:
    return _floats("{x} * max(min(0.16666666666666666 * {x} + 0.5, 1.0), 0.0)", x)


def softplus(x: Type) -> str:
    """``log(1 + exp(x))``, without overflow."""
    return _floats(f"max({{x}}, 0.0) + {_LOG1P_EXP}", x)


def mish(x: Type) -> str:
    """``x * tanh(softplus(x))``."""
    return _floats(f"{{x}} * tanh(max({{x}}, 0.0) + {_LOG1P_EXP})", x)


def softsign(x: Type) -> str:
    return _floats("{x} / (1.0 + abs({x}))", x)


def swish(x: Type, *, alpha: float = 1.0) -> str:
    """``x * sigmoid(alpha * x)``."""
    return _floats(f"{{x}} * sigmoid({alpha!r} * {{x}})", x)


def thresholded_relu(x: Type, *, alpha: float = 1.0) -> str:
    """x where it is more than ``alpha``, 0 elsewhere."""
    return _floats(f"select({{x}} > {alpha!r}, {{x}}, 0.0)", x)


def shrink(x: Type, *, bias: float = 0.0, bound: float = 0.5) -> str:
    """Beyond ``bound`` from 0, ``bias`` nearer to it; 0 elsewhere."""
    if not x.dtype.is_float:
        if not (isfinite(bias) and isfinite(bound)):
            raise OperatorError(f"{x.dtype} values shrunk by {bias} beyond {bound}")
        b, low, high = int(bias), int(-bound // 1) + 1, int(bound // 1)
        return pointwise(f"select({{x}} < {low}, {{x}} + {b}, select({{x}} > {high}, {{x}} - {b}, 0))", x.dtype, x=x)
    return _floats(f"select({{x}} < {-bound!r}, {{x}} + {bias!r}, select({{x}} > {bound!r}, {{x}} - {bias!r}, 0.0))", x)


def prelu(x: Type, slope: Type) -> str:
    """``slope * x`` where x is negative; the slope is stretched to x."""
    if broadcast(x, slope) != x.shape:
        raise OperatorError(f"slope is {slope}, which does not fit {x}")
    return pointwise("select({x} < 0, {slope} * {x}, {x})", same_dtype(x, slope), x=x, slope=slope)


_SMALL = "exp(-abs({x}))"
_LOG1P_EXP = f"select({_SMALL} < 0.0001, {_SMALL} * (1.0 - 0.5 * {_SMALL}), log(1.0 + {_SMALL}))"
"""log(1 + e), of e = exp(-|x|)."""


def _floats(value: str, x: Type) -> str:
    if not x.dtype.is_float:
        raise OperatorError(f"an activation of {x.dtype} values", hint='cast(x) {dtype = "f32"}')
    return pointwise(value, x.dtype, x=x)


OPERATORS = operators(
    elu,
    celu,
    selu,
    hard_sigmoid,
    hard_swish,
    softplus,
    mish,
    softsign,
    swish,
    thresholded_relu,
    shrink,
    prelu,
)
