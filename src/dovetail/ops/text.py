"""What operator definitions are written with: loops over a shape, broadcast reads, sums, and their refusals.

g = grid(x.shape)                       d0<2, d1<3
f"for {g.loops}: y[{g.index}] = ..."    for d0<2, d1<3: y[d0, d1] = ...
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from dovetail.base.dtypes import DTYPES, DType, compute_type
from dovetail.base.errors import OperatorError
from dovetail.ir.graph.graph import Type
from dovetail.ir.graph.operator import Ints
from dovetail.ir.index import ONE, Index, variable

Shape = tuple[Index, ...]


@dataclass(frozen=True, slots=True)
class Grid:
    """Loops over a shape: one name for each extent."""

    names: tuple[str, ...]
    extents: Shape

    @property
    def loops(self) -> str:
        return ", ".join(f"{name}<{extent}" for name, extent in zip(self.names, self.extents, strict=True))

    @property
    def index(self) -> str:
        return ", ".join(self.names)

    @property
    def shape(self) -> str:
        return ", ".join(map(str, self.extents))

    def keep(self, dims: Collection[int]) -> Grid:
        """The loops of these dimensions only."""
        kept = [dim for dim in range(len(self.names)) if dim in dims]
        return Grid(tuple(self.names[dim] for dim in kept), tuple(self.extents[dim] for dim in kept))

    def without(self, dims: Collection[int]) -> Grid:
        return self.keep([dim for dim in range(len(self.names)) if dim not in dims])

    def read(self, tensor: str, t: Type) -> str:
        """The element of ``tensor`` at a point: axes aligned at the last, an axis of extent 1 read at 0."""
        skipped = len(self.names) - t.rank
        extents = zip(self.names[skipped:], self.extents[skipped:], t.shape, strict=True)
        return f"{tensor}[{', '.join('0' if have == ONE != want else name for name, want, have in extents)}]"

    def at(self, tensor: str, places: dict[int, str | Index]) -> str:
        """The element of ``tensor`` at a point, with other indices in some dimensions."""
        return f"{tensor}[{', '.join(str(places.get(dim, name)) for dim, name in enumerate(self.names))}]"

    def variables(self) -> list[Index]:
        return [variable(name) for name in self.names]


def grid(shape: Sequence[Index], letter: str = "d") -> Grid:
    return Grid(tuple(f"{letter}{dim}" for dim in range(len(shape))), tuple(shape))


def declare(name: str, dtype: DType, shape: Sequence[Index]) -> str:
    """``y: f32[2, 3]``."""
    return f"{name}: {dtype}[{', '.join(map(str, shape))}]"


def text(*lines: str) -> str:
    return "\n".join(line for line in lines if line)


def broadcast(*types: Type) -> Shape:
    """The shape that all of these fit into: axes aligned at the last, an axis of extent 1 stretched."""
    shape: list[Index] = []
    for back in range(1, max(t.rank for t in types) + 1):
        extents = {t.shape[-back] for t in types if t.rank >= back} - {ONE}
        if len(extents) > 1:
            listed = " and ".join(str(t) for t in types)
            one, other = sorted(map(str, extents))[:2]
            raise OperatorError(
                f"the shapes of {listed} do not fit one another",
                why=f"axis -{back} is {one} and {other}",
                hint="equal extents, or an extent of 1",
            )
        shape.insert(0, extents.pop() if extents else ONE)
    return tuple(shape)


def same_dtype(*types: Type) -> DType:
    """The one dtype of these operands."""
    first = types[0].dtype
    for t in types[1:]:
        if t.dtype != first:
            raise OperatorError(f"operands of {first} and {t.dtype}", hint=f'cast(...) {{dtype = "{first}"}}')
    return first


def named_dtype(name: str, default: DType) -> DType:
    """The dtype an attribute names; ``default`` where it names none."""
    if name and name not in DTYPES:
        raise OperatorError(f"unknown dtype '{name}'", hint=f"one of {', '.join(DTYPES)}")
    return DTYPES[name] if name else default


def axis_of(axis: int, rank: int, what: str = "axis") -> int:
    """An axis counted from the first; negative ones count from the last."""
    if not -rank <= axis < rank:
        have = f"there are {rank} axes" if rank != 1 else "there is 1 axis"
        raise OperatorError(f"{what} {axis} is outside", why=have)
    return axis % rank


def axes_of(axes: Ints | None, rank: int) -> tuple[int, ...]:
    """Several axes, each once, in order; all of them where none are named."""
    if axes is None:
        return tuple(range(rank))
    found = sorted(axis_of(axis, rank) for axis in axes)
    if len(set(found)) < len(found):
        raise OperatorError(f"axes {axes} name one axis twice")
    return tuple(found)


def need_rank(name: str, t: Type, least: int, most: int | None = None) -> None:
    """Refuse a tensor of another number of axes."""
    if t.rank < least or (most is not None and t.rank > most):
        wanted = f"at least {least}" if most is None else str(least) if least == most else f"{least} to {most}"
        raise OperatorError(f"{name} is {t}, which has {t.rank} axes, not {wanted}")


def need_shape(name: str, t: Type, shape: Sequence[Index]) -> None:
    """Refuse a tensor of another shape."""
    if t.shape != tuple(shape):
        wanted = ", ".join(map(str, shape))
        raise OperatorError(f"{name} is {t}, its shape must be [{wanted}]")


def count(extents: Sequence[Index], dtype: DType) -> str:
    """How many points there are, as a value of a float dtype."""
    number = 1
    sizes = []
    for extent in extents:
        if extent.is_constant:
            number *= extent.const
        else:
            sizes.append(f"{dtype}({extent})")
    return " * ".join([*sizes, str(float(number))])


def elements(extents: Sequence[Index]) -> Index:
    """How many elements a tensor of these extents has."""
    total = ONE
    for extent in extents:
        if not (total.is_constant or extent.is_constant):
            raise OperatorError(f"{total} times {extent} elements", why="a product of run-time extents is not affine")
        total = total * extent.const if extent.is_constant else extent * total.const
    return total


def accumulator(dtype: DType) -> DType:
    """What sums of ``dtype`` are kept in."""
    return compute_type(dtype)


def summed(
    dtype: DType,
    out: Grid,
    loops: str,
    value: str,
    after: str = "{t}",
    op: str = "+=",
    where: str = "",
    over: str | None = None,
) -> str:
    """``y op= value``, then ``after``; a temp where the sum is not yet the result.

    ``out`` has y's indices and extents, ``over`` the loops in them where they are not those, ``loops`` the loops
    reduced; ``after`` says what becomes of a sum ``{t}``.
    """
    own = out.loops if over is None else over
    every = ", ".join(part for part in (own, loops) if part)
    given = f" where {where}" if where else ""
    wide = accumulator(dtype)
    if after == "{t}" and wide == dtype:
        return text(f"out y: {dtype}[{out.shape}]", f"for {every}{given}: y[{out.index}] {op} {value}")
    return text(
        f"temp total: {wide}[{out.shape}]",
        f"out y: {dtype}[{out.shape}]",
        f"for {every}{given}: total[{out.index}] {op} {value}",
        f"for {own}: y[{out.index}] = {after.format(t=f'total[{out.index}]')}",
    )
