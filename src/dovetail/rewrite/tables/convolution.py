"""Rules about convolutions: other algorithms for the same windows.

They find what ``raise`` and ``windows`` of the functional front end write: a batch of images, a filter for each output
channel, rows of windows, and in each window a sum over its rows and columns of what ``?b`` makes of two vectors of
channels. ``?b`` is linear in both: the dot product of a convolution, or any other.

    map(\\im -> map(\\wk -> map(\\row -> map(\\win -> sum of ?b over r, s, row), windows(?g(im))), ?w), ?x)

Images are rows, columns, channels; filters are output channels, rows, columns, channels.
"""

from __future__ import annotations

from collections.abc import Iterable

from dovetail.rewrite.rule import Rule
from dovetail.rewrite.tables.spelling import combination, mapped, member, permuted
from dovetail.rewrite.tables.winograd import Matrix, Transforms, transforms

TAPS = 3
"""Rows and columns of the filters that have a Winograd form here."""
ROUNDINGS = 8
"""Roundings one after another in a Winograd form besides those of the sum over channels: two passes forth, two back."""
_ZERO = r"(\v -> orelse(v, 0))"
_ADDED = r"(\v -> reduce(add, 0, repeat(1, v)))"
"""Zero and what is there: as ``_ZERO``, but done as a sum, which takes one statement."""
_PRODUCTS = r"map(\vt -> map(\uk -> ?b(vt, uk), transpose(ub)), vb)"


def im2col() -> Rule:
    """All windows side by side in memory: a product of matrices is left. Rows are channels and taps, columns places."""
    stored = permuted(_windows("?g(im)", "?r", "?sr", "?s", "?sc"), (4, 2, 3, 0, 1))
    seen = permuted("cols", (3, 4, 1, 2, 0))
    return Rule(
        "im2col",
        _convolution("?r", "?sr", "?s", "?sc"),
        rf"let all = map(\im -> {mapped(5, _ADDED, stored)}, ?x) in map(\cols -> {_filtered(seen)}, all)",
        types=("w: ?t[?k, ?r, ?s, ?c]",),
        when=("bilinear(?b)",),
        kind="reassociating",
        doc="The windows are stored side by side, zero where there is no image: a product of matrices is left.",
    )


def winograd(outputs: int) -> Rule:
    """``F(outputs x outputs, 3 x 3)``: fewer products, more additions, and more rounding."""
    matrices = transforms(outputs, TAPS)
    return Rule(
        f"winograd-{outputs}x{outputs}",
        _convolution(str(TAPS), "1", str(TAPS), "1"),
        _winograd(outputs, matrices),
        types=(f"w: ?t[?k, {TAPS}, {TAPS}, ?c]", "result: ?r[?n, ?k, ?p, ?q]"),
        when=("bilinear(?b)", "float(?w)"),
        kind="relaxed",
        error=f"{ROUNDINGS * matrices.amplification**2:.0f} * eps * the largest sum(|x| * |w|)",
        doc=f"Tiles of {outputs} x {outputs}: {outputs + TAPS - 1} products along a row instead of {TAPS * outputs}.",
    )


def _winograd(m: int, matrices: Transforms) -> str:
    """Filters, then images, each transformed along rows, then columns; products; and the outputs back again."""
    down, across = f"((?p + {m - 1}) // {m})", f"((?q + {m - 1}) // {m})"
    enough = f"map(pad(0, {m} * {across} - ?q, none), pad(0, {m} * {down} - ?p, none, ?g(im)))"
    steps = (
        ("u1", permuted(_rows(matrices.filter, "wk", mapped(4, _ZERO, "?w"), _members("wk", TAPS), 2), (0, 2, 3, 1))),
        ("u", f"transpose({_rows(matrices.filter, 'ua', 'u1', _members('ua', TAPS), 2)})"),
        ("xt", rf"map(\im -> {mapped(3, _ADDED, enough)}, ?x)"),
        ("v1", _rows(matrices.input, "im", "xt", _strided("im", matrices, down), 3)),
        ("v", f"transpose({_tiled(matrices, across)})"),
        ("p", rf"map(\va ua -> map(\vb ub -> {_PRODUCTS}, zip(va, ua)), zip(v, u))"),
        ("z", mapped(2, rf"(\t -> split({down}, split({across}, t)))", _sums(matrices))),
    )
    lets = "".join(f"let {name} = {value} in " for name, value in steps)
    outputs = _rows(matrices.output, "zi", "z", _members("zi", m + TAPS - 1), 4)
    loops = f"j<{m}, i<{m}, n<?n, a<{down}, b<{across}, k<?k"
    places = f"[{loops} where {m} * a + i < ?p, {m} * b + j < ?q: n, k, {m} * a + i, {m} * b + j]"
    return f"{lets}scatter(=, ?n, ?k, ?p, ?q, {places}, {outputs})"


def _rows(matrix: Matrix, name: str, data: str, members: list[str], depth: int) -> str:
    """An array of, for each row of a matrix, its sum over ``members`` of each ``name`` of ``data``."""
    return _array(rf"map(\{name} -> {combination(row, members, depth)}, {data})" for row in matrix)


def _sums(matrices: Transforms) -> str:
    """The outputs along rows, of all tiles in one row."""
    members = _members("p", len(matrices.input))
    return _array(combination(row, members, 3) for row in matrices.output)


def _tiled(matrices: Transforms, across: str) -> str:
    """Inputs transformed along columns, and all tiles of all images in one row."""
    members = _strided("vy", matrices, across)
    columns = (rf"map(\vn -> map(\vy -> {combination(row, members, 2)}, vn), va)" for row in matrices.input)
    return _array(rf"map(\va -> join(join({column})), v1)" for column in columns)


def _members(data: str, count: int) -> list[str]:
    return [member(number, data) for number in range(count)]


def _strided(data: str, matrices: Transforms, count: str) -> list[str]:
    """For each point, the rows of ``data`` that are that point of a tile."""
    return [f"slice({start}, {count}, {len(matrices.output)}, {data})" for start in range(len(matrices.input))]


def _convolution(rows: str, down: str, columns: str, across: str) -> str:
    return rf"map(\im -> {_filtered(_windows('?g(im)', rows, down, columns, across))}, ?x)"


def _filtered(windows: str) -> str:
    """Each filter over all windows."""
    columns = r"reduce(add, 0, map(\xs ws -> ?b(xs, ws), zip(xr, wr)))"
    products = rf"reduce(add, 0, map(\xr wr -> {columns}, zip(win, wk)))"
    return rf"map(\wk -> map(\row -> map(\win -> {products}, row), {windows}), ?w)"


def _windows(image: str, rows: str, down: str, columns: str, across: str) -> str:
    """Places down, places across, rows, columns of a window: an array of what an image is made of."""
    return rf"map(\rows -> transpose(map(slide({columns}, {across}), rows)), slide({rows}, {down}, {image}))"


def _array(members: Iterable[str]) -> str:
    return f"array({', '.join(members)})"


CONVOLUTION = (im2col(), winograd(2), winograd(4))
