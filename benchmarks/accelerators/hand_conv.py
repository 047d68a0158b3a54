"""The hand-written convolution plan of the SW26010's published library, as a nest on the file's instructions.

How the description is read (it says loop order, column tile and layouts):

    column tile    output columns whose sums stay in the scratchpads: what one column of input (Ni x B), one tap of the
                   weights (No x Ni) and they themselves (No x B each) leave room for. So input and weights are held
                   once, a copy is waited for before the product that needs it, and nothing overlaps
    column of input    fetched once per kernel row and used by all taps that reach an output column of the tile
    weights        of one tap at a time, fetched for every product; a 1x1 kernel has one tap, fetched once per tile
    channel tile   all input channels where the column tile is at least one column, otherwise the largest multiple of
                   32 that divides them and leaves room for one
    padding        rows and columns outside of the image are left out; a stride leaves out taps that meet no output
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.accelerators.nodes import alloc, buffer, call, loop, now, place
from benchmarks.shapes import Conv
from dovetail.ir.index import Index, constant, variable
from dovetail.ir.nest import Nest, Node

UNITS, SIDE = 64, 8
ROOM = UNITS * 60 * 1024 // 8
"""Elements in the scratchpads of all 64."""


@dataclass(frozen=True, slots=True)
class Tiles:
    """Output columns and input channels at a time."""

    columns: int
    channels: int


def can_run(conv: Conv) -> bool:
    """Whether the published plan takes this shape at all."""
    sizes = all(channels >= 64 and channels % 32 == 0 for channels in (conv.c, conv.k))
    return (
        conv.n % 128 == 0 and sizes and conv.groups == 1 and set(conv.dilation) == {1} and hand_tiles(conv).columns > 0
    )


def hand_tiles(conv: Conv) -> Tiles:
    """The published column tile, for the most channels with which there is one."""
    for channels in (c for c in range(conv.c, 0, -32) if conv.c % c == 0):
        columns = (ROOM - channels * conv.n - channels * conv.k) // (conv.k * conv.n)
        if columns > 0:
            return Tiles(min(columns, conv.out[1]), channels)
    return Tiles(0, 0)


def hand_conv_nest(conv: Conv) -> Nest:
    """x[row, column, channel, batch] and w[r, s, k, c] to y[row, column, channel, batch], in f64."""
    (height, width), tiles = conv.spatial, hand_tiles(conv)
    arguments = (
        buffer("x", "dram", "f64", height, width, conv.c, conv.n),
        buffer("w", "dram", "f64", *conv.kernel, conv.k, conv.c),
        buffer("y", "dram", "f64", *conv.out, conv.k, conv.n),
    )
    grid = (SIDE, SIDE)
    held = (
        buffer("column", "ldm", "f64", *grid, tiles.channels // SIDE, conv.n // SIDE),
        buffer("tap", "ldm", "f64", *grid, conv.k // SIDE, tiles.channels // SIDE),
        buffer("sums", "ldm", "f64", *grid, tiles.columns, conv.k // SIDE, conv.n // SIDE),
    )
    return Nest(arguments, (), (alloc(held, _column_tiles(conv, tiles)),), ("y",))


def _column_tiles(conv: Conv, tiles: Tiles) -> Node:
    first = _get_tap(conv, tiles, constant(0), constant(0), constant(0)) if _one_tap(conv, tiles) else ()
    rows = loop("p", conv.out[0], *_clear(conv, tiles), _kernel_rows(conv, tiles), *_put(conv, tiles))
    return loop("u", conv.out[1], *first, rows, step=tiles.columns)


def _kernel_rows(conv: Conv, tiles: Tiles) -> Node:
    """Those that meet a row of the image."""
    origin = variable("p") * conv.stride[0] - conv.pad[0]
    columns = _input_columns(conv, tiles)
    return loop("r", (conv.kernel[0], constant(conv.spatial[0]) - origin), columns, lower=(0, -origin))


def _input_columns(conv: Conv, tiles: Tiles) -> Node:
    """Columns ``j`` of the padded image that lie in the image and are read for the tile."""
    stride, kernel, pad = conv.stride[1], conv.kernel[1], conv.pad[1]
    u, j, c = variable("u"), variable("j"), variable("c")
    get = call(
        "dma_get",
        place("column", 0, 0, 0, 0),
        place("x", _row(conv), j - pad, c, 0),
        m=tiles.channels,
        n=conv.n,
        ld=conv.n,
    )
    last = ((u + tiles.columns - 1) * stride + kernel, (conv.out[1] - 1) * stride + kernel, conv.spatial[1] + pad)
    channels = loop("c", conv.c, *now("input", get), _taps(conv, tiles), step=tiles.channels)
    return loop("j", last, channels, lower=(u * stride, pad), step=stride if kernel == 1 else 1)


def _taps(conv: Conv, tiles: Tiles) -> Node:
    """A product for each output column of the tile that reads column ``j``, by the tap that reads it."""
    stride, kernel = conv.stride[1], conv.kernel[1]
    u, j, q = variable("u"), variable("j"), variable("q")
    tap = () if _one_tap(conv, tiles) else _get_tap(conv, tiles, variable("r"), j - q * stride, variable("c"))
    product = call(
        "gemm",
        place("sums", 0, 0, q - u, 0, 0),
        place("column", 0, 0, 0, 0),
        place("tap", 0, 0, 0, 0),
        m=conv.n,
        n=conv.k,
        p=tiles.channels,
    )
    first = (u, (j - kernel + stride) // stride)
    return loop("q", (u + tiles.columns, conv.out[1], j // stride + 1), *tap, product, lower=first)


def _get_tap(conv: Conv, tiles: Tiles, r: Index, s: Index, c: Index) -> tuple[Node, ...]:
    source = place("w", r, s, 0, c)
    return now("weights", call("dma_get", place("tap", 0, 0, 0, 0), source, m=conv.k, n=tiles.channels, ld=conv.c))


def _clear(conv: Conv, tiles: Tiles) -> tuple[Node, ...]:
    return (loop("z", tiles.columns, call("clear", place("sums", 0, 0, "z", 0, 0), m=conv.k, n=conv.n)),)


def _put(conv: Conv, tiles: Tiles) -> tuple[Node, ...]:
    u, o = variable("u"), variable("o")
    target = place("y", "p", u + o, 0, 0)
    put = call("dma_put", target, place("sums", 0, 0, o, 0, 0), m=conv.k, n=conv.n, ld=conv.n)
    return (loop("o", (tiles.columns, constant(conv.out[1]) - u), *now("output", put)),)


def _row(conv: Conv) -> Index:
    return variable("p") * conv.stride[0] + variable("r") - conv.pad[0]


def _one_tap(conv: Conv, tiles: Tiles) -> bool:
    """The weights are one matrix that stays."""
    return conv.kernel == (1, 1) and tiles.channels == conv.c
