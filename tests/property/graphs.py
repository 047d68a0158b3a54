"""Random small valid graphs: moves of every kind, functions of each element, products, reductions, norms, constants.

Data are small whole numbers and most operators keep them so; ``exact`` leaves out those that round.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

import numpy as np
from hypothesis import strategies as st

from dovetail.base.dtypes import DTYPES
from dovetail.base.errors import OperatorError
from dovetail.ir.graph.bound import Array, BoundGraph
from dovetail.ir.graph.build import Builder
from dovetail.ir.graph.graph import Attribute, Type
from dovetail.ir.index import constant
from dovetail.ops.table import OPERATORS

_EXACT = ("neg", "abs", "relu", "identity")
_ROUNDING = ("tanh", "sigmoid", "gelu")
_PAIRS = ("add", "sub", "max", "min", "mul")
_EXTENTS = (1, 1, 2, 3, 4, 6)


@st.composite
def graphs(draw: st.DrawFn, most_nodes: int = 10, exact: bool = True) -> BoundGraph:
    """A graph of one to three inputs; every value that nothing reads is an output."""
    maker = _Maker(draw, exact, Builder("g", OPERATORS), {})
    for number in range(draw(st.integers(1, 2))):
        maker.builder.input(f"x{number}", maker.type(draw(st.integers(1, 4))))
    for _ in range(draw(st.integers(1, most_nodes))):
        maker.node()
    graph = maker.builder.graph()
    read = {name for node in graph.nodes for name in node.operands}
    made = [name for node in graph.nodes for name in node.results]
    outputs = [name for name in made if name not in read] or [graph.inputs[0].name]
    outputs += [name for name in made if name in read and draw(st.integers(0, 9)) == 0]
    return BoundGraph(maker.builder.graph(*outputs), maker.data)


@dataclass
class _Maker:
    draw: st.DrawFn
    exact: bool
    builder: Builder
    data: dict[str, Array]

    def node(self) -> None:
        """One more node, or a constant and a node, where the drawn one is valid."""
        moves: tuple[Callable[[str], None], ...] = (self.move, self.move, self.reshape, self.cut, self.joined)
        part = self.draw(
            st.sampled_from((*moves, self.unary, self.pair, self.product, self.reduced, self.image, self.image))
        )
        try:
            part(self.value())
        except OperatorError:
            return

    def move(self, x: str) -> None:
        rank = self.rank(x)
        if self.draw(st.booleans()):
            self.add("transpose", x, perm=tuple(self.draw(st.permutations(range(rank)))))
        else:
            shape = tuple(n if n > 1 else self.draw(st.sampled_from((1, 3))) for n in self.shape(x))
            self.add("expand", x, shape=(*((2,) if self.draw(st.booleans()) else ()), *shape))

    def reshape(self, x: str) -> None:
        total = prod(self.shape(x))
        shape: list[int] = []
        while total > 1 and len(shape) < 4:
            factor = self.draw(st.sampled_from([n for n in range(1, total + 1) if total % n == 0]))
            shape.append(factor)
            total //= factor
        kind = self.draw(st.integers(0, 3))
        if kind == 0:
            self.add("unsqueeze", x, axes=(self.draw(st.integers(0, self.rank(x))),))
        elif kind == 1:
            self.add("squeeze", x)
        else:
            self.add("reshape", x, shape=(*shape, *([total] if total > 1 or not shape else [])))

    def cut(self, x: str) -> None:
        axis = self.draw(st.integers(0, self.rank(x) - 1))
        extent = self.shape(x)[axis]
        if self.draw(st.booleans()) and extent > 1:
            first = self.draw(st.integers(1, extent - 1))
            self.builder.add_many("split", (x,), 2, {"sizes": (first, extent - first), "axis": axis})
            return
        start = self.draw(st.integers(0, extent - 1))
        end = self.draw(st.integers(start + 1, extent))
        self.add("slice", x, starts=(start,), ends=(end,), axes=(axis,), steps=(self.draw(st.sampled_from((1, 1, 2))),))

    def joined(self, x: str) -> None:
        axis = self.draw(st.integers(0, self.rank(x) - 1))
        self.add("concat", *(self.like(x) for _ in range(self.draw(st.integers(0, 1)))), x, axis=axis)

    def unary(self, x: str) -> None:
        self.add(self.draw(st.sampled_from(_EXACT if self.exact else (*_EXACT, *_ROUNDING))), x)

    def pair(self, x: str) -> None:
        other = self.like(x) if self.draw(st.booleans()) else self.constant(x)
        if self.draw(st.booleans()):
            x, other = other, x
        self.add(self.draw(st.sampled_from(_PAIRS)), x, other)

    def product(self, x: str) -> None:
        shape = self.shape(x)
        if self.draw(st.booleans()):
            w = self.new((shape[-1], self.draw(st.sampled_from(_EXTENTS))))
            self.add("matmul", x, w)
        else:
            self.add("matmul", x, self.like(x), transpose_b=1)

    def image(self, x: str) -> None:
        """A layer on images; of something else, an image is made first."""
        shape = self.shape(x)
        if len(shape) != 4:
            x = self.builder.add("reshape", x, shape=(1, -1, *shape[-2:]) if len(shape) > 2 else (1, 1, *shape, 1)[:4])
            shape = self.shape(x)
        kernel = tuple(self.draw(st.sampled_from((1, min(2, n)))) for n in shape[2:])
        pads = tuple(self.draw(st.integers(0, 1)) for _ in range(4))
        if self.draw(st.booleans()):
            channels = self.draw(st.sampled_from((2, 3)))
            self.add("conv", x, self.new((channels, shape[1], *kernel)), pads=pads)
        else:
            self.add("max_pool", x, kernel=kernel, strides=(self.draw(st.integers(1, 2)), 1))

    def reduced(self, x: str) -> None:
        kinds = ("reduce_sum", "reduce_max") if self.exact else ("reduce_sum", "softmax", "layer_norm", "reduce_mean")
        kind = self.draw(st.sampled_from(kinds))
        axis = self.draw(st.integers(0, self.rank(x) - 1))
        if kind.startswith("reduce"):
            self.add(kind, x, axes=(axis,), keepdims=self.draw(st.integers(0, 1)))
        else:
            self.add(kind, x, axis=axis)

    def add(self, op: str, *operands: str, **attributes: Attribute) -> None:
        self.builder.add(op, *operands, **attributes)

    def value(self) -> str:
        names = [name for name, t in self.builder.types.items() if t.rank and self.small(t)]
        return self.draw(st.sampled_from(names))

    def like(self, x: str) -> str:
        """A value of the same type: one that is there, or a constant."""
        t = self.builder.types[x]
        found = [name for name, other in self.builder.types.items() if other == t]
        return self.draw(st.sampled_from(found)) if self.draw(st.integers(0, 3)) else self.new(self.shape(x))

    def constant(self, x: str) -> str:
        """One that can be broadcast against ``x``."""
        shape = tuple(n if self.draw(st.booleans()) else 1 for n in self.shape(x))
        return self.new(shape[self.draw(st.integers(0, len(shape))) :])

    def new(self, shape: tuple[int, ...]) -> str:
        name = f"w{len(self.data)}"
        numbers = np.random.default_rng(self.draw(st.integers(0, 99)))
        low, high = self.draw(st.sampled_from(((-2, 3), (-2, 3), (0, 1), (1, 2))))
        self.data[name] = numbers.integers(low, high, shape).astype(np.float32)
        return self.builder.constant(name, Type(DTYPES["f32"], tuple(map(constant, shape))))

    def type(self, rank: int) -> Type:
        return Type(DTYPES["f32"], tuple(constant(self.draw(st.sampled_from(_EXTENTS))) for _ in range(rank)))

    def shape(self, x: str) -> tuple[int, ...]:
        return tuple(extent.const for extent in self.builder.types[x].shape)

    def rank(self, x: str) -> int:
        return self.builder.types[x].rank

    def small(self, t: Type) -> bool:
        return prod(e.const for e in t.shape) <= 1000
