"""Images read between their elements, at places that are data: along each axis a few elements are mixed.

For every axis there are tables ``place{k}[..., tap]`` and ``weight{k}[..., tap]``, made by statements of their own; the
result is the sum over all taps of all axes of elements times weights.
"""

from __future__ import annotations

from dovetail.base.dtypes import DType
from dovetail.base.errors import OperatorError
from dovetail.ir.graph.graph import Type
from dovetail.ir.graph.operator import Ints, operators
from dovetail.ir.index import ZERO, Index, constant
from dovetail.ops.lookup import need_integers
from dovetail.ops.text import Grid, accumulator, grid, need_rank, need_shape, summed, text

_TAPS = {"nearest": 1, "linear": 2, "cubic": 4}
_PADDING = ("zeros", "border", "reflection")
_STEEPNESS = -0.75
"""Of the cubic, as PyTorch and ONNX have it."""


def grid_sample(x: Type, places: Type, *, mode: str = "linear", padding: str = "zeros", align_corners: int = 0) -> str:
    """``x[n, c, ...]`` at ``places[n, ..., k]``, numbers from -1 to 1 across an axis, the last axis first."""
    need_rank("x", x, 3, 5)
    axes = x.rank - 2
    need_rank("places", places, x.rank, x.rank)
    need_shape("places", places, (x.shape[0], *places.shape[1:-1], constant(axes)))
    if mode not in _TAPS or padding not in _PADDING or not x.dtype.is_float or not places.dtype.is_float:
        raise OperatorError(f"{x} sampled by '{mode}' with '{padding}' around it")
    if ZERO in x.shape[2:]:
        raise OperatorError(f"{x} has no elements to sample")
    points = grid(places.shape[:-1], "o")
    wide = accumulator(x.dtype)
    lines = []
    for k, extent in enumerate(x.shape[2:]):
        read = f"places[{points.index}, {axes - 1 - k}]"
        lines += _coordinate(k, points, read, extent, wide, mode, padding, bool(align_corners))
        lines += _tables(k, points, extent, wide, mode, padding, bool(align_corners))
    taps = [f"t{k}" for k in range(axes)]
    index = ", ".join(f"place{k}[{points.index}, {tap}]" for k, tap in enumerate(taps))
    weights = " * ".join(f"weight{k}[{points.index}, {tap}]" for k, tap in enumerate(taps))
    out = Grid(("o0", "c", *points.names[1:]), (x.shape[0], x.shape[1], *points.extents[1:]))
    loops = ", ".join(f"{tap}<{_TAPS[mode]}" for tap in taps)
    return text(*lines, summed(x.dtype, out, loops, f"x[o0, c, {index}] * {weights}"))


def affine_grid(theta: Type, *, size: Ints, align_corners: int = 0) -> str:
    """Places for ``grid_sample``: the middle of each element of an image of ``size``, by ``theta[n, k, ...]``."""
    axes = len(size)
    if axes not in (2, 3) or min(size) < 1:
        raise OperatorError(f"a grid of {size}", hint="two or three extents")
    need_shape("theta", theta, (theta.shape[0], constant(axes), constant(axes + 1)))
    g = grid(tuple(map(constant, size)))
    wide = accumulator(theta.dtype)
    terms = [f"theta[n, k, {axes}]"]
    for dim, extent in enumerate(size):
        step, first = (2 / (extent - 1), -1.0) if align_corners and extent > 1 else (2 / extent, 1 / extent - 1)
        terms.append(f"theta[n, k, {axes - 1 - dim}] * ({wide}({g.names[dim]}) * {step!r} + {first!r})")
    loops = f"n<{theta.shape[0]}, {g.loops}, k<{axes}"
    return text(
        f"out y: {theta.dtype}[{theta.shape[0]}, {g.shape}, {axes}]",
        f"for {loops}: y[n, {g.index}, k] = {' + '.join(terms)}",
    )


def roi_align(
    x: Type,
    rois: Type,
    images: Type,
    *,
    size: Ints,
    samples: int,
    scale: float = 1.0,
    mode: str = "avg",
    half_pixel: int = 1,
) -> str:
    """Boxes ``rois[r, (x, y, x, y)]`` of image ``images[r]`` as ``size`` bins, ``samples`` by ``samples`` in each."""
    need_rank("x", x, 4, 4)
    need_shape("rois", rois, (rois.shape[0], constant(4)))
    need_shape("images", images, rois.shape[:1])
    need_integers(images)
    if len(size) != 2 or min(size) < 1 or samples < 1 or mode not in ("avg", "max") or ZERO in x.shape[2:]:
        raise OperatorError(f"{x} in {size} bins of {samples} samples by '{mode}'")
    wide, count = accumulator(x.dtype), rois.shape[0]
    lines = []
    for k, extent in enumerate(x.shape[2:]):
        lines += _bins(k, extent, count, size[k], samples, scale, bool(half_pixel), wide)
    loops = f"i0<{samples}, i1<{samples}, t0<2, t1<2"
    places = ", ".join(f"place{k}[r, p{k}, i{k}, t{k}]" for k in (0, 1))
    weights = " * ".join(f"weight{k}[r, p{k}, i{k}, t{k}]" for k in (0, 1))
    out = Grid(("r", "c", "p0", "p1"), (count, x.shape[1], *map(constant, size)))
    value = f"x[images[r], c, {places}] * {weights}"
    if mode == "max":
        return text(*lines, summed(x.dtype, out, loops, value, op="max="))
    return text(*lines, summed(x.dtype, out, loops, value, f"{{t}} / {float(samples * samples)}"))


def _coordinate(
    k: int, points: Grid, read: str, extent: Index, wide: DType, mode: str, padding: str, corners: bool
) -> list[str]:
    """``temp at{k}``: where along axis k a point lies, brought back if it is outside."""
    n = extent.const
    raw, at = f"raw{k}[{points.index}]", f"at{k}[{points.index}]"
    value = f"({read} + 1.0) * {(n - 1) / 2!r}" if corners else f"(({read} + 1.0) * {float(n)} - 1.0) / 2.0"
    low, high = (0.0, n - 1.0) if corners else (-0.5, n - 0.5)
    lines = [
        f"temp raw{k}: {wide}[{points.shape}]  temp at{k}: {wide}[{points.shape}]",
        f"for {points.loops}: {raw} = {f'round({value})' if mode == 'nearest' else value}",
    ]
    moved = raw
    if padding == "border":
        moved = f"select(({raw} < {low!r}) | ({raw} > {high!r}), max(min({raw}, {n - 1.0!r}), 0.0), {raw})"
    elif padding == "reflection" and high > low:
        beyond, turns = f"beyond{k}[{points.index}]", f"turns{k}[{points.index}]"
        span = high - low
        rest = f"({beyond} - {turns} * {span!r})"
        odd = f"({turns} * 0.5 != trunc({turns} * 0.5))"
        moved = (
            f"select({beyond} <= 0.0, {raw}, select(({raw} < {low!r}) == {odd}, {high!r} - {rest}, {low!r} + {rest}))"
        )
        lines += [
            f"temp beyond{k}: {wide}[{points.shape}]  temp turns{k}: {wide}[{points.shape}]",
            f"for {points.loops}: {beyond} = max({low!r} - {raw}, {raw} - {high!r})",
            f"for {points.loops}: {turns} = trunc({beyond} / {span!r})",
        ]
    elif padding == "reflection":
        moved = f"0.0 * {raw}"
    return [*lines, f"for {points.loops}: {at} = {moved}"]


def _tables(k: int, points: Grid, extent: Index, wide: DType, mode: str, padding: str, corners: bool) -> list[str]:
    """``temp place{k}`` and ``temp weight{k}``: the elements around a point, and how much of each."""
    n, taps = extent.const, _TAPS[mode]
    at, base = f"at{k}[{points.index}]", f"base{k}[{points.index}]"
    before = 1 if mode == "cubic" else 0
    lines = [
        f"temp base{k}: i64[{points.shape}]  temp part{k}: {wide}[{points.shape}]",
        f"temp place{k}: i64[{points.shape}, {taps}]  temp weight{k}: {wide}[{points.shape}, {taps}]",
        f"for {points.loops}: {base} = i64({'round' if mode == 'nearest' else 'floor'}({at}))",
        f"for {points.loops}: part{k}[{points.index}] = {at} - floor({at})",
    ]
    for tap, weight in enumerate(_weights(mode, f"part{k}[{points.index}]")):
        index = f"({base} + {tap - before})"
        inside = f"({index} >= 0) & ({index} <= {n - 1})"
        place = f"max(min({index}, {n - 1}), 0)"
        if padding == "reflection":
            place = _mirrored(index, n, corners)
        elif padding == "zeros":
            weight = f"select({inside}, {weight}, 0.0)"
        lines += [
            f"for {points.loops}: place{k}[{points.index}, {tap}] = {place}",
            f"for {points.loops}: weight{k}[{points.index}, {tap}] = {weight}",
        ]
    return lines


def _weights(mode: str, part: str) -> list[str]:
    """Of the elements around a point that lies ``part`` behind one."""
    if mode != "cubic":
        return ["1.0"] if mode == "nearest" else [f"1.0 - {part}", part]
    a = _STEEPNESS
    near = "(({}) * {} - {}) * {} * {} + 1.0"
    far = "((({a}) * {x} - ({b})) * {x} + ({c})) * {x} - ({d})"
    ahead = f"(1.0 - {part})"
    return [
        far.format(a=a, b=5 * a, c=8 * a, d=4 * a, x=f"({part} + 1.0)"),
        near.format(a + 2, part, a + 3, part, part),
        near.format(a + 2, ahead, a + 3, ahead, ahead),
        far.format(a=a, b=5 * a, c=8 * a, d=4 * a, x=f"(2.0 - {part})"),
    ]


def _mirrored(index: str, n: int, corners: bool) -> str:
    """A whole place outside brought back by mirrors at the corners, or at the outer edges of the elements there."""
    period = max(2 * (n - 1), 1) if corners else 2 * n
    turned = f"({index} % {period})"
    return f"min({turned}, {period if corners else period - 1} - {turned})"


def _bins(
    k: int, extent: Index, count: Index, bins: int, samples: int, scale: float, half: bool, wide: DType
) -> list[str]:
    """Places and weights of the samples in each bin of each box along axis k; those far outside weigh nothing."""
    n = extent.const
    low, high = (f"rois[r, {side}] * {scale!r} - {0.5 if half else 0.0}" for side in (1 - k, 3 - k))
    length = f"({high} - ({low}))" if half else f"max({high} - ({low}), 1.0)"
    over = f"r<{count}, p<{bins}, i<{samples}"
    shape = f"{count}, {bins}, {samples}"
    at, near = f"at{k}[r, p, i]", f"near{k}[r, p, i]"
    outside = f"(raw{k}[r, p, i] < -1.0) | (raw{k}[r, p, i] > {float(n)})"
    step = f"({wide}(p) + ({wide}(i) + 0.5) / {float(samples)}) / {float(bins)}"
    return [
        f"temp raw{k}: {wide}[{shape}]  temp at{k}: {wide}[{shape}]  temp near{k}: i64[{shape}]",
        f"temp place{k}: i64[{shape}, 2]  temp weight{k}: {wide}[{shape}, 2]",
        f"for {over}: raw{k}[r, p, i] = {low} + {length} * {step}",
        f"for {over}: {at} = min(max(raw{k}[r, p, i], 0.0), {n - 1.0!r})",
        f"for {over}: {near} = i64(floor({at}))",
        f"for {over}: place{k}[r, p, i, 0] = {near}",
        f"for {over}: place{k}[r, p, i, 1] = min({near} + 1, {n - 1})",
        f"for {over}: weight{k}[r, p, i, 0] = select({outside}, 0.0, 1.0 - ({at} - floor({at})))",
        f"for {over}: weight{k}[r, p, i, 1] = select({outside}, 0.0, {at} - floor({at}))",
    ]


OPERATORS = operators(grid_sample, affine_grid, roi_align)
