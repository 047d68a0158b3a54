"""The forms of a convolution: as it is defined, with all windows stored side by side, and after Winograd.

    implicit   y += x[windows] * w
    explicit   cols = x[windows]; y += cols * w
    winograd   v = B x B^T; p += v * u; y = A p A^T, for tiles of 2x2 and of 4x4 outputs; 3x3 taps at stride 1 only

Each step of a transform is one linear combination for each row of its matrix, along rows, then along columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from benchmarks.accelerators.programs import Types
from benchmarks.shapes import Conv
from dovetail.rewrite.tables.winograd import transforms

TILES = (2, 4)
"""Outputs of a Winograd tile along each axis."""
TAPS = 3


@dataclass(frozen=True, slots=True)
class Form:
    """A way to compute a convolution; ``variant`` tells programs of the same form apart."""

    name: str
    variant: str
    text: str


@dataclass(frozen=True, slots=True)
class Layout:
    """How elements of images, filters and results are written: rows, columns, channels and the batch in some order."""

    conv: Conv
    types: Types
    is_batch_last: bool

    def image(self, row: str, column: str, channel: str = "c", batch: str = "n") -> str:
        names = (row, column, channel, batch) if self.is_batch_last else (batch, row, column, channel)
        return ",".join(names)

    def filter(self, row: str, column: str, channel: str = "c", output: str = "k") -> str:
        return f"{row},{column},{output},{channel}" if self.is_batch_last else f"{row},{column},{channel},{output}"

    def declarations(self) -> tuple[str, ...]:
        c, (height, width), (p, q) = self.conv, self.conv.spatial, self.conv.out
        r, s = c.kernel
        return (
            f"in x: {self.types.data}[{self.image(str(height), str(width), str(c.c), str(c.n))}]",
            f"const w: {self.types.weights}[{self.filter(str(r), str(s), str(c.c), str(c.k))}]",
            f"out y: {self.types.sums}[{self.image(str(p), str(q), str(c.k), str(c.n))}]",
        )

    def read(self, row: str, column: str) -> tuple[str, str, str]:
        """An element of the image, how a temporary is written with it, and where it is there."""
        c, inside = self.conv, []
        places = []
        for axis, text in enumerate((row, column)):
            pad = c.pad[axis]
            places.append(f"{text}-{pad}" if pad else text)
            if pad or c.pad_end[axis] > 0:
                inside.append(f"0 <= {places[-1]} < {c.spatial[axis]}")
        where = " where " + ", ".join(inside) if inside else ""
        return f"x[{self.image(*places)}]", "+=" if inside else "=", where


def forms(conv: Conv, types: Types, is_batch_last: bool, implicit: str) -> Iterator[Form]:
    """All forms of ``conv``, first the one that is given."""
    layout = Layout(conv, types, is_batch_last)
    yield Form("implicit", "", implicit)
    yield Form("explicit", "", explicit(layout))
    plain = conv.groups == 1 and conv.dilation == (1, 1) and types.data.startswith("f")
    if plain and conv.kernel == (TAPS, TAPS) and conv.stride == (1, 1):
        for tile in TILES:
            yield Form("winograd", f"{tile}x{tile}", winograd(layout, tile))


def explicit(layout: Layout) -> str:
    """All windows in memory, then a product."""
    c = layout.conv
    (p, q), (r, s), (down, across) = c.out, c.kernel, c.stride
    value, op, where = layout.read(f"{down}*p+r" if down > 1 else "p+r", f"{across}*q+s" if across > 1 else "q+s")
    return _text(
        *layout.declarations(),
        f"temp cols: {layout.types.data}[{c.n},{c.c},{r},{s},{p},{q}]",
        f"for n<{c.n}, c<{c.c}, r<{r}, s<{s}, p<{p}, q<{q}{where}: cols[n,c,r,s,p,q] {op} {value}",
        f"for n<{c.n}, k<{c.k}, p<{p}, q<{q}, c<{c.c}, r<{r}, s<{s}: "
        f"y[{layout.image('p', 'q', 'k')}] += cols[n,c,r,s,p,q] * w[{layout.filter('r', 's')}]",
    )


def winograd(layout: Layout, tile: int) -> str:
    """``F(tile x tile, 3 x 3)``: filters, images, products, results."""
    c, points = layout.conv, tile + TAPS - 1
    down, across = (-(-extent // tile) for extent in c.out)
    kind = layout.types.sums
    return _text(
        *layout.declarations(),
        f"temp u1: {kind}[{points},{TAPS},{c.c},{c.k}]",
        f"temp u: {kind}[{points},{points},{c.c},{c.k}]",
        f"temp xt: {layout.types.data}[{c.n},{tile * down + 2},{tile * across + 2},{c.c}]",
        f"temp v1: {kind}[{points},{c.n},{down},{tile * across + 2},{c.c}]",
        f"temp v: {kind}[{points},{points},{c.n * down * across},{c.c}]",
        f"temp p: {kind}[{points},{points},{c.n * down * across},{c.k}]",
        f"temp z: {kind}[{tile},{points},{c.n},{down},{across},{c.k}]",
        *_filters(layout, tile),
        *_images(layout, tile, down, across),
        f"for a<{points}, b<{points}, t<{c.n * down * across}, k<{c.k}, c<{c.c}: p[a,b,t,k] += v[a,b,t,c] * u[a,b,c,k]",
        *_results(layout, tile, down, across),
    )


def _filters(layout: Layout, tile: int) -> Iterator[str]:
    c, matrix = layout.conv, transforms(tile, TAPS).filter
    for number, row in enumerate(matrix):
        taps = [f"w[{layout.filter(str(r), 's')}]" for r in range(TAPS)]
        yield f"for s<{TAPS}, c<{c.c}, k<{c.k}: u1[{number},s,c,k] = {_combination(row, taps)}"
    for number, row in enumerate(matrix):
        taps = [f"u1[a,{s},c,k]" for s in range(TAPS)]
        yield f"for a<{len(matrix)}, c<{c.c}, k<{c.k}: u[a,{number},c,k] = {_combination(row, taps)}"


def _images(layout: Layout, tile: int, down: int, across: int) -> Iterator[str]:
    c, matrix = layout.conv, transforms(tile, TAPS).input
    points = range(len(matrix))
    value, op, where = _all_of(layout, tile * down + 2, tile * across + 2)
    yield f"for n<{c.n}, h<{tile * down + 2}, l<{tile * across + 2}, c<{c.c}{where}: xt[n,h,l,c] {op} {value}"
    for number, row in enumerate(matrix):
        reads = [f"xt[n,{tile}*i+{j},l,c]" for j in points]
        head = f"for n<{c.n}, i<{down}, l<{tile * across + 2}, c<{c.c}"
        yield f"{head}: v1[{number},n,i,l,c] = {_combination(row, reads)}"
    for number, row in enumerate(matrix):
        reads = [f"v1[a,n,i,{tile}*j+{m},c]" for m in points]
        head = f"for a<{len(matrix)}, n<{c.n}, i<{down}, j<{across}, c<{c.c}"
        yield f"{head}: v[a,{number},{_flat(down, across)},c] = {_combination(row, reads)}"


def _all_of(layout: Layout, rows: int, columns: int) -> tuple[str, str, str]:
    """As ``Layout.read``, of an image that is filled up to so many rows and columns."""
    conv = layout.conv
    value, _, _ = layout.read("h", "l")
    inside = []
    for axis, (name, extent) in enumerate((("h", rows), ("l", columns))):
        pad, size = conv.pad[axis], conv.spatial[axis]
        if pad or extent > size:
            inside.append(f"0 <= {name}-{pad} < {size}" if pad else f"{name} < {size}")
    return value, "+=" if inside else "=", " where " + ", ".join(inside) if inside else ""


def _results(layout: Layout, tile: int, down: int, across: int) -> Iterator[str]:
    c, matrix = layout.conv, transforms(tile, TAPS).output
    points = range(len(matrix[0]))
    rest = f"n<{c.n}, i<{down}, j<{across}, k<{c.k}"
    for number, row in enumerate(matrix):
        reads = [f"p[{a},b,{_flat(down, across)},k]" for a in points]
        yield f"for b<{len(points)}, {rest}: z[{number},b,n,i,j,k] = {_combination(row, reads)}"
    rows = [f"{tile}*i+m < {c.out[0]}"] if tile * down > c.out[0] else []
    for number, row in enumerate(matrix):
        reads = [f"z[m,{b},n,i,j,k]" for b in points]
        is_cut = tile * (across - 1) + number >= c.out[1]
        inside = rows + ([f"{tile}*j+{number} < {c.out[1]}"] if is_cut else [])
        where = " where " + ", ".join(inside) if inside else ""
        at = layout.image(f"{tile}*i+m", f"{tile}*j+{number}", "k")
        yield f"for m<{tile}, {rest}{where}: y[{at}] = {_combination(row, reads)}"


def _flat(down: int, across: int) -> str:
    """The number of a tile."""
    return f"{down * across}*n+{across}*i+j"


def _combination(row: Sequence[Fraction], reads: Sequence[str]) -> str:
    text = ""
    for weight, read in zip(row, reads, strict=True):
        if weight:
            sign = ("-" if weight < 0 else "") if not text else (" - " if weight < 0 else " + ")
            text += sign + (read if abs(weight) == 1 else f"{float(abs(weight))!r}*{read}")
    return text


def _text(*lines: str) -> str:
    return "\n".join(lines) + "\n"
