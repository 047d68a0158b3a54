"""The scalar functions of the program language, one row each.

``result`` says how the type comes out: "join" is the joined type of the arguments (arithmetic done in the
statement's type), "bool" a comparison, "float" a function of floats only, "integer" one of integers only.
``meaning`` is the NumPy definition, exact on integers and in float64 on floats.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.generic]


@dataclass(frozen=True, slots=True)
class Primitive:
    """One scalar function."""

    name: str
    arity: int
    result: str
    meaning: Callable[..., Array]
    symbol: str | None = None
    """Infix (arity 2) or prefix (arity 1) spelling."""
    binding: int = 0
    """How tightly the symbol binds; higher is tighter."""
    commutative: bool = False
    neutral: float | None = None
    """The element e with f(e, x) = x, where there is one for all dtypes."""


def _floor_divide(a: Array, b: Array) -> Array:
    safe = np.where(b == 0, np.ones_like(b), b)
    return np.where(b == 0, np.zeros_like(a), np.floor_divide(a, safe))


def _floor_modulo(a: Array, b: Array) -> Array:
    safe = np.where(b == 0, np.ones_like(b), b)
    return np.where(b == 0, np.zeros_like(a), np.mod(a, safe))


def _shift(op: Callable[..., Array]) -> Callable[[Array, Array], Array]:
    def shifted(a: Array, b: Array) -> Array:
        width = a.dtype.itemsize * 8
        return op(a, np.mod(b, np.asarray(width, b.dtype)))

    return shifted


def _erf(a: Array) -> Array:
    return np.asarray(np.vectorize(math.erf, otypes=[np.float64])(a)) if a.size else a


def _rsqrt(a: Array) -> Array:
    return np.asarray(1.0 / np.sqrt(a))


def _sigmoid(a: Array) -> Array:
    e = np.exp(-np.abs(a))
    return np.where(np.signbit(a), e / (1 + e), 1 / (1 + e))


PRIMITIVES = {
    p.name: p
    for p in (
        Primitive("or", 2, "integer", np.bitwise_or, "|", 1, commutative=True, neutral=0),
        Primitive("xor", 2, "integer", np.bitwise_xor, "^", 2, commutative=True, neutral=0),
        Primitive("and", 2, "integer", np.bitwise_and, "&", 3, commutative=True),
        Primitive("eq", 2, "bool", np.equal, "==", 4, commutative=True),
        Primitive("ne", 2, "bool", np.not_equal, "!=", 4, commutative=True),
        Primitive("lt", 2, "bool", np.less, "<", 4),
        Primitive("le", 2, "bool", np.less_equal, "<=", 4),
        Primitive("gt", 2, "bool", np.greater, ">", 4),
        Primitive("ge", 2, "bool", np.greater_equal, ">=", 4),
        Primitive("shl", 2, "integer", _shift(np.left_shift), "<<", 5),
        Primitive("shr", 2, "integer", _shift(np.right_shift), ">>", 5),
        Primitive("add", 2, "join", np.add, "+", 6, commutative=True, neutral=0),
        Primitive("sub", 2, "join", np.subtract, "-", 6),
        Primitive("mul", 2, "join", np.multiply, "*", 7, commutative=True, neutral=1),
        Primitive("div", 2, "float", np.divide, "/", 7),
        Primitive("floordiv", 2, "integer", _floor_divide, "//", 7),
        Primitive("mod", 2, "integer", _floor_modulo, "%", 7),
        Primitive("neg", 1, "join", np.negative, "-", 8),
        Primitive("not", 1, "integer", np.bitwise_not, "~", 8),
        Primitive("max", 2, "join", np.maximum, commutative=True),
        Primitive("min", 2, "join", np.minimum, commutative=True),
        Primitive("abs", 1, "join", np.abs),
        Primitive("select", 3, "select", np.where),
        Primitive("floor", 1, "float", np.floor),
        Primitive("ceil", 1, "float", np.ceil),
        Primitive("trunc", 1, "float", np.trunc),
        Primitive("round", 1, "float", np.rint),
        Primitive("sqrt", 1, "float", np.sqrt),
        Primitive("rsqrt", 1, "float", _rsqrt),
        Primitive("exp", 1, "float", np.exp),
        Primitive("log", 1, "float", np.log),
        Primitive("pow", 2, "float", np.power),
        Primitive("sin", 1, "float", np.sin),
        Primitive("cos", 1, "float", np.cos),
        Primitive("tanh", 1, "float", np.tanh),
        Primitive("erf", 1, "float", _erf),
        Primitive("sigmoid", 1, "float", _sigmoid),
        Primitive("isnan", 1, "bool", np.isnan),
    )
}
"""Comparison of floats follows IEEE 754; max and min propagate NaN; integer x // 0 and x % 0 are 0;
a shift counts modulo the width; round goes half to even."""

INFIX = {p.symbol: p for p in PRIMITIVES.values() if p.symbol and p.arity == 2}
PREFIX = {p.symbol: p for p in PRIMITIVES.values() if p.symbol and p.arity == 1}
