"""Machines for these tests, and short spellings for nests on them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dovetail.base.dtypes import dtype
from dovetail.ir.index import Index, as_index, variable
from dovetail.ir.nest import Alloc, Buffer, Call, Loop, Nest, Node, Operand, Parallel, Place, Start, Wait
from dovetail.targets.load import load_target
from dovetail.targets.model import Target

IndexLike = Index | int | str
Bound = IndexLike | tuple[IndexLike, ...]
Array = npt.NDArray[np.generic]


@cache
def machine(name: str = "tile4") -> Target:
    return load_target(Path(__file__).parent / f"{name}.toml")


def buffer(name: str, memory: str, kind: str, *shape: IndexLike) -> Buffer:
    return Buffer(name, memory, dtype(kind), tuple(map(as_index, shape)))


def place(name: str, *indices: IndexLike) -> Place:
    return Place(name, tuple(map(as_index, indices)))


def call(name: str, *operands: Operand, **params: Bound) -> Call:
    return Call(name, operands, tuple((n, bounds(v)) for n, v in params.items()))


def loop(var: str, upper: Bound, *body: Node, lower: Bound = 0, step: int = 1, downward: bool = False) -> Loop:
    return Loop(var, bounds(lower), bounds(upper), step, body, downward)


def parallel(var: str, extent: Bound, *body: Node) -> Parallel:
    return Parallel("core", var, bounds(extent), body)


def alloc(buffers: tuple[Buffer, ...], *body: Node) -> Alloc:
    """All of ``buffers``, the first outermost."""
    inner = body if len(buffers) == 1 else (alloc(buffers[1:], *body),)
    return Alloc(buffers[0], inner)


def bounds(value: Bound) -> tuple[Index, ...]:
    return tuple(map(as_index, value)) if isinstance(value, tuple) else (as_index(value),)


def fill(s: Place, x: Place, ld: IndexLike) -> Call:
    return call("fill", s, x, ld=ld, m=4, n=4)


def now(token: str, what: Call) -> tuple[Node, ...]:
    """Started and waited for at once."""
    return Start(token, what), Wait(token)


I4, J4, K = variable("i") * 4, variable("j") * 4, variable("k")


def product_arguments(m: int, n: int, k: int) -> tuple[Buffer, ...]:
    return (
        buffer("a", "memory", "i8", m, k),
        buffer("b", "memory", "i8", k, n),
        buffer("y", "memory", "i32", m, n),
    )


def product(m: int, n: int, k: int, *, spread: bool = False, multiply: str = "multiply", b: str = "fill") -> Nest:
    """y = a @ b in tiles of 4x4x4, each operand copied when it is needed; rows over cores where ``spread``."""
    ldb = {"m": 4, "n": 4} if b == "fill" else {}
    second = call(b, place("w", 0, 0), place("b", K * 4, J4), ld=n, **ldb)
    inner = loop(
        "k",
        k // 4,
        Start("t0", fill(place("s", 0, 0), place("a", I4, K * 4), k)),
        Start("t1", second),
        Wait("t0"),
        Wait("t1"),
        call(multiply, place("acc", 0, 0), place("s", 0, 0), place("w", 0, 0)),
    )
    drained = now("t2", call("drain", place("y", I4, J4), place("acc", 0, 0), ld=n))
    tile = loop("j", n // 4, call("clear", place("acc", 0, 0)), inner, *drained)
    held = alloc(
        (
            buffer("s", "scratchpad", "i8", 4, 4),
            buffer("w", "scratchpad", "i8", 4, 4),
            buffer("acc", "sums", "i32", 4, 4),
        ),
        tile,
    )
    rows = parallel("i", m // 4, held) if spread else loop("i", m // 4, held)
    return Nest(product_arguments(m, n, k), (), (rows,), ("y",))


def integers(rng: np.random.Generator, *shape: int) -> Array:
    return rng.integers(-9, 10, shape).astype(np.int8)
