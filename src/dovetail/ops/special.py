"""Functions of one float by published approximations; where f64 would need longer ones they refuse it.

erfc    W. H. Press et al., Numerical Recipes, section 6.2: relative error 1.2e-7 everywhere
erfinv  M. Giles, Approximating the erfinv function, GPU Computing Gems 2012, table 5: relative error 4e-7
"""

from __future__ import annotations

from dovetail.base.errors import OperatorError
from dovetail.ir.graph.graph import Type
from dovetail.ir.graph.operator import operators
from dovetail.ops.text import grid, text

_ERFC = (
    -1.26551223,
    1.00002368,
    0.37409196,
    0.09678418,
    -0.18628806,
    0.27886807,
    -1.13520398,
    1.48851587,
    -0.82215223,
    0.17087277,
)
_ERFINV_NEAR = (
    1.50140941,
    0.246640727,
    -0.00417768164,
    -0.00125372503,
    0.00021858087,
    -4.39150654e-06,
    -3.5233877e-06,
    3.43273939e-07,
    2.81022636e-08,
)
_ERFINV_FAR = (
    2.83297682,
    1.00167406,
    0.00943887047,
    -0.0076224613,
    0.00573950773,
    -0.00367342844,
    0.00134934322,
    0.000100950558,
    -0.000200214257,
)


def erfc(x: Type) -> str:
    """``1 - erf(x)`` without cancellation: exp(-x*x + a polynomial of t) * t, t = 1 / (1 + |x| / 2)."""
    _need_single(x)
    g = grid(x.shape)
    element, t, upper = f"x[{g.index}]", f"t[{g.index}]", f"upper[{g.index}]"
    return text(
        f"temp t: f64[{g.shape}]  temp upper: f64[{g.shape}]  out y: {x.dtype}[{g.shape}]",
        f"for {g.loops}: {t} = 1.0 / (1.0 + 0.5 * abs(f64({element})))",
        f"for {g.loops}: {upper} = {t} * exp({_polynomial(t, _ERFC)} - f64({element}) * f64({element}))",
        f"for {g.loops}: y[{g.index}] = {x.dtype}(select({element} < 0, 2.0 - {upper}, {upper}))",
    )


def erfinv(x: Type) -> str:
    """The number whose erf is x; infinite at -1 and 1, NaN beyond."""
    _need_single(x)
    g = grid(x.shape)
    element, w = f"x[{g.index}]", f"w[{g.index}]"
    near, far = _polynomial(f"({w} - 2.5)", _ERFINV_NEAR), _polynomial(f"(sqrt({w}) - 3.0)", _ERFINV_FAR)
    inside = f"{x.dtype}(f64({element}) * select({w} < 5.0, {near}, {far}))"
    return text(
        f"temp w: f64[{g.shape}]  out y: {x.dtype}[{g.shape}]",
        f"for {g.loops}: {w} = -log((1.0 - f64({element})) * (1.0 + f64({element})))",
        f"for {g.loops}: y[{g.index}] = select(abs({element}) == 1.0, {element} * inf, {inside})",
    )


def _polynomial(t: str, coefficients: tuple[float, ...]) -> str:
    """By Horner's rule, the constant first."""
    *lower, value = (f"({c!r})" for c in coefficients)
    for coefficient in reversed(lower):
        value = f"({coefficient} + {t} * {value})"
    return value


def _need_single(x: Type) -> None:
    if not x.dtype.is_float or x.dtype.bits > 32:
        raise OperatorError(f"an approximation for f32 of {x.dtype} values", hint='cast(x) {dtype = "f32"}')


OPERATORS = operators(erfc, erfinv)
