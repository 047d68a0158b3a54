"""Recurrent cells of any kind, unrolled as an exporter does, for the tests of passes that find them again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dovetail.base.dtypes import DTYPES
from dovetail.ir.graph.bound import Array, BoundGraph
from dovetail.ir.graph.build import Builder
from dovetail.ir.graph.graph import Type
from dovetail.ir.index import constant
from dovetail.ops.table import OPERATORS

F32 = DTYPES["f32"]
Cell = Callable[["Unrolled", int, str, Sequence[str]], tuple[str, ...]]
"""The next states, from the step's number, its input and the states."""


def f32(*shape: int) -> Type:
    return Type(F32, tuple(map(constant, shape)))


class Unrolled:
    """A graph that is built step by step; constants hold small whole numbers."""

    def __init__(self, seed: int = 0) -> None:
        self.builder = Builder("model", OPERATORS)
        self.data: dict[str, Array] = {}
        self.numbers = np.random.default_rng(seed)
        self.add = self.builder.add

    def constant(self, *shape: int, array: Array | None = None) -> str:
        """New numbers, or those given."""
        found = self.numbers.integers(-1, 2, shape).astype(np.float32) if array is None else array
        name = f"c{len(self.data)}"
        self.data[name] = found
        dtype = DTYPES["i64" if found.dtype == np.int64 else "f32"]
        return self.builder.constant(name, Type(dtype, tuple(map(constant, found.shape))))

    def cut(self, x: str, t: int, axis: int = 0, how: str = "slice") -> str:
        """Element ``t`` of an axis, without the axis."""
        if how == "gather":
            return self.add("gather", x, self.constant(array=np.array(t)), axis=axis)
        shape = tuple(e.const for k, e in enumerate(self.builder.types[x].shape) if k != axis)
        part = self.add("slice", x, starts=(t,), ends=(t + 1,), axes=(axis,), steps=(1,))
        return self.add("reshape", part, shape=shape)

    def clipped(self, x: str) -> str:
        return self.add("clip", x, low=-4.0, high=4.0)

    def bound(self, *outputs: str) -> BoundGraph:
        return BoundGraph(self.builder.graph(*outputs), self.data)


@dataclass(frozen=True, slots=True)
class Layer:
    """How a loop was written."""

    steps: int
    axis: int = 0
    backwards: bool = False
    how: str = "slice"
    collect: str = "stack"


def unroll(g: Unrolled, layer: Layer, x: str, states: Sequence[str], cell: Cell) -> tuple[str, ...]:
    """The collected first states, and the last states."""
    made = list(states)
    every: list[str] = []
    for number in range(layer.steps):
        t = layer.steps - 1 - number if layer.backwards else number
        made = list(cell(g, number, g.cut(x, t, layer.axis, layer.how), made))
        every.append(made[0])
    if layer.backwards:
        every.reverse()
    if layer.collect == "last":
        return tuple(made)
    if layer.collect == "concat":
        return (g.add("concat", *every, axis=layer.axis), *made)
    rows = [g.add("unsqueeze", value, axes=(layer.axis,)) for value in every]
    return (g.add("concat", *rows, axis=layer.axis), *made)


def lstm(g: Unrolled, inputs: int, hidden: int) -> Cell:
    """With hard gates, so that whole numbers stay whole."""
    w, r, b = g.constant(inputs, 4 * hidden), g.constant(hidden, 4 * hidden), g.constant(4 * hidden)

    def cell(g: Unrolled, number: int, x: str, states: Sequence[str]) -> tuple[str, ...]:
        h, c = states
        total = g.add("add", g.add("add", g.add("matmul", x, w), b), g.add("matmul", h, r))
        gates = [
            g.add("slice", total, starts=(k * hidden,), ends=((k + 1) * hidden,), axes=(1,), steps=(1,))
            for k in range(4)
        ]
        i, f, n, o = (g.clipped(gate) for gate in gates)
        c = g.clipped(g.add("add", g.add("mul", f, c), g.add("mul", i, n)))
        return g.clipped(g.add("mul", o, g.add("relu", c))), c

    return cell


def random_cell(g: Unrolled, inputs: int, hidden: int, states: int, nodes: int) -> Cell:
    """The same random nodes at every step, over everything the step has made so far."""
    numbers = g.numbers
    weights = [g.constant(hidden, hidden) for _ in range(2)]
    bias, enter = g.constant(hidden), g.constant(inputs, hidden)
    plan = [(int(numbers.integers(6)), *map(float, numbers.random(2))) for _ in range(nodes)]
    ends = [float(n) for n in numbers.random(states)]

    def cell(g: Unrolled, number: int, x: str, given: Sequence[str]) -> tuple[str, ...]:
        here = [*given, g.add("matmul", x, enter)]
        for kind, first, second in plan:
            a, b = here[int(first * len(here))], here[int(second * len(here))]
            if kind == 0:
                new = g.add("matmul", a, weights[int(second * 2)])
            elif kind == 1:
                new = g.add("add", a, bias)
            elif kind == 2:
                new = g.add("relu", a)
            else:
                new = g.add(("add", "mul", "max")[int(kind) - 3], a, b)
            here.append(g.clipped(new))
        first_state = g.clipped(g.add("add", g.add("matmul", given[0], weights[0]), here[-1]))
        return first_state, *(g.add("neg", here[int(end * len(here))]) for end in ends[1:])

    return cell
