"""Functions of one float that the program language has no word for, made of those it has.

Each is a chain of steps, the last of which is the result; a step sees x and the steps before it. Errors stay within a
few roundings of the functions used: small arguments of log1p and expm1 follow Kahan, who divides by the argument that
the rounded sum really has; atan is a polynomial on the half angle.
"""

from __future__ import annotations

from dovetail.base.dtypes import DType
from dovetail.base.errors import OperatorError
from dovetail.ir.graph.graph import Type
from dovetail.ir.graph.operator import Operator, operator, operators
from dovetail.ops.text import accumulator, broadcast, grid, same_dtype, text

_LOG1P = "select({u} == 1.0, {v}, select({u} > 1e30, log({u}), log({u}) * {v} / ({u} - 1.0)))"
_EXPM1 = "select({u} == 1.0, {v}, select(abs({v}) > 80.0, {u} - 1.0, ({u} - 1.0) * {v} / log({u})))"
_HALF_PI = "1.5707963267948966"
_ATAN = {
    "f32": (
        0.9999999993712282,
        -0.33333306893048514,
        0.19998183041083217,
        -0.14239532669649174,
        0.10569828806415757,
        -0.06026305227661499,
    ),
    "f64": (
        1.0,
        -0.3333333333333332,
        0.19999999999996484,
        -0.14285714285283083,
        0.11111111083051989,
        -0.09090907990613574,
        0.07692279747356899,
        -0.06666187222075835,
        0.058766707694587174,
        -0.05216325563161994,
        0.04495687727155088,
        -0.03330281855186371,
        0.015030643579596797,
    ),
}
"""atan(s)/s in powers of s*s for |s| <= tan(pi/8), interpolated at Chebyshev points: errors 7e-10 and 3e-16."""

CHAINS: dict[str, tuple[str, ...]] = {
    "tan": ("sin({x}) / cos({x})",),
    "log2": ("log({x}) * 1.4426950408889634",),
    "log10": ("log({x}) * 0.4342944819032518",),
    "exp2": ("pow(2.0, {x})",),
    "log1p": ("1.0 + {x}", _LOG1P.format(u="{0}", v="{x}")),
    "expm1": ("exp({x})", _EXPM1.format(u="{0}", v="{x}")),
    "cosh": ("exp(0.5 * abs({x}))", "0.5 * {0} * {0} + 0.5 / ({0} * {0})"),
    "sinh": (
        "exp(0.5 * {x})",
        "exp(-0.5 * {x})",
        _EXPM1.format(u="{0}", v="(0.5 * {x})"),
        _EXPM1.format(u="{1}", v="(-0.5 * {x})"),
        "0.5 * ({2} - {3}) * ({0} + {1})",
    ),
    "acosh": (
        "{x} - 1.0 + sqrt({x} - 1.0) * sqrt({x} + 1.0)",
        "1.0 + {0}",
        "select({x} > 1e15, log({x}) + 0.6931471805599453, " + _LOG1P.format(u="{1}", v="{0}") + ")",
    ),
    "asinh": (
        "abs({x}) + {x} * {x} / (1.0 + sqrt(1.0 + {x} * {x}))",
        "1.0 + {0}",
        "select(abs({x}) > 1e15, log(abs({x})) + 0.6931471805599453, " + _LOG1P.format(u="{1}", v="{0}") + ")",
        "select({x} < 0, -{2}, select({x} == 0.0, {x}, {2}))",
    ),
    "atanh": (
        "2.0 * abs({x}) / (1.0 - abs({x}))",
        "1.0 + {0}",
        "0.5 * " + _LOG1P.format(u="{1}", v="{0}"),
        "select({x} < 0, -{2}, select({x} == 0.0, {x}, {2}))",
    ),
}


def atan(x: Type) -> str:
    return _arc(x, "{x}")


def asin(x: Type) -> str:
    """``atan(x / sqrt(1 - x*x))``; outside [-1, 1] the root is NaN."""
    return _arc(x, "{x} / sqrt((1.0 - {x}) * (1.0 + {x}))")


def acos(x: Type) -> str:
    """``2 * atan(sqrt((1 - x) / (1 + x)))``."""
    return _arc(x, "sqrt((1.0 - {x}) / (1.0 + {x}))", "2.0 * ({a})")


def atan2(a: Type, b: Type) -> str:
    """The angle of the point (b, a), from -pi to pi."""
    dtype = same_dtype(a, b)
    wide = _wide(dtype)
    g = grid(broadcast(a, b))
    y, x = g.read("a", a), g.read("b", b)
    quarter = f"select({x} < 0, 3.0, 1.0) * 0.7853981633974483"
    corner = f"(abs({y}) == inf) & (abs({x}) == inf)"
    nothing = f"({y} == 0.0) & ({x} == 0.0)"
    negative = f"({x} < 0) | (({x} == 0.0) & (1.0 / {x} < 0))"
    slope = f"select({nothing}, 0.0, select(abs({x}) > abs({y}), abs({y}) / abs({x}), abs({x}) / abs({y})))"
    raw = f"select({nothing}, 0.0, select(abs({x}) > abs({y}), angle[{g.index}], {_HALF_PI} - angle[{g.index}]))"
    below = f"({y} < 0) | (({y} == 0.0) & (1.0 / {y} < 0))"
    return text(
        f"temp ratio: {wide}[{g.shape}]  temp half: {wide}[{g.shape}]  temp angle: {wide}[{g.shape}]",
        f"temp upper: {wide}[{g.shape}]  out y: {dtype}[{g.shape}]",
        f"for {g.loops}: ratio[{g.index}] = {slope}",
        f"for {g.loops}: half[{g.index}] = {_halved(f'ratio[{g.index}]')}",
        f"for {g.loops}: angle[{g.index}] = {_polynomial(f'half[{g.index}]', wide)}",
        f"for {g.loops}: upper[{g.index}] = select({corner}, {quarter}, "
        f"select({negative}, 3.141592653589793 - {raw}, {raw}))",
        f"for {g.loops}: y[{g.index}] = select({below}, -upper[{g.index}], upper[{g.index}])",
    )


def _arc(x: Type, argument: str, after: str = "{a}") -> str:
    """atan of ``argument``: its reciprocal beyond 1, then the half angle, then the polynomial."""
    wide = _wide(x.dtype)
    g = grid(x.shape)
    tangent, ratio, half = (f"{name}[{g.index}]" for name in ("tangent", "ratio", "half"))
    part = _polynomial(half, wide)
    angle = f"select(abs({tangent}) > 1.0, select({tangent} < 0, -{_HALF_PI}, {_HALF_PI}) - {part}, {part})"
    return text(
        f"temp tangent: {wide}[{g.shape}]  temp ratio: {wide}[{g.shape}]  temp half: {wide}[{g.shape}]",
        f"out y: {x.dtype}[{g.shape}]",
        f"for {g.loops}: {tangent} = {argument.format(x=f'x[{g.index}]')}",
        f"for {g.loops}: {ratio} = select(abs({tangent}) > 1.0, 1.0 / {tangent}, {tangent})",
        f"for {g.loops}: {half} = {_halved(ratio)}",
        f"for {g.loops}: y[{g.index}] = {after.format(a=angle)}",
    )


def _halved(tangent: str) -> str:
    """The tangent of half the angle."""
    return f"{tangent} / (1.0 + sqrt(1.0 + {tangent} * {tangent}))"


def _polynomial(half: str, wide: DType) -> str:
    """Twice the angle whose tangent is ``half``."""
    first, *rest = reversed(_ATAN[wide.name])
    value = repr(first)
    for coefficient in rest:
        value = f"{coefficient!r} + {half} * {half} * ({value})"
    return f"2.0 * {half} * ({value})"


def _chain(name: str, steps: tuple[str, ...]) -> Operator:
    def define(x: Type) -> str:
        wide = _wide(x.dtype)
        g = grid(x.shape)
        made = [f"step{number}[{g.index}]" for number in range(len(steps) - 1)]
        lines = [f"temp step{number}: {wide}[{g.shape}]" for number in range(len(made))]
        lines.append(f"out y: {x.dtype}[{g.shape}]")
        for target, value in zip([*made, f"y[{g.index}]"], steps, strict=True):
            lines.append(f"for {g.loops}: {target} = {value.format(*made, x=f'x[{g.index}]')}")
        return text(*lines)

    return operator(define, name)


def _wide(dtype: DType) -> DType:
    if not dtype.is_float:
        raise OperatorError(f"an elementary function of {dtype} values", hint='cast(x) {dtype = "f32"}')
    return accumulator(dtype)


OPERATORS = (*(_chain(name, steps) for name, steps in CHAINS.items()), *operators(atan, asin, acos, atan2))
