"""What a held tensor looks like in its memory: the axes of its buffer, and where an instruction finds its part there.

A region that is held has an axis for each dimension of the tensor (its *image*: what neighbouring tiles share is there
once), or, where an instruction's loop runs over several dimensions or its operand has a layout of its own, an axis for
each loop (*packed*: element by element in the order in which the instruction wants them):

    x[c, p + r, q + s] for matmul16's a[i, k], i = q, k = c:   image   [h, w, c]    a starts at [p + r, q + s, 0]
                                              i = p*q, k = c:  packed  [p, q, c], filled again for each r and s

Where the tensor's own order will not do, axes that the instruction walks come last, in its own order; those of one call
of an operand with a layout (spread over units, or interleaved) are the *block* that the layout describes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import gcd, prod

from dovetail.base.dtypes import DType
from dovetail.base.errors import PlanError
from dovetail.ir.index import Access, Index, constant
from dovetail.ir.interval import interval
from dovetail.ir.nest import Buffer, Place
from dovetail.schedule.placed.alignment import start_unit, takes_rows_only, up
from dovetail.schedule.placed.standing import Ranges, Spot, span
from dovetail.targets.model import Instruction, Layout, Target


@dataclass(frozen=True, slots=True)
class Wanted:
    """One operand of a leaf: what the instruction wants, and what of the program it stands for."""

    operand: str
    access: Access
    memory: str
    dtype: DType
    needles: tuple[tuple[str, ...], ...]
    """Loops of the statement behind each dimension of the operand, outermost first."""
    strides: tuple[int | str, ...]
    """Between neighbours along each dimension; a name is told. Empty: the elements of a call lie dense."""
    layout: Layout | None
    is_written: bool

    @property
    def is_block(self) -> bool:
        """The elements of one call lie together, whatever else is held."""
        return self.layout is not None or (not self.strides and len(self.needles) > 1)

    @property
    def walked(self) -> tuple[str, ...]:
        return tuple(loop for group in self.needles for loop in group)


@dataclass(frozen=True, slots=True)
class Axis:
    """``extent`` places; a step along it moves by ``steps`` in the tensor's dimensions.

    It counts along ``dimension`` of the tensor, or along ``loop`` in parts of ``part`` iterations.
    """

    extent: int
    steps: tuple[int, ...]
    dimension: int = -1
    loop: str = ""
    part: int = 1
    needle: int = -1
    """Which dimension of the operand walks it; -1: none."""
    is_inner: bool = False
    """It counts inside a part of ``loop``; another axis counts the parts."""


@dataclass(frozen=True, slots=True)
class Store:
    """A buffer for the part of ``tensor`` that is touched from a spot; ``axes`` in the buffer's order.

    With a layout, the last ``block`` axes are the elements of one call, and the buffer's last dimensions its places.
    """

    tensor: str
    buffer: Buffer
    axes: tuple[Axis, ...]
    block: int
    layout: Layout | None
    copies: int
    """2 when double buffered: an axis of its own, the first."""
    grid: int
    """Dimensions of the buffer that count units, before all others."""
    strides: tuple[int, ...]
    """Elements between neighbours along each axis (of a block with a layout: as if it were dense)."""

    def place(self, at: Mapping[int, Index], copy: Index) -> Place:
        """The place where each axis (by number) has the value given for it, 0 where none is."""
        values = [at.get(n, constant(0)) for n in range(len(self.axes))]
        outer = len(self.axes) - self.block if self.layout is not None else len(self.axes)
        indices: tuple[Index, ...] = (copy,) if self.copies > 1 else ()
        indices += tuple(values[:outer])
        if self.layout is None:
            return Place(self.buffer.name, indices or (constant(0),))
        elements = dict.fromkeys(self.layout.elements, constant(0))
        for name, needle in zip(self.layout.elements, range(len(elements)), strict=True):
            inside = [n for n in range(outer, len(self.axes)) if self.axes[n].needle == needle]
            step = 1
            for n in reversed(inside):
                elements[name] += values[n] * step
                step *= self.axes[n].extent
        units = tuple(i.substitute(elements) for i in self.layout.units)
        places = tuple(i.substitute(elements) for i in self.layout.places)
        return Place(self.buffer.name, (*units, *indices, *places))


def wanted_operands(
    instruction: Instruction, target: Target, bound: Mapping[str, tuple[str, ...]], accesses: Mapping[str, Access]
) -> tuple[Wanted, ...]:
    """The operands of a leaf; a PlanError where the instruction's own accesses are no plain loops."""
    statement = instruction.program.statements[0]
    own = {a.tensor: a for a in (*statement.reads(), statement.out)}
    layouts = {layout.name: layout for layout in target.layouts}
    found = []
    for operand in instruction.operands:
        needles = []
        for index in own[operand.name].indices:
            name = next(iter(index.names()), "")
            if len(index.terms) != 1 or index.const or index.coefficient(name) != 1:
                raise PlanError(f"'{instruction.name}' walks operand '{operand.name}' by {index}", hint="another one")
            needles.append(bound[name])
        found.append(
            Wanted(
                operand.name,
                accesses[operand.name],
                operand.memory,
                operand.dtype,
                tuple(needles),
                operand.strides,
                layouts[operand.layout] if operand.layout else None,
                operand.name == statement.out.tensor,
            )
        )
    return tuple(found)


def store_for(
    name: str,
    wanted: Wanted,
    here: Spot,
    leaf: Spot,
    sizes: tuple[int, ...],
    target: Target,
    copies: int,
    ranges: Ranges,
) -> Store:
    """The buffer for what is touched from ``here`` on, for calls that each do what is left at ``leaf``.

    The image where the instruction can walk it, packed otherwise."""
    unit = start_unit(target, wanted.memory, wanted.dtype)
    rows = unit > 1 and takes_rows_only(target, wanted.memory)
    axes = _image(wanted, here, leaf, sizes, ranges, unit, rows) if not wanted.is_block else None
    if axes is None:
        axes = _packed(wanted, here, leaf, sizes, ranges, unit)
    store = _store(name, wanted, axes, target, copies, _aligned(axes, wanted, here, leaf, unit, rows), unit)
    strides = None if wanted.is_block else walk_strides(store, wanted, leaf)
    if not wanted.is_block and (strides is None or not _suits(wanted, strides, leaf)):
        raise PlanError(
            f"operand '{wanted.operand}' cannot take '{wanted.access}' from '{wanted.memory}'",
            why=f"its elements would lie {strides} apart",
        )
    return store


def dense_store(name: str, wanted: Wanted, axes: tuple[Axis, ...], target: Target, copies: int) -> Store:
    """A buffer with these axes, one after the other without gaps."""
    return _store(name, wanted, axes, target, copies, _dense(axes))


def suits(store: Store, wanted: Wanted, leaf: Spot) -> bool:
    """Whether an instruction takes an operand from ``store`` as it lies there; calls do what is left at ``leaf``."""
    if wanted.is_block:
        return False
    strides = walk_strides(store, wanted, leaf)
    return strides is not None and _suits(wanted, strides, leaf)


def whole_store(name: str, wanted: Wanted, sizes: tuple[int, ...]) -> Store:
    """A tensor in main memory as a store: an axis for each dimension."""
    rank = len(sizes)
    axes = tuple(Axis(size, _unit(rank, n), n) for n, size in enumerate(sizes))
    return _store(name, wanted, axes, None, 1, _dense(axes))


def coordinate(axis: Axis, access: Access, here: Spot | None, there: Spot) -> Index:
    """Where ``there`` lies on an axis of what is held from ``here`` on (None: from the first element on)."""
    if not any(axis.steps) or axis.is_inner:
        return constant(0)
    if axis.loop and here is not None:
        return (there[axis.loop].base - here[axis.loop].base) // axis.part
    index = access.indices[axis.dimension]
    place = index.substitute({name: standing.base for name, standing in there.items()})
    return place if here is None else place - index.substitute({name: s.base for name, s in here.items()})


def across(near: Axis, far: Axis, store: Store, access: Access, spot: Spot) -> int:
    """Places along ``far``, an axis of ``store``, for one along ``near``, an axis of the same tensor elsewhere.

    ``spot`` is where the region of ``near`` is touched from."""
    if not far.loop:
        return near.steps[far.dimension]
    loop = near.loop or _only_loop(near, access, spot)
    if loop != far.loop:
        return 0
    inner = next((axis.extent for axis in store.axes if axis.is_inner and axis.loop == loop), 0)
    is_short = near.is_inner or not near.loop or (near.part == 1 and near.needle >= 0)
    if not inner:
        return near.part
    if is_short and near.extent > inner:
        raise PlanError(f"parts of {inner} of '{loop}' in '{store.buffer.memory}' are copied {near.extent} at once")
    return int(is_short) if far.is_inner else 0 if is_short else near.part // far.part


def _only_loop(near: Axis, access: Access, spot: Spot) -> str:
    """The loop that an axis along a dimension runs over."""
    index = access.indices[near.dimension]
    moving = [str(loop) for loop, _ in index.terms if spot[str(loop)].left > 1]
    if len(moving) > 1 or any(index.coefficient(loop) > 1 for loop in moving):
        raise PlanError(f"'{access}' is held by loops, and copied by its dimensions", hint="another memory for it")
    return moving[0] if moving else ""


def walk_strides(store: Store, wanted: Wanted, leaf: Spot) -> tuple[int, ...] | None:
    """Elements between neighbours along each dimension of the operand in the buffer; None where they are uneven."""
    found = []
    for group in wanted.needles:
        total, count = 0, 1
        for n, loop in enumerate(reversed(group)):
            if leaf[loop].left == 1 and len(group) > 1:
                continue
            stride = sum(
                s * _speed(axis, loop, wanted.access) for axis, s in zip(store.axes, store.strides, strict=True)
            )
            if n and total and stride != total * count:
                return None
            total = total or stride
            count *= leaf[loop].left
        found.append(total)
    return tuple(found)


def _speed(axis: Axis, loop: str, access: Access) -> int:
    """Places along ``axis`` by which an iteration of ``loop`` moves."""
    if axis.loop:
        return int(axis.loop == loop and axis.needle >= 0)
    return access.indices[axis.dimension].coefficient(loop)


def _image(
    wanted: Wanted, here: Spot, leaf: Spot, sizes: tuple[int, ...], ranges: Ranges, unit: int, rows: bool
) -> tuple[Axis, ...] | None:
    """An axis for each dimension, in the tensor's order if that will do, else in the order in which they are walked.

    None where the instruction would not find its operand so."""
    axes: list[Axis] = []
    rank = len(sizes)
    for dimension, index in enumerate(wanted.access.indices):
        needles = {
            n
            for n, group in enumerate(wanted.needles)
            for loop in group
            if index.coefficient(loop) and leaf[loop].left > 1
        }
        if len(needles) > 1:
            return None
        extent = span(index, here, sizes[dimension], ranges).extent
        if extent > 1 or needles:
            axes.append(Axis(extent, _unit(rank, dimension), dimension, needle=next(iter(needles), -1)))
    repeated = _repeated(wanted, leaf, rank)
    natural: tuple[tuple[Axis, ...], ...] = () if repeated else (tuple(axes),)
    for ordered in (*natural, _ordered(axes + repeated, wanted)):
        trial = _store("", wanted, ordered, None, 1, _aligned(ordered, wanted, here, leaf, unit, rows))
        strides = walk_strides(trial, wanted, leaf)
        if strides is not None and _suits(wanted, strides, leaf):
            return ordered
    return None


def _packed(
    wanted: Wanted, here: Spot, leaf: Spot, sizes: tuple[int, ...], ranges: Ranges, unit: int
) -> tuple[Axis, ...]:
    """An axis for each loop of a dimension that the instruction walks; images of the other dimensions.

    What one call walks lies together where it must: in a block, and where operands do not start anywhere."""
    rank = len(sizes)
    walked = set(wanted.walked)
    axes: list[Axis] = []
    for dimension, index in enumerate(wanted.access.indices):
        if walked & index.names():
            continue
        extent = span(index, here, sizes[dimension], ranges).extent
        if extent > 1:
            axes.append(Axis(extent, _unit(rank, dimension), dimension))
    loops = dict.fromkeys(n for index in wanted.access.indices if walked & index.names() for n, _ in index.terms)
    block: list[Axis] = []
    for loop in loops:
        assert isinstance(loop, str)
        steps = tuple(index.coefficient(loop) for index in wanted.access.indices)
        needle = next((n for n, group in enumerate(wanted.needles) if loop in group), -1)
        if needle < 0:
            axes += [Axis(here[loop].left, steps, loop=loop)] if here[loop].left > 1 else []
            continue
        part = leaf[loop].left if wanted.is_block or unit > 1 else here[loop].left
        is_split = here[loop].left > part
        if is_split:
            many = -(-here[loop].left // part)
            axes.append(Axis(many, tuple(s * part for s in steps), loop=loop, part=part))
        block.append(Axis(part, steps, loop=loop, needle=needle, is_inner=is_split))
    return (*axes, *_ordered(block + _repeated(wanted, leaf, rank), wanted))


def _repeated(wanted: Wanted, spot: Spot, rank: int) -> list[Axis]:
    """Axes for loops that the instruction walks and the tensor does not have: every element again."""
    moving = wanted.access.names()
    return [
        Axis(spot[loop].left, (0,) * rank, loop=loop, needle=n)
        for n, group in enumerate(wanted.needles)
        for loop in group
        if loop not in moving
    ]


def _ordered(axes: list[Axis], wanted: Wanted) -> tuple[Axis, ...]:
    """Those that no call walks first, then as the operand has its dimensions, and fused loops in their order."""

    def rank(axis: Axis) -> tuple[int, int]:
        if axis.needle < 0:
            return -1, 0
        group = wanted.needles[axis.needle]
        if axis.loop:
            return axis.needle, group.index(axis.loop)
        positions = [group.index(loop) for loop in wanted.access.indices[axis.dimension].names() if loop in group]
        return axis.needle, min(positions)

    return tuple(sorted(axes, key=rank))


def _aligned(axes: tuple[Axis, ...], wanted: Wanted, here: Spot, leaf: Spot, unit: int, rows: bool) -> tuple[int, ...]:
    """Strides, innermost last, such that every call starts at a multiple of ``unit``; dense where that is so anyway.

    With ``rows`` so do all rows, where the instruction does not insist on another distance."""
    found: list[int] = []
    step = 1
    for axis in reversed(axes):
        grain = _grain(axis, wanted, here, leaf)
        if rows and found and not _is_insisted(axis, axes, wanted):
            grain = 1
        step = step if step * grain % unit == 0 else up(step, unit)
        found.insert(0, step)
        step *= axis.extent
    return tuple(found)


def _is_insisted(axis: Axis, axes: tuple[Axis, ...], wanted: Wanted) -> bool:
    """Whether the distance along an axis is the instruction's to say, or follows from that along another."""
    if axis.needle < 0:
        return False
    named = bool(wanted.strides) and isinstance(wanted.strides[axis.needle], str)
    return not named or sum(other.needle == axis.needle for other in axes) > 1


def _grain(axis: Axis, wanted: Wanted, here: Spot, leaf: Spot) -> int:
    """Calls start at multiples of this along an axis; 0: always at its first element."""
    if not any(axis.steps) or axis.is_inner or axis.extent == 1:
        return 0
    if axis.loop:
        walked = leaf[axis.loop].left if axis.needle >= 0 else 1
        return 0 if axis.needle >= 0 and here[axis.loop].left <= walked else walked
    index = wanted.access.indices[axis.dimension]
    moving = [str(loop) for loop, _ in index.terms if here[str(loop)].left > leaf[str(loop)].left]
    return gcd(*(index.coefficient(loop) * leaf[loop].left for loop in moving))


def _dense(axes: tuple[Axis, ...]) -> tuple[int, ...]:
    return tuple(prod(axis.extent for axis in axes[n + 1 :]) for n in range(len(axes)))


def _store(
    name: str,
    wanted: Wanted,
    axes: tuple[Axis, ...],
    target: Target | None,
    copies: int,
    strides: tuple[int, ...],
    unit: int = 1,
) -> Store:
    """A buffer with these strides; a block takes the place that its layout gives it."""
    block = sum(axis.needle >= 0 for axis in axes) if wanted.is_block else 0
    layout = wanted.layout
    shape: tuple[int, ...] = (copies,) if copies > 1 else ()
    outer = axes[: len(axes) - block] if layout is not None else axes
    shape += tuple(axis.extent for axis in outer)
    grid: tuple[int, ...] = ()
    if layout is not None and target is not None:
        places = _place_shape(layout, block_shape(axes, wanted))
        shape += places[len(layout.units) :]
        grid = places[: len(layout.units)]
        counts = {unit.name: unit.count for unit in target.units}
        grid = counts.get(target.memory(wanted.memory).per, grid) if layout.units else ()
    apart: tuple[int, ...] = ()
    if layout is None and unit > 1:
        one = strides[0] * axes[0].extent if axes else 1
        apart = ((up(one, unit),) if copies > 1 else ()) + strides
    buffer = Buffer(
        name,
        wanted.memory,
        wanted.dtype,
        tuple(map(constant, (*grid, *(shape or (1,))))),
        tensor=wanted.access.tensor,
        strides=tuple(map(constant, apart)),
    )
    return Store(wanted.access.tensor, buffer, axes, block, layout, copies, len(grid), strides)


def block_shape(axes: tuple[Axis, ...], wanted: Wanted) -> tuple[int, ...]:
    """Extents of one call's operand, dimension by dimension."""
    return tuple(prod(a.extent for a in axes if a.needle == n) for n in range(len(wanted.needles)))


def _place_shape(layout: Layout, shape: tuple[int, ...]) -> tuple[int, ...]:
    ranges = {name: (0, max(extent - 1, 0)) for name, extent in zip(layout.elements, shape, strict=True)}
    ends = [interval(index, ranges) for index in (*layout.units, *layout.places)]
    return tuple(end[1] + 1 for end in ends if end is not None)


def _suits(wanted: Wanted, strides: tuple[int, ...], leaf: Spot) -> bool:
    """Whether the instruction takes an operand that lies so."""
    fixed = wanted.strides or (1,)
    for group, stride, needed in zip(wanted.needles, strides, fixed, strict=True):
        if prod(leaf[loop].left for loop in group) > 1 and isinstance(needed, int) and stride != needed:
            return False
    return True


def _unit(rank: int, dimension: int) -> tuple[int, ...]:
    return tuple(int(d == dimension) for d in range(rank))
