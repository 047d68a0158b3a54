"""Shapes written as programs in Dovetail's language.

    Gemm(2, 3, 4)  ->  in a: f32[2,4]
                       in b: f32[4,3]
                       out c: f32[2,3]
                       for i<2, j<3, l<4: c[i,j] += a[i,l] * b[l,j]

Padding is a ``where``: a point whose window position lies outside the input is not there. Conditions that always
hold are left out. The backward forms gather as well; no statement scatters.
"""

from collections.abc import Collection
from typing import NamedTuple

from benchmarks.shapes import Axes, Conv, Gemm, Matmul

KERNEL_LOOPS, OUT_LOOPS, IN_LOOPS = ("t", "r", "s"), ("o", "p", "q"), ("z", "i", "j")


def gemm(shape: Gemm, constants: Collection[str] = (), dtype: str = "f32", accumulator: str = "") -> str:
    """``c += a * b`` in the layout of ``shape``; operands named in ``constants`` are ``const``."""
    a, b = ("l,i" if shape.trans_a else "i,l"), ("j,l" if shape.trans_b else "l,j")
    return _text(
        _declare("a", shape.a_shape, dtype, constants),
        _declare("b", shape.b_shape, dtype, constants),
        f"out c: {accumulator or dtype}[{shape.m},{shape.n}]",
        f"for i<{shape.m}, j<{shape.n}, l<{shape.k}: c[i,j] += a[{a}] * b[{b}]",
    )


def sized_gemm(n: int, k: int, lo: int, hi: int) -> str:
    """``c += a * b`` whose number of rows is known at run time only."""
    return _text(
        f"size m in {lo}..{hi}",
        f"in a: f32[m,{k}]",
        f"in b: f32[{k},{n}]",
        f"out c: f32[m,{n}]",
        f"for i<m, j<{n}, l<{k}: c[i,j] += a[i,l] * b[l,j]",
    )


def matmul(shape: Matmul, dtype: str = "f32", accumulator: str = "") -> str:
    """Batched product; a broadcast operand is read at 0 along that axis."""
    batch = shape.out[:-2]
    loops = [f"b{axis}<{extent}" for axis, extent in enumerate(batch)]
    loops += [f"i<{shape.out[-2]}", f"j<{shape.out[-1]}", f"l<{shape.a[-1]}"]
    a, b = (_batch_indices(operand, batch) for operand in (shape.a, shape.b))
    c = _batch_indices(shape.out, batch)
    return _text(
        f"in a: {dtype}[{_join(shape.a)}]",
        f"in b: {dtype}[{_join(shape.b)}]",
        f"out c: {accumulator or dtype}[{_join(shape.out)}]",
        f"for {', '.join(loops)}: c[{c}i,j] += a[{a}i,l] * b[{b}l,j]",
    )


def conv(shape: Conv, constants: Collection[str] = ("w",), dtype: str = "f32", accumulator: str = "") -> str:
    """``y += x * w``: the forward convolution, NCHW."""
    parts = _conv_parts(shape)
    windows = [_window(shape, axis) for axis in range(len(shape.spatial))]
    loops = [parts.n, *parts.group, *parts.k, *_loops(OUT_LOOPS, shape.out), *parts.c]
    loops += _loops(KERNEL_LOOPS, shape.kernel)
    return _text(
        _declare("x", shape.x_shape, dtype, constants),
        _declare("w", shape.w_shape, dtype, constants),
        f"out y: {accumulator or dtype}[{_join(shape.y_shape)}]",
        f"for {', '.join(loops)}{_where(windows)}: y[{_y(shape, parts)}] += "
        f"x[n,{parts.x_channel},{_indices(windows)}] * w[{_w(shape, parts)}]",
    )


def conv_backward_weights(shape: Conv, dtype: str = "f32", accumulator: str = "") -> str:
    """``dw += dy * x``: the gradient of the weights."""
    parts = _conv_parts(shape)
    windows = [_window(shape, axis) for axis in range(len(shape.spatial))]
    loops = [*parts.group, *parts.k, *parts.c, *_loops(KERNEL_LOOPS, shape.kernel), parts.n]
    loops += _loops(OUT_LOOPS, shape.out)
    return _text(
        f"in x: {dtype}[{_join(shape.x_shape)}]",
        f"in dy: {dtype}[{_join(shape.y_shape)}]",
        f"out dw: {accumulator or dtype}[{_join(shape.w_shape)}]",
        f"for {', '.join(loops)}{_where(windows)}: dw[{_w(shape, parts)}] += "
        f"dy[{_y(shape, parts)}] * x[n,{parts.x_channel},{_indices(windows)}]",
    )


def conv_backward_data(shape: Conv, dtype: str = "f32", accumulator: str = "") -> str:
    """``dx += dy * w``: the gradient of the input; with a stride only every so many-th point has a window."""
    parts = _conv_parts(shape)
    origins = [_origin(shape, axis) for axis in range(len(shape.spatial))]
    loops = [parts.n, *parts.group, *parts.c, *_loops(IN_LOOPS, shape.spatial), *parts.k]
    loops += _loops(KERNEL_LOOPS, shape.kernel)
    dx = ",".join(["n", parts.x_channel, *_names(IN_LOOPS, shape.spatial)])
    return _text(
        f"in dy: {dtype}[{_join(shape.y_shape)}]",
        f"in w: {dtype}[{_join(shape.w_shape)}]",
        f"out dx: {accumulator or dtype}[{_join(shape.x_shape)}]",
        f"for {', '.join(loops)}{_where(origins)}: dx[{dx}] += "
        f"dy[n,{parts.y_channel},{_indices(origins)}] * w[{_w(shape, parts)}]",
    )


class _Index(NamedTuple):
    """An index of one spatial axis, and the conditions under which it is there."""

    text: str
    conditions: tuple[str, ...]


class _ConvParts(NamedTuple):
    """Loops over batch, groups and channels, and the channel indices; unit loops of groups are left out."""

    n: str
    group: tuple[str, ...]
    k: tuple[str, ...]
    c: tuple[str, ...]
    y_channel: str
    x_channel: str
    w_channel: str


def _conv_parts(shape: Conv) -> _ConvParts:
    n = f"n<{shape.n}"
    if shape.groups == 1:
        return _ConvParts(n, (), (f"k<{shape.k}",), (f"c<{shape.c}",), "k", "c", "c")
    kg, cg = shape.k // shape.groups, shape.c // shape.groups
    k_loop, y_channel = ((f"k<{kg}",), f"g*{kg}+k") if kg > 1 else ((), "g")
    c_loop, x_channel = ((f"c<{cg}",), f"g*{cg}+c") if cg > 1 else ((), "g")
    return _ConvParts(n, (f"g<{shape.groups}",), k_loop, c_loop, y_channel, x_channel, "c" if cg > 1 else "0")


def _window(shape: Conv, axis: int) -> _Index:
    """Where in the input the window of an output point reads."""
    extent, pad = shape.spatial[axis], shape.pad[axis]
    out = _names(OUT_LOOPS, shape.out)[axis]
    tap = _names(KERNEL_LOOPS, shape.kernel)[axis]
    text = _times(out, shape.stride[axis]) + "+" + _times(tap, shape.dilation[axis]) + _plus(-pad)
    outside = pad > 0 or shape.pad_end[axis] > 0
    return _Index(text, (f"0 <= {text} < {extent}",) if outside else ())


def _origin(shape: Conv, axis: int) -> _Index:
    """Which output point reads a given input point through a given tap."""
    pad, stride, out = shape.pad[axis], shape.stride[axis], shape.out[axis]
    point = _names(IN_LOOPS, shape.spatial)[axis]
    tap = _names(KERNEL_LOOPS, shape.kernel)[axis]
    reach = (shape.kernel[axis] - 1) * shape.dilation[axis]
    position = f"{point}{_plus(pad)}-{_times(tap, shape.dilation[axis])}"
    text = position if stride == 1 else f"({position})//{stride}"
    conditions = () if stride == 1 else (f"({position})%{stride} == 0",)
    outside = pad < reach or (shape.spatial[axis] - 1 + pad) // stride >= out
    return _Index(text, (*conditions, f"0 <= {text} < {out}") if outside else conditions)


def _y(shape: Conv, parts: _ConvParts) -> str:
    return ",".join(["n", parts.y_channel, *_names(OUT_LOOPS, shape.out)])


def _w(shape: Conv, parts: _ConvParts) -> str:
    return ",".join([parts.y_channel, parts.w_channel, *_names(KERNEL_LOOPS, shape.kernel)])


def _batch_indices(operand: Axes, batch: Axes) -> str:
    extents = zip(operand[:-2], batch, strict=True)
    return "".join("0," if have == 1 and want != 1 else f"b{axis}," for axis, (have, want) in enumerate(extents))


def _names(names: tuple[str, ...], extents: Axes) -> tuple[str, ...]:
    """The loop names of as many axes as ``extents`` has: the innermost names always stay the same."""
    return names[len(names) - len(extents) :]


def _loops(names: tuple[str, ...], extents: Axes) -> list[str]:
    return [f"{name}<{extent}" for name, extent in zip(_names(names, extents), extents, strict=True)]


def _where(indices: list[_Index]) -> str:
    conditions = [condition for index in indices for condition in index.conditions]
    return " where " + ", ".join(conditions) if conditions else ""


def _indices(indices: list[_Index]) -> str:
    return ",".join(index.text for index in indices)


def _declare(name: str, shape: Axes, dtype: str, constants: Collection[str]) -> str:
    return f"{'const' if name in constants else 'in'} {name}: {dtype}[{_join(shape)}]"


def _times(name: str, factor: int) -> str:
    return name if factor == 1 else f"{name}*{factor}"


def _plus(offset: int) -> str:
    return f"{offset:+d}" if offset else ""


def _join(shape: Axes) -> str:
    return ",".join(map(str, shape))


def _text(*lines: str) -> str:
    return "\n".join(lines) + "\n"
