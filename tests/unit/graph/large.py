"""Graphs of any number of nodes, for tests of how long passes take."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dovetail.base.dtypes import DTYPES
from dovetail.ir.graph.bound import Array, BoundGraph
from dovetail.ir.graph.build import Builder
from dovetail.ir.graph.graph import Attribute, Type
from dovetail.ir.index import constant
from dovetail.ops.table import OPERATORS

F32 = DTYPES["f32"]


class Large:
    """A graph in the making, over tensors of 8 x 8 numbers."""

    def __init__(self) -> None:
        self.builder = Builder("large", OPERATORS)
        self.data: dict[str, Array] = {}
        self.numbers = np.random.default_rng(0)
        self.x = self.builder.input("x", typed(8, 8))

    def add(self, op: str, *operands: str, **attributes: Attribute) -> str:
        return self.builder.add(op, *operands, **attributes)

    def constant(self, *shape: int) -> str:
        name = self.builder.constant(f"c{len(self.data)}", typed(*shape))
        self.data[name] = self.numbers.integers(1, 9, shape).astype(np.float32)
        return name

    def bound(self, *outputs: str) -> BoundGraph:
        return BoundGraph(self.builder.graph(*outputs), self.data)


def typed(*shape: int) -> Type:
    return Type(F32, tuple(map(constant, shape)))


def mixed(count: int) -> BoundGraph:
    """Layers one behind the other, each of three out of eleven steps, drawn at random."""
    made = Large()
    value, number = made.x, 0
    while number < count:
        steps = made.numbers.choice(len(_STEPS), 3)
        for step in steps:
            value = _STEPS[step](made, value)
        number += 2 * len(steps)
    return made.bound(value)


def fanned(count: int) -> BoundGraph:
    """One value that all nodes read, nodes that read a hundred of them."""
    made = Large()
    base = made.add("exp", made.x)
    parts = [made.add("add", base, made.constant()) for _ in range(count)]
    return made.bound(*(made.add("concat", *parts[n : n + 100], axis=0) for n in range(0, count, 100)))


def answered(count: int) -> BoundGraph:
    """As many outputs as nodes, all of what moves one value."""
    made = Large()
    rows = [made.add("slice", made.x, starts=(row % 8,), ends=(row % 8 + 1,), axes=(0,)) for row in range(count // 2)]
    return made.bound(*(made.add("mul", row, made.constant()) for row in rows))


def emptied(count: int) -> BoundGraph:
    """Nodes that all go: each does nothing, or is the same as another."""
    made = Large()
    value = made.add("exp", made.x)
    for _ in range(count // 4):
        forth = made.add("transpose", made.add("identity", value), perm=(1, 0))
        back = made.add("transpose", forth, perm=(1, 0))
        value = made.add("add", back, made.add("exp", made.x))
    return made.bound(value)


def normed(count: int) -> BoundGraph:
    """Factors and shifts behind products."""
    made = Large()
    value = made.x
    for _ in range(count // 4):
        product = made.add("mul", made.add("matmul", value, made.constant(8, 8)), made.constant(8))
        value = made.add("relu", made.add("add", product, made.constant(8)))
    return made.bound(value)


def _through(made: Large, value: str, op: str) -> str:
    turned = made.add("transpose", value, perm=(1, 0))
    return made.add("transpose", made.add(op, turned), perm=(1, 0))


def _cut(made: Large, value: str) -> str:
    left, right = (made.add("slice", value, starts=(n,), ends=(n + 4,), axes=(1,)) for n in (0, 4))
    return made.add("concat", made.add("mul", left, right), right, axis=1)


def _shaped(made: Large, value: str) -> str:
    flat = made.add("tanh", made.add("reshape", value, shape=(2, 4, 8)))
    return made.add("reshape", flat, shape=(8, 8))


_STEPS: tuple[Callable[[Large, str], str], ...] = (
    lambda made, value: made.add("add", made.add("matmul", value, made.constant(8, 8)), made.constant(8)),
    lambda made, value: made.add("relu", value),
    lambda made, value: made.add("mul", value, made.add("sigmoid", value)),
    lambda made, value: made.add("softmax", value),
    lambda made, value: made.add("sub", value, made.add("reduce_mean", value, axes=(1,))),
    lambda made, value: made.add("add", value, made.x),
    lambda made, value: made.add("mul", value, made.constant()),
    lambda made, value: _through(made, value, "exp"),
    lambda made, value: _through(made, value, "softmax"),
    _cut,
    _shaped,
)
