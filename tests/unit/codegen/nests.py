"""Nests written by hand, and a way to run them natively. Instructions are those of the shipped targets."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dovetail.base.dtypes import dtype
from dovetail.codegen.buffers import ALIGNMENT
from dovetail.codegen.compile import emit_object
from dovetail.codegen.lower import LlvmModule, lower
from dovetail.codegen.shares import status_bytes
from dovetail.ir.index import Index, as_index, variable
from dovetail.ir.nest import Alloc, Buffer, Call, Cell, Loop, Nest, Node, Number, Operand, Parallel, Place
from dovetail.ir.nest_evaluate import evaluate_nest
from dovetail.ir.nest_verify import Machine, verify_nest
from dovetail.runtime import pool
from dovetail.runtime.jit import LoadedCode, load_object
from dovetail.targets.load import load_target
from dovetail.targets.model import MemoryKind, Target

Array = npt.NDArray[np.generic]
IndexLike = Index | int | str
Bound = IndexLike | tuple[IndexLike, ...]


def machine(target: Target) -> Machine:
    registers = frozenset(m.name for m in target.memories if m.kind is MemoryKind.REGISTERS)
    memories = frozenset(m.name for m in target.memories)
    return Machine(target.by_name, memories, registers, frozenset(u.name for u in target.units))


@dataclass(frozen=True, slots=True)
class Run:
    """What a native run left: the arguments that were written, and the status words."""

    arrays: dict[str, Array]
    status: tuple[int, int]


class Native:
    """A nest compiled for this machine."""

    def __init__(self, nest: Nest, target: Target, symbols: Mapping[str, int] | None = None) -> None:
        verify_nest(nest, machine(target))
        self.nest = nest
        self.module: LlvmModule = lower(nest, target)
        known = pool.symbols() if symbols is None else symbols
        self.code: LoadedCode = load_object(emit_object(self.module, target), known)

    def run(self, arrays: Mapping[str, Array], sizes: Mapping[str, int] | None = None, units: int = 1) -> Run:
        sizes = sizes or {}
        held = {b.name: np.array(arrays[b.name], b.dtype.numpy, order="C") for b in self.nest.arguments}
        shared = _aligned(self.module.shared.bytes(sizes))
        stride = self.module.private.bytes(sizes)
        private = _aligned(stride * units)
        status = np.zeros(status_bytes(units) // 8, np.int64)
        addresses = [held[b.name].ctypes.data for b in self.nest.arguments]
        values = [sizes[name] for name in self.nest.sizes]
        arenas = [shared.ctypes.data, private.ctypes.data, stride, status.ctypes.data]
        words = np.array([*addresses, *values, *arenas], np.int64)
        entry = self.code.address(self.module.entry)
        if units == 1:
            ctypes.CFUNCTYPE(None, ctypes.c_int32, ctypes.c_int32, ctypes.c_void_p)(entry)(0, 1, words.ctypes.data)
        else:
            pool.run(entry, words.ctypes.data, units)
        written = {name: held[name] for name in self.nest.written}
        return Run(written, (int(status[0]), int(status[1])))


def check(nest: Nest, target: Target, arrays: Mapping[str, Array], want: Mapping[str, Array], **sizes: int) -> None:
    """Native code with one and with two units, and the interpreter, all give ``want`` exactly."""
    native = Native(nest, target)
    for units in (1, 2):
        found = native.run(arrays, sizes, units)
        assert found.status == (0, 0)
        for name, array in want.items():
            np.testing.assert_array_equal(found.arrays[name], array, err_msg=f"{units} units")
    meant = evaluate_nest(nest, target.by_name, arrays, sizes)
    for name, array in want.items():
        np.testing.assert_array_equal(meant[name], array, err_msg="interpreter")


def avx2() -> Target:
    return load_target("x86-64-v3")


def buffer(name: str, kind: str, *shape: IndexLike, memory: str = "memory", lanes: int = 1) -> Buffer:
    return Buffer(name, memory, dtype(kind), tuple(map(as_index, shape)), lanes)


def registers(name: str, kind: str, lanes: int, *shape: int) -> Buffer:
    return buffer(name, kind, *shape, memory="registers", lanes=lanes)


def place(name: str, *indices: IndexLike) -> Place:
    return Place(name, tuple(map(as_index, indices)))


def cell(name: str, *position: int) -> Cell:
    return Cell(name, position)


def number(value: int | float, kind: str = "f32") -> Number:
    return Number(value, dtype(kind))


def call(name: str, *operands: Operand, **params: Bound) -> Call:
    return Call(name, operands, tuple((n, _bounds(v)) for n, v in params.items()))


def loop(var: str, lower: Bound, upper: Bound, *body: Node, step: int = 1, downward: bool = False) -> Loop:
    return Loop(var, _bounds(lower), _bounds(upper), step, body, downward)


def allocate(buffers: tuple[Buffer, ...], *body: Node) -> Alloc:
    node = Alloc(buffers[-1], body)
    for one in reversed(buffers[:-1]):
        node = Alloc(one, (node,))
    return node


def _bounds(value: Bound) -> tuple[Index, ...]:
    return tuple(map(as_index, value if isinstance(value, tuple) else (value,)))


def _aligned(count: int) -> npt.NDArray[np.uint8]:
    raw = np.full(count + ALIGNMENT, 0xA5, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + count]


def integers(rng: np.random.Generator, *shape: int, kind: str = "f32") -> Array:
    return rng.integers(-3, 4, shape).astype(dtype(kind).numpy)


def matmul(m: int, n: int, k: int, rows: int, vectors: int, lanes: int) -> Nest:
    """c[m, n] = a * b on a register tile of rows x (vectors * lanes) that divides it.

    a comes packed [m/rows][k][rows] and b packed [n/tile][k][tile].
    """
    tile, kind = vectors * lanes, f"f32x{lanes}"
    cells = [(i, j) for i in range(rows) for j in range(vectors)]
    p, q, kk = variable("p"), variable("q"), variable("kk")
    zero = [call(f"move.{kind}", cell("acc", *at), number(0.0)) for at in cells]
    inner: list[Node] = [call(f"load.{kind}", cell("w", j), place("b", q, kk, j * lanes)) for j in range(vectors)]
    for i in range(rows):
        inner.append(call(f"load_broadcast.{kind}", cell("x"), place("a", p, kk, i)))
        inner += [call(f"fma.{kind}", cell("acc", i, j), cell("x"), cell("w", j)) for j in range(vectors)]
    stores = [
        call(f"store.{kind}", place("c", p * rows + i, q * tile + j * lanes), cell("acc", i, j)) for i, j in cells
    ]
    held = (registers("acc", "f32", lanes, rows, vectors), registers("w", "f32", lanes, vectors))
    body = allocate((*held, registers("x", "f32", lanes)), *zero, loop("kk", 0, k, *inner), *stores)
    outer = Parallel("core", "p", (as_index(m // rows),), (loop("q", 0, n // tile, body),))
    arguments = (
        buffer("a", "f32", m // rows, k, rows),
        buffer("b", "f32", n // tile, k, tile),
        buffer("c", "f32", m, n),
    )
    return Nest(arguments, (), (outer,), ("c",))


def packed_matmul(rng: np.random.Generator, m: int, n: int, k: int, rows: int, tile: int) -> dict[str, Array]:
    """Arguments of ``matmul`` and, as ``want``, its result."""
    a, b = integers(rng, m, k), integers(rng, k, n)
    packed_a = a.reshape(m // rows, rows, k).transpose(0, 2, 1)
    packed_b = b.reshape(k, n // tile, tile).transpose(1, 0, 2)
    want = (a.astype(np.int64) @ b.astype(np.int64)).astype(np.float32)
    return {"a": packed_a, "b": packed_b, "c": np.zeros((m, n), np.float32), "want": want}
