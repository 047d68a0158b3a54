"""What a machine can do at best: float32 multiply-adds per second, and bytes read from memory per second.

Both are loops over registers of the widest vectors the machine has, written in LLVM and run on as many threads as the
code under test has. The multiply-add loop keeps more independent sums than latency times issue width asks for; the
reading loop sums an array several times as large as the last cache.
"""

from __future__ import annotations

import ctypes
import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import llvmlite.binding as llvm
import llvmlite.ir as ir
import numpy as np

from dovetail.targets.model import Target

FLOAT, I32, I64, POINTER = ir.FloatType(), ir.IntType(32), ir.IntType(64), ir.PointerType()
LEAST_BLOCK_SECONDS = 0.02
LEAST_ARRAY_BYTES = 256 * 2**20
STEPS, READ_SUMS = 4, 8
LINE_BYTES = 64
OPERANDS = 4
"""Registers of the multiply-add loop that hold no sum: two factors, and two to spare."""
ENOUGH_SUMS = 24
"""More than any machine needs to hide the latency of its multiply-adds."""


@dataclass(frozen=True, slots=True)
class Vectors:
    """The widest float32 vectors of a machine, how many sums stay in its registers, and its largest cache."""

    lanes: int
    sums: int
    last_cache_bytes: int


def vectors_of(target: Target) -> Vectors:
    """Taken from the description of the machine."""
    lanes = max((width // 4 for width in target.vector_bytes), default=1)
    registers = target.registers.count if target.registers else 0
    sums = max(1, min(ENOUGH_SUMS, registers - OPERANDS)) if registers else 8
    return Vectors(lanes, sums, max((cache.bytes for cache in target.caches), default=0))


class Peak:
    """Compiles both loops once; each ``measure`` is one block of each.

    ``read_bytes`` are read again and again where they are given: from the nearest cache that holds them.
    """

    def __init__(self, vectors: Vectors, threads: int, read_bytes: int | None = None) -> None:
        self._engine = _compile(_module(vectors))
        address = self._engine.get_function_address
        self._multiply_add = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_int64)(address("multiply_add"))
        self._read = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_void_p, *[ctypes.c_int64] * 2)(address("read"))
        self._threads, self._pool = threads, ThreadPoolExecutor(threads)
        self._flops_per_step = 2 * vectors.lanes * vectors.sums * STEPS
        self._bytes_per_step = 4 * vectors.lanes * READ_SUMS
        self._array = _aligned_ones(read_bytes or max(LEAST_ARRAY_BYTES, 4 * vectors.last_cache_bytes))
        self._flop_steps, self._passes = 100_000, 1

    def measure(self) -> tuple[float, float]:
        """(FLOP/s, bytes/s) of one block each."""
        return self._flops_per_second(), self._bytes_per_second()

    def _flops_per_second(self) -> float:
        while True:
            seconds = self._on_all_threads(lambda _: self._multiply_add(self._flop_steps))
            if seconds >= LEAST_BLOCK_SECONDS:
                return self._threads * self._flop_steps * self._flops_per_step / seconds
            self._flop_steps = _grown(self._flop_steps, seconds)

    def _bytes_per_second(self) -> float:
        steps = self._array.nbytes // self._bytes_per_step // self._threads
        base, share = self._array.ctypes.data, steps * self._bytes_per_step

        def read(thread: int) -> None:
            self._read(base + thread * share, steps, self._passes)

        while True:
            seconds = self._on_all_threads(read)
            if seconds >= LEAST_BLOCK_SECONDS:
                return self._threads * self._passes * share / seconds
            self._passes = _grown(self._passes, seconds)

    def _on_all_threads(self, work: Callable[[int], object]) -> float:
        """Seconds from the first start to the last end; ctypes lets go of the interpreter lock."""
        ready = threading.Barrier(self._threads)

        def timed(thread: int) -> tuple[float, float]:
            ready.wait()
            begun = time.perf_counter()
            work(thread)
            return begun, time.perf_counter()

        spans = list(self._pool.map(timed, range(self._threads)))
        return max(end for _, end in spans) - min(begin for begin, _ in spans)


def _grown(count: int, seconds: float) -> int:
    """A count that should take a quarter longer than a block must."""
    return max(count + 1, math.ceil(count * 1.25 * LEAST_BLOCK_SECONDS / max(seconds, 1e-6)))


def _aligned_ones(size_bytes: int) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    raw = np.ones(size_bytes // 4 + LINE_BYTES // 4, np.float32)
    start = (-raw.ctypes.data % LINE_BYTES) // 4
    return raw[start : start + size_bytes // 4]


def _module(vectors: Vectors) -> ir.Module:
    module = ir.Module()
    vector = ir.VectorType(FLOAT, vectors.lanes)
    fma = ir.Function(module, ir.FunctionType(vector, [vector] * 3), f"llvm.fma.v{vectors.lanes}f32")
    _multiply_add(module, vector, fma, vectors.sums)
    _read(module, vector)
    return module


def _multiply_add(module: ir.Module, vector: ir.VectorType, fma: ir.Function, count: int) -> None:
    """``multiply_add(steps)``: sums[i] = sums[i] * 0.999 + 0.001, STEPS times for each i in each step."""
    function = ir.Function(module, ir.FunctionType(FLOAT, [I64]), "multiply_add")
    builder = ir.IRBuilder(function.append_basic_block())
    factor, term = _splat(vector, 0.999), _splat(vector, 0.001)

    def step(sums: list[ir.Value], _: ir.Value) -> list[ir.Value]:
        for _round in range(STEPS):
            sums = [builder.call(fma, [value, factor, term]) for value in sums]
        return sums

    starts = [_splat(vector, 1.0 + i) for i in range(count)]
    _return_sum(builder, _loop(builder, function.args[0], starts, step))


def _read(module: ir.Module, vector: ir.VectorType) -> None:
    """``read(address, steps, passes)``: READ_SUMS vectors are read and added in each step, all again each pass."""
    function = ir.Function(module, ir.FunctionType(FLOAT, [POINTER, I64, I64]), "read")
    builder = ir.IRBuilder(function.append_basic_block())

    def step(sums: list[ir.Value], index: ir.Value) -> list[ir.Value]:
        first = builder.mul(index, I64(READ_SUMS))
        places = [
            builder.gep(function.args[0], [builder.add(first, I64(i))], source_etype=vector) for i in range(READ_SUMS)
        ]
        return [builder.fadd(s, builder.load(p, align=4, typ=vector)) for s, p in zip(sums, places, strict=True)]

    def once(sums: list[ir.Value], _: ir.Value) -> list[ir.Value]:
        return _loop(builder, function.args[1], sums, step)

    starts = [_splat(vector, 0.0)] * READ_SUMS
    _return_sum(builder, _loop(builder, function.args[2], starts, once))


def _loop(
    builder: ir.IRBuilder,
    steps: ir.Value,
    starts: list[ir.Value],
    step: Callable[[list[ir.Value], ir.Value], list[ir.Value]],
) -> list[ir.Value]:
    """``for index in range(steps): values = step(values, index)``, tested at the bottom."""
    before, body, after = builder.block, builder.append_basic_block(), builder.append_basic_block()
    builder.branch(body)
    builder.position_at_end(body)
    index = builder.phi(I64)
    values = [builder.phi(start.type) for start in starts]
    following, updated = builder.add(index, I64(1)), step(values, index)
    for phi, start, value in zip([index, *values], [I64(0), *starts], [following, *updated], strict=True):
        phi.add_incoming(start, before)
        phi.add_incoming(value, builder.block)
    builder.cbranch(builder.icmp_signed("<", following, steps), body, after)
    builder.position_at_end(after)
    return updated


def _return_sum(builder: ir.IRBuilder, sums: list[ir.Value]) -> None:
    """One number made of all sums, so that none of them is dead code."""
    total = sums[0]
    for value in sums[1:]:
        total = builder.fadd(total, value)
    builder.ret(builder.extract_element(total, I32(0)))


def _splat(vector: ir.VectorType, value: float) -> ir.Constant:
    return ir.Constant(vector, [float(np.float32(value))] * vector.count)


def _compile(module: ir.Module) -> llvm.ExecutionEngine:
    """Machine code as written: no optimiser runs, so no two sums are merged."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    parsed = llvm.parse_assembly(str(module))
    parsed.verify()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=3
    )
    engine = llvm.create_mcjit_compiler(parsed, machine)
    engine.finalize_object()
    return engine
