"""Arithmetic, comparisons and functions of each element, with PyTorch's joining of types."""

from __future__ import annotations

from math import inf

from dovetail.base.dtypes import DTYPES, DType, Kind
from dovetail.frontends.torch.call import Call
from dovetail.frontends.torch.context import Context, Conversion, Results

FLOAT_UNARY = {
    "acos": "acos",
    "acosh": "acosh",
    "asin": "asin",
    "asinh": "asinh",
    "atan": "atan",
    "atanh": "atanh",
    "cos": "cos",
    "cosh": "cosh",
    "erf": "erf",
    "erfc": "erfc",
    "erfinv": "erfinv",
    "exp": "exp",
    "exp2": "exp2",
    "expm1": "expm1",
    "log": "log",
    "log10": "log10",
    "log1p": "log1p",
    "log2": "log2",
    "reciprocal": "reciprocal",
    "rsqrt": "rsqrt",
    "sigmoid": "sigmoid",
    "silu": "silu",
    "sin": "sin",
    "sinh": "sinh",
    "sqrt": "sqrt",
    "tan": "tan",
    "tanh": "tanh",
}
"""Functions of floats; whole numbers are made floats first."""
ROUNDING = {"ceil": "ceil", "floor": "floor", "round": "round", "trunc": "trunc"}
"""Functions that leave whole numbers as they are."""
BINARY = {"maximum": "max", "minimum": "min", "mul": "mul", "bitwise_and": "and", "bitwise_or": "or"}
BINARY |= {"bitwise_xor": "xor", "atan2": "atan2", "remainder": "mod", "fmod": "fmod"}
BINARY |= {"bitwise_left_shift": "shift_left", "bitwise_right_shift": "shift_right"}
COMPARE = {"eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}
LOGICAL = {"logical_and": "and", "logical_or": "or", "logical_xor": "xor"}
_BOOL = DTYPES["bool"]
_OVERLOADS = ("default", "Tensor", "Scalar", "Tensor_Tensor", "Tensor_Scalar")


def operand(context: Context, call: Call, name: str, dtype: DType) -> str:
    """A tensor or a number among the arguments, in ``dtype``."""
    if call.is_tensor(name):
        return context.cast(call.tensor(name), dtype)
    return context.scalar(call.number(name), dtype)


def _float_unary(op: str, name: str = "self") -> Conversion:
    def convert(context: Context, call: Call) -> Results:
        return (context.node(op, operand(context, call, name, call.dtype)),)

    return convert


def _rounding(op: str) -> Conversion:
    def convert(context: Context, call: Call) -> Results:
        x = call.tensor("self")
        return (context.node(op, x) if context.dtype(x).is_float else x,)

    return convert


def _binary(op: str) -> Conversion:
    def convert(context: Context, call: Call) -> Results:
        a, b = (operand(context, call, name, call.dtype) for name in ("self", "other"))
        if call.dtype.kind is Kind.BOOL and op in _OF_BOOLS:
            return (context.node(_OF_BOOLS[op], a, b),)
        return (context.node(op, a, b),)

    return convert


_OF_BOOLS = {"mul": "and", "max": "or", "min": "and", "add": "or"}


def _compare(op: str) -> Conversion:
    def convert(context: Context, call: Call) -> Results:
        joined = call.common("self", "other")
        a, b = (operand(context, call, name, joined) for name in ("self", "other"))
        if joined.kind is Kind.BOOL:
            a, b = (context.node("cast", name, dtype="u8") for name in (a, b))
        return (context.node(op, a, b),)

    return convert


def _logical(op: str) -> Conversion:
    def convert(context: Context, call: Call) -> Results:
        return (context.node(op, *(operand(context, call, name, _BOOL) for name in ("self", "other"))),)

    return convert


def _sum(op: str) -> Conversion:
    """``self + alpha * other``, or the difference."""

    def convert(context: Context, call: Call) -> Results:
        a, b = (operand(context, call, name, call.dtype) for name in ("self", "other"))
        alpha = call.number("alpha")
        if call.dtype.kind is Kind.BOOL:
            if op == "sub" or not alpha:
                raise call.unsupported("sums of bools other than 'or'")
            return (context.node("or", a, b),)
        if alpha != 1:
            b = context.node("mul", b, context.scalar(alpha, call.dtype))
        return (context.node(op, a, b),)

    return convert


def divide(context: Context, call: Call) -> Results:
    """The quotient; ``rounding_mode`` makes it a whole number."""
    mode = call.maybe_text("rounding_mode") if "rounding_mode" in call.arguments else None
    a, b = (operand(context, call, name, call.dtype) for name in ("self", "other"))
    if mode is None or (mode == "trunc" and not call.dtype.is_float):
        return (context.node("div", a, b),)
    if mode == "trunc":
        return (context.node("trunc", context.node("div", a, b)),)
    return (floor_quotient(context, a, b),)


def floor_divide(context: Context, call: Call) -> Results:
    return (floor_quotient(context, *(operand(context, call, name, call.dtype) for name in ("self", "other"))),)


def floor_quotient(context: Context, a: str, b: str) -> str:
    """Rounded down; of floats by the exact remainder, as a quotient may round up to a whole number."""
    dtype = context.dtype(a)
    if not dtype.is_float:
        return context.node("floor_div", a, b)
    zero, one, half = (context.scalar(value, dtype) for value in (0.0, 1.0, 0.5))
    rest = context.node("fmod", a, b)
    quotient = context.node("div", context.node("sub", a, rest), b)
    signs = context.node("xor", context.node("less", b, zero), context.node("less", rest, zero))
    lower = context.node("and", context.node("not_equal", rest, zero), signs)
    quotient = context.node("select", lower, context.node("sub", quotient, one), quotient)
    down = context.node("floor", quotient)
    near = context.node("greater", context.node("sub", quotient, down), half)
    whole = context.node("select", near, context.node("add", down, one), down)
    return context.node("select", context.node("equal", b, zero), context.node("div", a, b), whole)


def negate(context: Context, call: Call) -> Results:
    return (context.node("neg", call.tensor("self")),)


def absolute(context: Context, call: Call) -> Results:
    x = call.tensor("self")
    return (x if context.dtype(x).kind in (Kind.BOOL, Kind.UNSIGNED) else context.node("abs", x),)


def sign(context: Context, call: Call) -> Results:
    """Of a NaN 0, as PyTorch has it."""
    x = call.tensor("self")
    if context.dtype(x).kind is Kind.BOOL:
        return (x,)
    found = context.node("sign", x)
    if not context.dtype(x).is_float:
        return (found,)
    return (context.node("select", context.node("is_nan", x), context.scalar(0.0, context.dtype(x)), found),)


def signbit(context: Context, call: Call) -> Results:
    """Whether an element is negative, -0.0 too."""
    x = call.tensor("self")
    dtype = context.dtype(x)
    if dtype.is_float:
        x = context.node("bitcast", x, dtype=f"i{dtype.bits}")
    return (context.node("less", x, context.scalar(0, context.dtype(x))),)


def is_nan(context: Context, call: Call) -> Results:
    return (context.node("is_nan", _number(context, call)),)


def is_inf(context: Context, call: Call) -> Results:
    return (context.node("is_inf", _number(context, call)),)


def is_infinite_of(sign: str) -> Conversion:
    def convert(context: Context, call: Call) -> Results:
        other = "negative" if sign == "positive" else "positive"
        return (context.node("is_inf", _number(context, call), **{other: 0}),)

    return convert


def logical_not(context: Context, call: Call) -> Results:
    return (context.node("not", operand(context, call, "self", _BOOL)),)


def bitwise_not(context: Context, call: Call) -> Results:
    return (context.node("not", call.tensor("self")),)


def where(context: Context, call: Call) -> Results:
    condition = context.cast(call.tensor("condition"), _BOOL)
    a, b = (operand(context, call, name, call.dtype) for name in ("self", "other"))
    return (context.node("select", condition, a, b),)


def where_of_prims(context: Context, call: Call) -> Results:
    condition = operand(context, call, "pred", _BOOL)
    return (context.node("select", condition, *(operand(context, call, name, call.dtype) for name in ("a", "b"))),)


def clamp(context: Context, call: Call) -> Results:
    """Where the bounds cross, the high one holds."""
    x = operand(context, call, "self", call.dtype)
    for name, op in (("min", "max"), ("max", "min")):
        if call.arguments.get(name) is not None:
            x = context.node(op, x, operand(context, call, name, call.dtype))
    return (x,)


def relu(context: Context, call: Call) -> Results:
    return (context.node("relu", call.tensor("self")),)


def gelu(context: Context, call: Call) -> Results:
    return (context.node("gelu", call.tensor("self"), approximate=call.text("approximate")),)


def leaky_relu(context: Context, call: Call) -> Results:
    return (context.node("leaky_relu", call.tensor("self"), alpha=call.real("negative_slope")),)


def power(context: Context, call: Call) -> Results:
    """Exponents that have a shorter way take it, as PyTorch's do."""
    dtype = call.dtype
    exponent = None if call.is_tensor("exponent") else call.number("exponent")
    x = operand(context, call, "self", dtype)
    if exponent == 0:
        return (context.expand(context.scalar(1, dtype), context.shape(x)),)
    if exponent == 1:
        return (x,)
    if exponent in (2, 3):
        square = context.node("mul", x, x)
        return (square if exponent == 2 else context.node("mul", square, x),)
    if exponent in _ROOTS and dtype.is_float:
        found = x
        for op in _ROOTS[float(exponent)]:
            found = context.node("mul", found, found) if op == "square" else context.node(op, found)
        return (found,)
    return (context.node("power", x, operand(context, call, "exponent", dtype)),)


_ROOTS = {0.5: ("sqrt",), -0.5: ("rsqrt",), -1.0: ("reciprocal",), -2.0: ("square", "reciprocal")}


def convert_dtype(context: Context, call: Call) -> Results:
    """A copy, in another dtype where one is named."""
    name = "a" if "a" in call.arguments else "self"
    return (context.cast(call.tensor(name), call.dtype),)


def copysign(context: Context, call: Call) -> Results:
    """The size of one with the sign of the other, by their bits."""
    a, b = (operand(context, call, name, call.dtype) for name in ("self", "other"))
    bits = DTYPES[f"i{call.dtype.bits}"]
    low, high = (context.scalar(value, bits) for value in (bits.low, bits.high))
    a, b = (context.node("bitcast", name, dtype=bits.name) for name in (a, b))
    joined = context.node("or", context.node("and", a, high), context.node("and", b, low))
    return (context.node("bitcast", joined, dtype=call.dtype.name),)


def round_decimals(context: Context, call: Call) -> Results:
    """Halves to even, after so many decimals."""
    x, decimals = call.tensor("self"), call.whole("decimals")
    if decimals == 0 or not context.dtype(x).is_float:
        return (context.node("round", x) if context.dtype(x).is_float else x,)
    factor = context.scalar(10.0 ** abs(decimals), call.dtype)
    there, back = ("mul", "div") if decimals > 0 else ("div", "mul")
    return (context.node(back, context.node("round", context.node(there, x, factor)), factor),)


def copy(context: Context, call: Call) -> Results:
    """What is copied, in the place and dtype of what it is copied over."""
    return (context.expand(context.cast(call.tensor("src"), call.dtype), call.shape),)


def fmax(context: Context, call: Call) -> Results:
    return _without_nan(context, call, "max")


def fmin(context: Context, call: Call) -> Results:
    return _without_nan(context, call, "min")


def hypot(context: Context, call: Call) -> Results:
    """``sqrt(a*a + b*b)``, scaled by the larger so that nothing overflows."""
    a, b = (context.node("abs", operand(context, call, name, call.dtype)) for name in ("self", "other"))
    large, small = context.node("max", a, b), context.node("min", a, b)
    zero, one, far = (context.scalar(value, call.dtype) for value in (0.0, 1.0, inf))
    ratio = context.node("div", small, context.node("select", context.node("equal", large, zero), one, large))
    root = context.node("sqrt", context.node("add", one, context.node("mul", ratio, ratio)))
    endless = context.node("or", context.node("is_inf", a), context.node("is_inf", b))
    return (context.node("select", endless, far, context.node("mul", large, root)),)


def _without_nan(context: Context, call: Call, op: str) -> Results:
    """The larger or smaller; the other one where one is a NaN."""
    a, b = (operand(context, call, name, call.dtype) for name in ("self", "other"))
    found = context.node(op, a, b)
    if not call.dtype.is_float:
        return (found,)
    found = context.node("select", context.node("is_nan", b), context.expand(a, call.shape), found)
    return (context.node("select", context.node("is_nan", a), context.expand(b, call.shape), found),)


def _number(context: Context, call: Call) -> str:
    x = call.tensor("self")
    return context.cast(x, DTYPES["u8"]) if context.dtype(x).kind is Kind.BOOL else x


def _named(table: dict[str, Conversion]) -> dict[str, Conversion]:
    """Under the names of every overload that takes these arguments."""
    return {f"aten.{name}.{overload}": found for name, found in table.items() for overload in _OVERLOADS}


CONVERSIONS: dict[str, Conversion] = {
    **_named({name: _float_unary(op) for name, op in FLOAT_UNARY.items()}),
    **_named({name: _rounding(op) for name, op in ROUNDING.items()}),
    **_named({name: _binary(op) for name, op in BINARY.items()}),
    **_named({name: _compare(op) for name, op in COMPARE.items()}),
    **_named({name: _logical(op) for name, op in LOGICAL.items()}),
    **_named({"add": _sum("add"), "sub": _sum("sub"), "div": divide, "floor_divide": floor_divide}),
    **_named({"neg": negate, "abs": absolute, "sign": sign, "sgn": sign, "signbit": signbit}),
    **_named({"isnan": is_nan, "isinf": is_inf, "logical_not": logical_not, "bitwise_not": bitwise_not}),
    **_named({"isposinf": is_infinite_of("positive"), "isneginf": is_infinite_of("negative")}),
    **_named({"clamp": clamp, "clamp_min": clamp, "clamp_max": clamp, "relu": relu, "gelu": gelu}),
    **_named({"leaky_relu": leaky_relu, "pow": power, "copysign": copysign}),
    **_named({"fmax": fmax, "fmin": fmin, "hypot": hypot, "_to_copy": convert_dtype, "clone": convert_dtype}),
    **_named({"alias": convert_dtype, "detach": convert_dtype, "lift_fresh_copy": convert_dtype}),
    "aten.div.Tensor_mode": divide,
    "aten.div.Scalar_mode": divide,
    "aten.where.self": where,
    "aten.round.decimals": round_decimals,
    "aten.copy.default": copy,
    "prims.round.default": _float_unary("round", "a"),
    "prims.where.default": where_of_prims,
    "prims.convert_element_type.default": convert_dtype,
}
