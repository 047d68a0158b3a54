"""Nests: placed data, loops and instruction calls in the order they run; what codegen lowers and a simulator steps.

    nest     = node*
    node     = "loop" var "in" max(lower...) ".." min(upper...) "step" int ":" node*
             | "parallel" unit var "<" extent ["backward" index] ":" node*  -- iterations spread over units, no order
             | "alloc" buffer ":" node*                      -- alive inside; per unit when inside a parallel
             | "call" instruction(operand, ...) {param = min(index...), ...}
             | "start" token "=" call | "wait" token         -- asynchronous calls; a wait is for all of its token
             | "barrier" unit                                -- all units of a kind meet
             | "fetch" place ["to write"]                    -- will be used soon: a hint, changes nothing
             | "when" condition, ... ":" node* ["else" node*]
    operand  = cell | place | number | value
    cell     = register "{" int, ... "}"       -- a register of a register buffer, chosen at compile time
    place    = buffer "[" index, ... "]"       -- an element in memory; the instruction reaches on from there
    number   = a literal, spread over the lanes; value = "(" index ")", a loop's own value

Every unit runs the whole nest; a ``parallel`` gives each its share of the iterations. Calls outside a parallel run
on every unit, so they may write registers and private buffers only. A place may hold indirect reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dovetail.base.dtypes import DType
from dovetail.ir.index import ZERO, Condition, Index


@dataclass(frozen=True, slots=True)
class Buffer:
    """Storage. In registers each cell of ``shape`` holds ``lanes`` elements; elsewhere strides are in elements."""

    name: str
    memory: str
    dtype: DType
    shape: tuple[Index, ...]
    lanes: int = 1
    tensor: str = ""
    """The program's tensor this holds (a part of), for messages."""
    strides: tuple[Index, ...] = ()
    """Row-major and dense when empty."""

    def __str__(self) -> str:
        shape = ", ".join(map(str, self.shape))
        wide = f" x {self.lanes}" if self.lanes > 1 else ""
        return f"{self.name}: {self.dtype}{wide}[{shape}] @ {self.memory}"


@dataclass(frozen=True, slots=True)
class Cell:
    """A register."""

    buffer: str
    position: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.buffer}{{{', '.join(map(str, self.position))}}}"


@dataclass(frozen=True, slots=True)
class Place:
    """An element in memory; for an instruction that touches more, its first one."""

    buffer: str
    indices: tuple[Index, ...]

    def __str__(self) -> str:
        return f"{self.buffer}[{', '.join(map(str, self.indices))}]"


@dataclass(frozen=True, slots=True)
class Number:
    """A literal of a dtype, spread over as many lanes as the instruction wants."""

    value: int | float | bool
    dtype: DType

    def __str__(self) -> str:
        return f"{self.dtype}({self.value})"


@dataclass(frozen=True, slots=True)
class Value:
    """A loop's own value, as i64."""

    index: Index

    def __str__(self) -> str:
        return f"({self.index})"


Operand = Cell | Place | Number | Value


@dataclass(frozen=True, slots=True)
class Call:
    """One instruction. Operands in the instruction's own order; a parameter is the smallest of its indices.

    ``params`` gives the instruction's parameters and, by the same names as in its operands, its named strides.
    """

    instruction: str
    operands: tuple[Operand, ...]
    params: tuple[tuple[str, tuple[Index, ...]], ...] = ()

    def __str__(self) -> str:
        text = f"{self.instruction}({', '.join(map(str, self.operands))})"
        if self.params:
            text += " {" + ", ".join(f"{n} = {_extreme('min', v)}" for n, v in self.params) + "}"
        return text


@dataclass(frozen=True, slots=True)
class Loop:
    """``var`` from the largest of ``lower`` up to (not with) the smallest of ``upper``."""

    var: str
    lower: tuple[Index, ...]
    upper: tuple[Index, ...]
    step: int
    body: tuple[Node, ...]
    downward: bool = False


@dataclass(frozen=True, slots=True)
class Parallel:
    """``var < extent``, each iteration on some unit; the split does not change any result."""

    unit: str
    var: str
    extent: tuple[Index, ...]
    """The smallest of these."""
    body: tuple[Node, ...]
    backward: Index = ZERO
    """Where this is 1 and not 0, each unit begins at the end of its share: a hint, changes nothing."""


@dataclass(frozen=True, slots=True)
class Alloc:
    """``buffer`` exists inside ``body``; undefined at first."""

    buffer: Buffer
    body: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Start:
    """Begin an asynchronous call; ``token`` names it for ``Wait``. Several calls may share a token, which is started
    again before it is waited for: a fill of many copies is one thing to wait for."""

    token: str
    call: Call


@dataclass(frozen=True, slots=True)
class Wait:
    """All calls that were started with the token have ended after this; nothing happens where none are under way."""

    token: str


@dataclass(frozen=True, slots=True)
class Barrier:
    """No unit goes on before all have come here. Never inside a parallel."""

    unit: str


@dataclass(frozen=True, slots=True)
class Fetch:
    """The element will be used soon, so a machine with caches may bring its line near. Changes nothing.

    It may lie behind the end of the buffer: a stream is asked for ahead of where it is read."""

    place: Place
    write: bool = False


@dataclass(frozen=True, slots=True)
class When:
    """``body`` where all conditions hold, ``otherwise`` elsewhere."""

    conditions: tuple[Condition, ...]
    body: tuple[Node, ...]
    otherwise: tuple[Node, ...] = ()


Node = Loop | Parallel | Alloc | Call | Start | Wait | Barrier | Fetch | When


@dataclass(frozen=True, slots=True)
class Nest:
    """A whole kernel: the caller's arrays as buffers in main memory, run-time sizes, and what to do."""

    arguments: tuple[Buffer, ...]
    """in, const, out and inout tensors, in the program's order."""
    sizes: tuple[str, ...]
    body: tuple[Node, ...]
    written: tuple[str, ...] = ()
    """Arguments that are written."""

    def __str__(self) -> str:
        head = [f"argument {b}" for b in self.arguments]
        head += [f"size {', '.join(self.sizes)}"] if self.sizes else []
        return "\n".join([*head, *_lines(self.body, 0)])


_AROUND = (Loop, Parallel, Alloc, When)
"""Kinds of nodes with others inside."""


def walk(nodes: tuple[Node, ...]) -> Iterator[Node]:
    """All nodes, outermost first."""
    left = list(reversed(nodes))
    while left:
        node = left.pop()
        yield node
        if isinstance(node, _AROUND):
            if isinstance(node, When):
                left += reversed(node.otherwise)
            left += reversed(node.body)


def calls(nodes: tuple[Node, ...]) -> Iterator[Call]:
    """Every instruction call, started ones too."""
    for node in walk(nodes):
        if isinstance(node, Call):
            yield node
        elif isinstance(node, Start):
            yield node.call


def _lines(nodes: tuple[Node, ...], depth: int) -> Iterator[str]:
    pad = "  " * depth
    for node in nodes:
        if isinstance(node, Alloc):
            yield f"{pad}alloc {node.buffer}"
            yield from _lines(node.body, depth)
            continue
        yield pad + _head(node)
        if isinstance(node, Loop | Parallel | When):
            yield from _lines(node.body, depth + 1)
        if isinstance(node, When) and node.otherwise:
            yield f"{pad}else:"
            yield from _lines(node.otherwise, depth + 1)


def _head(node: Node) -> str:
    if isinstance(node, Loop):
        bounds = f"{_extreme('max', node.lower)}..{_extreme('min', node.upper)}"
        step = f" step {node.step}" if node.step != 1 else ""
        return f"loop {node.var} in {bounds}{step}{' downward' if node.downward else ''}:"
    if isinstance(node, Parallel):
        backward = "" if node.backward == ZERO else f" backward {node.backward}"
        return f"parallel {node.unit} {node.var}<{_extreme('min', node.extent)}{backward}:"
    if isinstance(node, Start):
        return f"start {node.token} = {node.call}"
    if isinstance(node, Wait):
        return f"wait {node.token}"
    if isinstance(node, Barrier):
        return f"barrier {node.unit}"
    if isinstance(node, Fetch):
        return f"fetch {node.place}{' to write' if node.write else ''}"
    if isinstance(node, When):
        return f"when {', '.join(map(str, node.conditions))}:"
    return f"call {node}"


def _extreme(name: str, values: tuple[Index, ...]) -> str:
    return str(values[0]) if len(values) == 1 else f"{name}({', '.join(map(str, values))})"
