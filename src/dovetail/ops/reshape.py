"""One row-major order, other axes. Axes are grouped where both shapes part at the same element:

f32[4, 6, 5] -> f32[24, 5]      y[6*a + b, c] = x[a, b, c]       one side of the group nests in the other
f32[4, 6]    -> f32[3, 8]       y[a, b] = x[(8*a + b) // 6, (8*a + b) % 6]
"""

from __future__ import annotations

from itertools import pairwise

from dovetail.base.errors import OperatorError
from dovetail.ir.graph.graph import Type
from dovetail.ir.index import ONE, ZERO, Index, constant, variable
from dovetail.ops.text import Shape, declare, elements, text


def reshaped(x: Type, shape: Shape) -> str:
    """x's elements under another shape."""
    loops: list[str] = []
    read: list[Index] = []
    written: list[Index] = []
    for old, new in _groups(x, shape):
        finest = _refined(old, new)
        extents = new if finest is None else finest
        names = [f"d{len(loops) + k}" for k in range(len(extents))]
        loops += [f"{name}<{extent}" for name, extent in zip(names, extents, strict=True)]
        place = _linear(names, extents)
        read += _parts(place, old) if finest is None else _joined(names, extents, old)
        written += [variable(name) for name in names] if finest is None else _joined(names, extents, new)
    accesses = f"{_access('y', shape, written)} = {_access('x', x.shape, read)}"
    return text(f"out {declare('y', x.dtype, shape)}", f"for {', '.join(loops)}: {accesses}")


def _access(name: str, shape: Shape, indices: list[Index]) -> str:
    """Axes of extent 1 have no part in the groups and are read at 0."""
    rest = iter(indices)
    return f"{name}[{', '.join(str(ZERO if extent == ONE else next(rest)) for extent in shape)}]"


def _groups(x: Type, shape: Shape) -> list[tuple[Shape, Shape]]:
    """The fewest axes on both sides that hold the same elements, from the first on; axes of extent 1 left out."""
    groups = []
    old, new = ([extent for extent in side if extent != ONE] for side in (x.shape, shape))
    if ZERO in old and ZERO in new:
        return [(tuple(old), tuple(new))]
    while old or new:
        left, right = old[:1], new[:1]
        del old[:1], new[:1]
        while elements(left) != elements(right):
            short, rest = (left, old) if _fewer(elements(left), elements(right)) else (right, new)
            if not rest:
                raise _unfit(x, shape)
            short.append(rest.pop(0))
        groups.append((tuple(left), tuple(right)))
    return groups


def _refined(old: Shape, new: Shape) -> Shape | None:
    """Extents of which both sides' axes are products of neighbours; None when there are none such."""
    for side in (old, new):
        for extent in side[1:]:
            if not extent.is_constant:
                listed = ", ".join(map(str, side))
                raise OperatorError(f"[{listed}] cannot be joined or split", why=f"{extent} is not its first extent")
    if ZERO in old:
        return None
    steps = sorted({1, *_strides(old), *_strides(new)})
    if any(big % small for small, big in pairwise(steps)):
        return None
    total = elements(old)
    inner = [constant(big // small) for small, big in pairwise(steps)]
    return (total // steps[-1], *reversed(inner))


def _strides(shape: Shape) -> list[int]:
    """How many elements lie between neighbours along each axis."""
    found, step = [], 1
    for extent in reversed(shape):
        found.append(step)
        step *= extent.const if extent.is_constant else 1
    return found


def _linear(names: list[str], extents: Shape) -> Index:
    total = ZERO
    for name, step in zip(reversed(names), _strides(extents), strict=True):
        total += variable(name) * step
    return total


def _joined(names: list[str], extents: Shape, shape: Shape) -> list[Index]:
    """The index of each axis of ``shape``, whose axes are products of neighbouring ``extents``."""
    steps = dict(zip(reversed(names), _strides(extents), strict=True))
    found = []
    for step, extent in zip(_strides(shape), reversed(shape), strict=True):
        beyond = step * extent.const if extent.is_constant else None
        inside = [n for n in names if steps[n] >= step and (beyond is None or steps[n] < beyond)]
        found.append(sum((variable(n) * (steps[n] // step) for n in inside), ZERO))
    return list(reversed(found))


def _parts(place: Index, shape: Shape) -> list[Index]:
    """The index of each axis of ``shape`` at a place in row-major order; only the first extent may be a size."""
    found = []
    for number, step in enumerate(reversed(_strides(shape))):
        part = place // max(step, 1)
        found.append(part if number == 0 else part % max(shape[number].const, 1))
    return found


def _fewer(a: Index, b: Index) -> bool:
    """Whether a side has fewer elements and must take another axis; of sides with a size, the one without."""
    if a.is_constant != b.is_constant:
        return a.is_constant
    if a.is_constant:
        return a.const < b.const
    return a.terms[0][1] < b.terms[0][1]


def _unfit(x: Type, shape: Shape) -> OperatorError:
    return OperatorError(f"the elements of {x} do not fill the shape [{', '.join(map(str, shape))}]")
