"""Arithmetic beyond one word of the program language: signs, remainders, powers of whole numbers, bits, tests."""

from __future__ import annotations

from dovetail.base.dtypes import DTYPES, DType, Kind
from dovetail.base.errors import OperatorError
from dovetail.ir.graph.graph import Type
from dovetail.ir.graph.operator import operators
from dovetail.ops.pointwise import pointwise
from dovetail.ops.text import broadcast, grid, named_dtype, same_dtype, text

_BOOL = DTYPES["bool"]
_LARGE = "268435456.0"
"""2**28."""
_SQUARINGS = 6
"""Exponents up to 63; more than that only 0, 1 and -1 survive in 64 bits, which the parity of the exponent decides."""


def sign(x: Type) -> str:
    """-1, 0 or 1; a NaN stays one."""
    if x.dtype.kind is Kind.UNSIGNED:
        return pointwise("min({x}, 1)", x.dtype, x=x)
    return pointwise("select({x} > 0, 1, select({x} < 0, -1, {x}))", x.dtype, x=x)


def trunc(x: Type) -> str:
    """Towards zero."""
    return pointwise("trunc({x})" if x.dtype.is_float else "{x}", x.dtype, x=x)


def is_nan(x: Type) -> str:
    return pointwise("isnan({x})" if x.dtype.is_float else "{x} != {x}", _BOOL, x=x)


def is_inf(x: Type, *, negative: int = 1, positive: int = 1) -> str:
    """Whether an element is infinite, of the signs that are asked for."""
    tests = [f"({{x}} == {bound})" for bound, wanted in (("-inf", negative), ("inf", positive)) if wanted]
    return pointwise(" | ".join(tests) if tests and x.dtype.is_float else "{x} < {x}", _BOOL, x=x)


def mod(a: Type, b: Type) -> str:
    """The remainder with the sign of b, as Python's ``%``."""
    dtype = same_dtype(a, b)
    if not dtype.is_float:
        return pointwise("{a} % {b}", dtype, a=a, b=b)
    rest = _remainder(a, b)
    return text(rest, _over(a, b, "select((rest != 0.0) & ((rest < 0) != ({b} < 0)), rest + {b}, rest)", dtype))


def fmod(a: Type, b: Type) -> str:
    """The remainder with the sign of a, as C's ``%``."""
    dtype = same_dtype(a, b)
    if dtype.kind is Kind.UNSIGNED:
        return pointwise("{a} % {b}", dtype, a=a, b=b)
    if not dtype.is_float:
        adjusted = "select(({a} % {b} != 0) & (({a} < 0) != ({b} < 0)), {a} % {b} - {b}, {a} % {b})"
        return pointwise(adjusted, dtype, a=a, b=b)
    return text(_remainder(a, b), _over(a, b, "rest", dtype))


def floor_div(a: Type, b: Type) -> str:
    """The quotient, rounded down."""
    dtype = same_dtype(a, b)
    return pointwise("floor({a} / {b})" if dtype.is_float else "{a} // {b}", dtype, a=a, b=b)


def power(a: Type, b: Type) -> str:
    """a to the power of b, in the dtype of a; exponents of another dtype are taken as what they are."""
    if a.dtype.is_float:
        return pointwise("pow({a}, " + ("{b}" if b.dtype.is_float else f"{a.dtype}({{b}})") + ")", a.dtype, a=a, b=b)
    if b.dtype.is_float:
        return pointwise(f"{a.dtype}(pow(f64({{a}}), f64({{b}})))", a.dtype, a=a, b=b)
    return _whole_power(a, b)


def shift_left(a: Type, b: Type) -> str:
    """Bits that leave are lost, all of them from the width on."""
    return _shift(a, b, "<<")


def shift_right(a: Type, b: Type) -> str:
    """Bits that leave are lost; a negative number keeps its sign."""
    return _shift(a, b, ">>")


def bitcast(x: Type, *, dtype: str) -> str:
    """The same bits as another dtype of the same width."""
    target = named_dtype(dtype, x.dtype)
    return pointwise("{x}" if target == x.dtype else f"bitcast_{target}({{x}})", target, x=x)


def _shift(a: Type, b: Type, sign: str) -> str:
    dtype = same_dtype(a, b)
    if not dtype.is_integer:
        raise OperatorError(f"bits of {dtype} are shifted", hint="an integer dtype")
    gone = "0" if sign == "<<" or dtype.kind is Kind.UNSIGNED else "select({a} < 0, -1, 0)"
    return pointwise(f"select({{b}} >= {dtype.bits}, {gone}, {{a}} {sign} {{b}})", dtype, a=a, b=b)


def _remainder(a: Type, b: Type) -> str:
    """``temp rest``: what is left of a after whole multiples of b, of which large ones are taken off first.

    In f64 a quotient of up to 29 bits times a float of 24 is exact, so the remainder of f32 and smaller is, for
    quotients of up to 57 bits. A quotient rounded up leaves a rest of the wrong sign: it is put right.
    """
    g = grid(broadcast(a, b))
    x, y, wide = g.read("a", a), f"f64({g.read('b', b)})", DTYPES["f64"]
    far, near = f"far[{g.index}]", f"near[{g.index}]"
    over = f"({near} != 0.0) & (({near} < 0) != ({x} < 0))"
    turned = f"select(({x} < 0) == ({y} < 0), {near} + {y}, {near} - {y})"
    return text(
        f"temp far: {wide}[{g.shape}]  temp near: {wide}[{g.shape}]  temp rest: {wide}[{g.shape}]",
        f"for {g.loops}: {far} = f64({x}) - trunc(f64({x}) / ({y} * {_LARGE})) * ({y} * {_LARGE})",
        f"for {g.loops}: {near} = {far} - trunc({far} / {y}) * {y}",
        f"for {g.loops}: rest[{g.index}] = select(abs({y}) == inf, f64({x}), select({over}, {turned}, {near}))",
    )


def _over(a: Type, b: Type, value: str, dtype: DType) -> str:
    g = grid(broadcast(a, b))
    rest = value.replace("rest", f"rest[{g.index}]").format(b=g.read("b", b))
    return text(f"out y: {dtype}[{g.shape}]", f"for {g.loops}: y[{g.index}] = {dtype}({rest})")


def _whole_power(a: Type, b: Type) -> str:
    """By squaring: the product of those a**(2**k) whose k is a bit of the exponent."""
    g = grid(broadcast(a, b))
    x, n, exponent = g.read("a", a), f"i64({g.read('b', b)})", f"exponent[{g.index}]"
    lines = [
        f"temp exponent: i64[{g.shape}]  temp square0: {a.dtype}[{g.shape}]",
        f"for {g.loops}: {exponent} = select({n} > 63, 62 + {n} % 2, {n})",
        f"for {g.loops}: square0[{g.index}] = {x}",
    ]
    for k in range(1, _SQUARINGS):
        before = f"square{k - 1}[{g.index}]"
        lines.append(f"temp square{k}: {a.dtype}[{g.shape}]")
        lines.append(f"for {g.loops}: square{k}[{g.index}] = {before} * {before}")
    factors = [f"select(((exponent[{g.index}] >> {k}) & 1) == 1, square{k}[{g.index}], 1)" for k in range(_SQUARINGS)]
    odd = f"select({exponent} % 2 == 0, 1, {x})"
    unit = f"({x} == 1)" if a.dtype.kind is Kind.UNSIGNED else f"(({x} == 1) | ({x} == -1))"
    lines.append(f"out y: {a.dtype}[{g.shape}]")
    lines.append(
        f"for {g.loops}: y[{g.index}] = select({exponent} < 0, select({unit}, {odd}, 0), {' * '.join(factors)})"
    )
    return text(*lines)


OPERATORS = operators(sign, trunc, is_nan, is_inf, mod, fmod, floor_div, power, shift_left, shift_right, bitcast)
