"""A machine of a few instructions on i32, built by hand, and short spellings for nests."""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.base.dtypes import DType, dtype
from dovetail.ir.index import Condition, Index, as_index
from dovetail.ir.nest import Alloc, Buffer, Call, Cell, Nest, Node, Operand, Place
from dovetail.ir.nest_verify import Machine
from dovetail.ir.parse import parse
from dovetail.ir.program import Program

IndexLike = Index | int | str


@dataclass(frozen=True, slots=True)
class PlainOperand:
    name: str
    dtype: DType
    memory: str
    strides: tuple[int | str, ...] = ()


@dataclass(frozen=True, slots=True)
class PlainInstruction:
    name: str
    program: Program
    operands: tuple[PlainOperand, ...]
    constraints: tuple[Condition, ...] = ()


def instruction(name: str, text: str, memory: str = "", strides: tuple[int | str, ...] = ()) -> PlainInstruction:
    """Operands are the tensors of ``text``; those named in ``memory`` lie in main memory, the others in registers."""
    program = parse(text)
    operands = tuple(
        PlainOperand(t.name, t.dtype, "main", strides)
        if t.name in memory
        else PlainOperand(t.name, t.dtype, "registers")
        for t in program.tensors
    )
    return PlainInstruction(name, program, operands)


INSTRUCTIONS = {
    i.name: i
    for i in (
        instruction("load", "in m: i32[4] out r: i32[4] for l<4: r[l] = m[l]", "m"),
        instruction("store", "in r: i32[4] out m: i32[4] for l<4: m[l] = r[l]", "m"),
        instruction("load_n", "size n in 0..4 in m: i32[n] out r: i32[4] for l<n: r[l] = m[l]", "m"),
        instruction("store_n", "size n in 0..4 in r: i32[4] out m: i32[n] for l<n: m[l] = r[l]", "m"),
        instruction("column", "in m: i32[4] out r: i32[4] for l<4: r[l] = m[l]", "m", ("s",)),
        instruction("fma", "in a: i32[4] in b: i32[4] inout c: i32[4] for l<4: c[l] += a[l] * b[l]"),
        instruction("spread", "in v: i64[1] out r: i32[4] for l<4: r[l] = i32(v[0]) + i32(l)"),
        instruction("reduce", "in r: i32[4] out m: i32[1] for l<4: m[0] += r[l]", "m"),
        instruction("even", "in r: i32[4] inout m: i32[4] for l<4 where l % 2 == 0: m[l] = r[l]", "m"),
        instruction(
            "tile",
            "in a: i32[2, 3] in b: i32[3, 2] inout c: i32[2, 2] for i<2, j<2, k<3: c[i, j] += a[i, k] * b[k, j]",
            "abc",
        ),
    )
}
MACHINE = Machine(INSTRUCTIONS, frozenset({"main", "registers"}), frozenset({"registers"}), frozenset({"core"}))


def memory(name: str, *shape: IndexLike, kind: str = "i32") -> Buffer:
    return Buffer(name, "main", dtype(kind), tuple(map(as_index, shape)))


def registers(name: str, *shape: int, lanes: int = 4) -> Buffer:
    return Buffer(name, "registers", dtype("i32"), tuple(map(as_index, shape)), lanes)


def place(name: str, *indices: IndexLike) -> Place:
    return Place(name, tuple(map(as_index, indices)))


def call(name: str, *operands: Operand, **params: IndexLike) -> Call:
    return Call(name, operands, tuple((n, (as_index(v),)) for n, v in params.items()))


R = Cell("r", ())


def with_r(*body: Node, arguments: tuple[Buffer, ...] = (), written: tuple[str, ...] = ("y",)) -> Nest:
    """A nest with arguments x and y of 8 elements and one register r."""
    held = Alloc(registers("r"), body)
    return Nest(arguments or (memory("x", 8), memory("y", 8)), (), (held,), written)
