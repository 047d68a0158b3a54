"""One straightforward hand plan per operator for the matrix-vector machine.

Operands come through DRAM, every copy is waited for at once, one tile size serves all loops of an operator, and the
best such size is taken. Operators run one after the other, so that the time of a cell is the sum of theirs. Products
have two forms, of which the faster counts: matrix by matrix, and matrix by vector for each column of ``b``. Their
operands lie padded to whole blocks of 64 in DRAM, which costs nothing here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.accelerators.nodes import alloc, buffer, call, loop, now, place
from benchmarks.accelerators.programs import Cell, Types
from benchmarks.shapes import Gemm
from dovetail.base.dtypes import dtype
from dovetail.ir.index import Index, constant, variable
from dovetail.ir.nest import Buffer, Call, Nest, Node, Place
from dovetail.sim.timed import simulate_time
from dovetail.targets.model import Target

BLOCK = 64
MATRIX_BYTES, VECTOR_BYTES = 32 << 20, 1 << 20
FEW_COLUMNS = 16
"""Up to so many columns a product is also tried column by column."""
LONGEST = 4096
"""Elements that tanh takes at once."""
SIZES = tuple(BLOCK * n for n in (1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 48, 64))


@dataclass(frozen=True, slots=True)
class HandPlan:
    """The best tile size of an operator, and the cycles it takes."""

    tile: int
    cycles: float


def hand_gemm(shape: Gemm, target: Target, types: Types) -> HandPlan:
    """The best form and tile of a product."""
    found = [HandPlan(tile, simulate_time(nest, target).cycles) for tile, nest in _gemm_nests(shape, types)]
    return min(found, key=lambda plan: plan.cycles)


def hand_gru(shape: Cell, target: Target, types: Types) -> float:
    """Cycles of a GRU: the products of all inputs, then for each step the recurrent product and each operator."""
    wide = shape.gates * shape.hidden
    inputs = hand_gemm(Gemm(shape.steps * shape.batch, wide, shape.hidden), target, types).cycles
    recurrent = hand_gemm(Gemm(shape.batch, wide, shape.hidden), target, types).cycles
    steps = sum(simulate_time(nest, target).cycles for nest in gru_operators(shape))
    return inputs + shape.steps * (recurrent + steps)


def gru_operators(shape: Cell) -> Iterator[Nest]:
    """Every operator between the products, in the order of the program."""
    b, h = shape.batch, shape.hidden
    for name, width, repeated in (("add", 2, False), ("add", 2, True), ("mul", 2, True), ("tanh", 2, False)):
        yield elementwise_nest(name, b, width * h, repeated=repeated)
    for name, width, repeated in (("mul", 2, True), ("add", 2, True), ("add", 1, True), ("mul", 1, False)):
        yield elementwise_nest(name, b, width * h, repeated=repeated)
    for name, repeated in (("add", False), ("tanh", False), ("mul", True), ("add", True), ("mul", False)):
        yield elementwise_nest(name, b, h, repeated=repeated)
    yield elementwise_nest("mul", b, h)
    yield elementwise_nest("add", b, h)
    yield elementwise_nest("round", b, h)


def _gemm_nests(shape: Gemm, types: Types) -> Iterator[tuple[int, Nest]]:
    largest = max(shape.m, shape.n, shape.k) + BLOCK
    for tile in (size for size in SIZES if size < largest):
        if _fits(tile, shape.m, shape.n, types):
            yield tile, matrix_nest(shape, tile, types)
        if shape.n <= FEW_COLUMNS and _fits(tile, shape.n, shape.m, types):
            yield tile, vector_nest(shape, tile, types)


def _fits(tile: int, rows: int, columns: int, types: Types) -> bool:
    rows, columns = min(tile, rows), min(tile, _padded(columns))
    data, weights = dtype(types.data).bytes, dtype(types.weights).bytes
    return rows * (tile * data + columns * 4) <= VECTOR_BYTES and tile * columns * weights <= MATRIX_BYTES


def matrix_nest(shape: Gemm, tile: int, types: Types) -> Nest:
    """c[m,n] = a[m,k] * b[k,n] in tiles of ``tile`` in all three; b is the matrix."""
    m, n, k = shape.m, _padded(shape.n), _padded(shape.k)
    tall, wide, deep = min(tile, m), min(tile, n), min(tile, k)
    i, j, z = (variable(name) for name in "ijz")
    rows, columns, depth = ((tile, constant(extent) - var) for extent, var in ((m, i), (n, j), (k, z)))
    y, s, w = (place(name, 0, 0) for name in "ysw")
    get_a = call(f"toChip.{types.data}.{types.data}", s, place("a", i, z), m=rows, p=depth, lds=deep, ldx=k)
    get_b = call(f"toChipMatrix.{types.weights}", w, place("b", z, j), m=depth, p=columns, lds=wide, ldx=n)
    distances = {"ldy": wide, "lda": deep, "ldb": wide}
    product = call(f"MMMul.{types.weights}.{types.data}", y, s, w, m=rows, n=columns, p=depth, **distances)
    put = call("toDram.f32.f32", place("c", i, j), y, m=rows, p=columns, ldx=n, lds=wide)
    sums = loop("z", k, *now("ta", get_a), *now("tb", get_b), product, step=tile)
    tiles = loop("i", m, loop("j", n, _zero(tall * wide), sums, *now("tc", put), step=tile), step=tile)
    arguments = (_dram("a", types.data, m, k), _dram("b", types.weights, k, n), _dram("c", "f32", m, n))
    held = (
        buffer("s", "vector", types.data, tall, deep),
        buffer("w", "matrix", types.weights, deep, wide),
        buffer("y", "vector", "f32", tall, wide),
    )
    return Nest(arguments, (), (alloc(held, tiles),), ("c",))


def vector_nest(shape: Gemm, tile: int, types: Types) -> Nest:
    """The same with a as the matrix and the few columns of b as vectors.

    Blocks of 64 rows follow each other, so that the sums of one are there when its next product comes.
    """
    m, n, k = _padded(shape.m), shape.n, _padded(shape.k)
    tall, deep = min(tile, m), min(tile, k)
    i, z, j, r, c = (variable(name) for name in "izjrc")
    rows, depth = ((tile, constant(extent) - var) for extent, var in ((m, i), (k, z)))
    get_a = call(f"toChipMatrix.{types.weights}", place("w", 0, 0), place("a", i, z), m=rows, p=depth, lds=deep, ldx=k)
    get_b = _columns(f"toChip%.{types.data}.{types.data}", place("s", 0, 0), place("b", z, 0), n, lds=deep, p=depth)
    operands = (place("y", j, r), place("w", r, c), place("s", j, c))
    product = call(f"MVMul64.{types.weights}.{types.data}", *operands, ldw=deep)
    blocks = loop("c", depth, loop("j", n, loop("r", rows, product, step=BLOCK)), step=BLOCK)
    put = _columns("toDram%.f32.f32", place("c", i, 0), place("y", 0, 0), n, lds=tall, p=rows)
    sums = loop("z", k, *now("ta", get_a), *now("tb", get_b), blocks, step=tile)
    tiles = loop("i", m, _zero(n * tall), sums, *now("tc", put), step=tile)
    arguments = (_dram("a", types.weights, m, k), _dram("b", types.data, k, n), _dram("c", "f32", m, n))
    held = (
        buffer("s", "vector", types.data, n, deep),
        buffer("w", "matrix", types.weights, tall, deep),
        buffer("y", "vector", "f32", n, tall),
    )
    return Nest(arguments, (), (alloc(held, tiles),), ("c",))


def elementwise_nest(name: str, rows: int, width: int, *, repeated: bool = False) -> Nest:
    """One operator on ``rows`` x ``width`` numbers in f32: fetched, done in blocks, put back.

    ``add`` and ``mul`` take a second operand, the same for all rows where ``repeated``; ``round`` puts f16 back.
    """
    others = 0 if name in ("tanh", "round") else 1 if repeated else rows
    shape, second = {"m": rows, "lds": width, "ldx": width}, place("b", 0, 0)
    fetched = now("ta", call("toChip.f32.f32", place("s", 0, 0), place("a", 0, 0), p=width, **shape))
    if others:
        fetched += now("tb", call("toChip.f32.f32", place("o", 0, 0), second, p=width, **(shape | {"m": others})))
    kind, result = ("f16", "s") if name == "round" else ("f32", "y")
    put = call(f"toDram.f32.{kind}", place("c", 0, 0), place(result, 0, 0), p=width, **shape)
    body = (*fetched, *_blocks(name, rows, width, repeated), *now("tc", put))
    arguments = (
        _dram("a", "f32", rows, width),
        _dram("b", "f32", max(others, 1), width),
        _dram("c", kind, rows, width),
    )
    held = tuple(buffer(one, "vector", "f32", rows, width) for one in "soy")
    return Nest(arguments, (), (alloc(held, *body),), ("c",))


def _blocks(name: str, rows: int, width: int, repeated: bool) -> tuple[Node, ...]:
    """The calls of an operator."""
    if name == "round":
        return ()
    r, c = variable("r"), variable("c")
    if name == "tanh":
        whole = call("VVTanh.f32", place("y", r, c), place("s", r, c), n=(LONGEST, constant(width) - c))
        return (loop("r", rows, loop("c", width, whole, step=LONGEST)),)
    other = place("o", 0 if repeated else r, c)
    one = call({"add": "VVAdd64.f32", "mul": "VVMul64.f32"}[name], place("y", r, c), place("s", r, c), other)
    return (loop("r", rows, loop("c", width, one, step=BLOCK)),)


def _columns(name: str, first: Place, second: Place, columns: int, lds: int, p: tuple[Index | int, ...]) -> Call:
    """A copy of ``columns`` columns of a matrix in DRAM, rows on the chip; ``name`` has a mark for strided."""
    if columns == 1:
        return call(name.replace("%", ""), first, second, m=1, p=p, lds=lds, ldx=1)
    return call(name.replace("%", "Strided"), first, second, m=columns, p=p, lds=lds, ldx=1, step=columns)


def _zero(count: int) -> Call:
    return call("VVZero.f32", place("y", 0, 0), n=count)


def _dram(name: str, kind: str, *shape: int) -> Buffer:
    return buffer(name, "dram", kind, *shape)


def _padded(extent: int) -> int:
    return -(-extent // BLOCK) * BLOCK
