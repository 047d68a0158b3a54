"""Short spellings for nests that are written by hand."""

from __future__ import annotations

from dovetail.base.dtypes import dtype
from dovetail.ir.index import Index, as_index
from dovetail.ir.nest import Alloc, Buffer, Call, Loop, Node, Operand, Place, Start, Wait

IndexLike = Index | int | str
Bound = IndexLike | tuple[IndexLike, ...]


def buffer(name: str, memory: str, kind: str, *shape: IndexLike) -> Buffer:
    return Buffer(name, memory, dtype(kind), tuple(map(as_index, shape)))


def place(name: str, *indices: IndexLike) -> Place:
    return Place(name, tuple(map(as_index, indices)))


def call(name: str, *operands: Operand, **params: Bound) -> Call:
    return Call(name, operands, tuple((n, bounds(v)) for n, v in params.items()))


def loop(var: str, upper: Bound, *body: Node, lower: Bound = 0, step: int = 1) -> Loop:
    return Loop(var, bounds(lower), bounds(upper), step, body)


def alloc(buffers: tuple[Buffer, ...], *body: Node) -> Alloc:
    """All of ``buffers``, the first outermost."""
    inner = body if len(buffers) == 1 else (alloc(buffers[1:], *body),)
    return Alloc(buffers[0], inner)


def now(token: str, what: Call) -> tuple[Node, ...]:
    """Started and waited for at once."""
    return Start(token, what), Wait(token)


def bounds(value: Bound) -> tuple[Index, ...]:
    return tuple(map(as_index, value)) if isinstance(value, tuple) else (as_index(value),)
