"""Operators that compute each element from the elements at the same place, and how shapes meet."""

from __future__ import annotations

from dovetail.base.dtypes import DTYPES, DType, Kind
from dovetail.base.errors import OperatorError
from dovetail.ir.graph.graph import Type
from dovetail.ir.graph.operator import Operator, operator, operators
from dovetail.ops.text import axis_of, broadcast, grid, named_dtype, need_shape, same_dtype, text

UNARY = {
    "identity": "{x}",
    "neg": "-{x}",
    "abs": "abs({x})",
    "exp": "exp({x})",
    "log": "log({x})",
    "sqrt": "sqrt({x})",
    "rsqrt": "rsqrt({x})",
    "reciprocal": "1.0 / {x}",
    "sin": "sin({x})",
    "cos": "cos({x})",
    "tanh": "tanh({x})",
    "sigmoid": "sigmoid({x})",
    "silu": "{x} * sigmoid({x})",
    "erf": "erf({x})",
    "relu": "max({x}, 0)",
    "floor": "floor({x})",
    "ceil": "ceil({x})",
    "round": "round({x})",
    "not": "~{x}",
}
BINARY = {
    "add": "{a} + {b}",
    "sub": "{a} - {b}",
    "mul": "{a} * {b}",
    "max": "max({a}, {b})",
    "min": "min({a}, {b})",
    "pow": "pow({a}, {b})",
    "and": "{a} & {b}",
    "or": "{a} | {b}",
    "xor": "{a} ^ {b}",
}
COMPARE = {
    "equal": "{a} == {b}",
    "not_equal": "{a} != {b}",
    "less": "{a} < {b}",
    "less_equal": "{a} <= {b}",
    "greater": "{a} > {b}",
    "greater_equal": "{a} >= {b}",
}
COMMUTATIVE = frozenset({"add", "mul", "max", "min", "and", "or", "xor", "equal", "not_equal"})
_TRUNCATED = "select(({a} % {b} != 0) & (({a} < 0) != ({b} < 0)), {a} // {b} + 1, {a} // {b})"


def pointwise(value: str, dtype: DType, **operands: Type) -> str:
    """``y = value`` at every point; ``{x}`` in it stands for the element of operand x."""
    g = grid(broadcast(*operands.values()))
    reads = {name: g.read(name, t) for name, t in operands.items()}
    return text(f"out y: {dtype}[{g.shape}]", f"for {g.loops}: y[{g.index}] = {value.format(**reads)}")


def div(a: Type, b: Type) -> str:
    """Integers are divided towards zero."""
    dtype = same_dtype(a, b)
    whole = "{a} // {b}" if dtype.kind is Kind.UNSIGNED else _TRUNCATED
    return pointwise("{a} / {b}" if dtype.is_float else whole, dtype, a=a, b=b)


def select(c: Type, a: Type, b: Type) -> str:
    if c.dtype.kind is not Kind.BOOL:
        raise OperatorError(f"the condition of select is {c}, not bool", hint="not_equal(c, zero)")
    return pointwise("select({c}, {a}, {b})", same_dtype(a, b), c=c, a=a, b=b)


def cast(x: Type, *, dtype: str) -> str:
    """Integers wrap, a float becomes an integer by truncation and saturates, NaN gives 0."""
    target = named_dtype(dtype, x.dtype)
    return pointwise("{x}" if target == x.dtype else f"{target}({{x}})", target, x=x)


def leaky_relu(x: Type, *, alpha: float = 0.01) -> str:
    return pointwise(f"select({{x}} < 0, {alpha!r} * {{x}}, {{x}})", x.dtype, x=x)


def clip(x: Type, *, low: float | None = None, high: float | None = None) -> str:
    """``min(max(x, low), high)``: where the bounds cross, the high one holds."""
    value = "{x}" if low is None else f"max({{x}}, {_bound(low, x)})"
    return pointwise(value if high is None else f"min({value}, {_bound(high, x)})", x.dtype, x=x)


def gelu(x: Type, *, approximate: str = "none") -> str:
    forms = {
        "none": "0.5 * {x} * (1.0 + erf({x} * 0.7071067811865476))",
        "tanh": "0.5 * {x} * (1.0 + tanh(0.7978845608028654 * ({x} + 0.044715 * {x} * {x} * {x})))",
    }
    if approximate not in forms:
        raise OperatorError(f"gelu cannot approximate by '{approximate}'", hint=f"one of {', '.join(forms)}")
    return pointwise(forms[approximate], x.dtype, x=x)


def scale(x: Type, s: Type, b: Type | None = None, *, axis: int = 1) -> str:
    """``x * s[c] + b[c]`` with c the index along ``axis``."""
    g = grid(x.shape)
    at = axis_of(axis, x.rank)
    operands = {"s": s} if b is None else {"s": s, "b": b}
    for name, t in operands.items():
        need_shape(name, t, (x.shape[at],))
    dtype = same_dtype(x, *operands.values())
    shift = "" if b is None else f" + b[d{at}]"
    return text(f"out y: {dtype}[{g.shape}]", f"for {g.loops}: y[{g.index}] = x[{g.index}] * s[d{at}]{shift}")


def _bound(value: float, x: Type) -> str:
    """A bound as a literal of x's dtype; one of an integer dtype's own bounds where it lies beyond them."""
    if x.dtype.is_float:
        return repr(value)
    return str(int(min(max(value, x.dtype.low), x.dtype.high)))


def _unary(name: str, value: str) -> Operator:
    def define(x: Type) -> str:
        return pointwise(value, x.dtype, x=x)

    return operator(define, name)


def _binary(name: str, value: str, dtype: DType | None = None) -> Operator:
    def define(a: Type, b: Type) -> str:
        own = same_dtype(a, b)
        return pointwise(value, dtype or own, a=a, b=b)

    return operator(define, name, commutative=name in COMMUTATIVE)


OPERATORS = (
    *(_unary(name, value) for name, value in UNARY.items()),
    *(_binary(name, value) for name, value in BINARY.items()),
    *(_binary(name, value, DTYPES["bool"]) for name, value in COMPARE.items()),
    *operators(div, select, cast, leaky_relu, clip, gelu, scale),
)
