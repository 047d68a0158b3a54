"""Rules about convolutions: other algorithms for the same windows.

They find what ``raise`` and ``windows`` of the functional front end write: a batch of images, a filter for each output
channel, rows of windows, and in each window a sum over its rows and columns of what ``?b`` makes of two vectors of
channels. ``?b`` is linear in both: the dot product of a convolution, or any other.

    map(\\im -> map(\\wk -> map(\\row -> map(\\win -> sum of ?b over r, s, row), windows(?g(im))), ?w), ?x)

Images are rows, columns, channels; filters are output channels, rows, columns, channels.
"""

from __future__ import annotations

from dovetail.rewrite.rule import Rule
from dovetail.rewrite.tables.spelling import mapped, member, transformed, view
from dovetail.rewrite.tables.winograd import Transforms, transforms

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
    taken = view({"c": "?c", "r": "?r", "s": "?s", "p": "?p", "q": "?q"}, "p q r s c", "windows")
    seen = view({"p": "?p", "q": "?q", "r": "?r", "s": "?s", "c": "?c"}, "c r s p q", "cols")
    stored = mapped(5, _ADDED, taken.replace("windows", _windows("?g(im)", "?r", "?sr", "?s", "?sc")))
    return Rule(
        "im2col",
        _convolution("?r", "?sr", "?s", "?sc"),
        rf"let all = map(\im -> {stored}, ?x) in map(\cols -> {_filtered(seen)}, all)",
        types=("w: ?t[?k, ?r, ?s, ?c]", "result: ?y[?n, ?k, ?p, ?q]"),
        when=("bilinear(?b)", "scalar(?t)", "filled(?g, ?w)"),
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
        when=("bilinear(?b)", "scalar(?t)", "float(?w)", "finite"),
        kind="relaxed",
        error=f"{ROUNDINGS * matrices.amplification**2:.0f} * eps * the largest sum(|x| * |w|)",
        doc=f"Tiles of {outputs} x {outputs}: {outputs + TAPS - 1} products along a row instead of {TAPS * outputs}.",
    )


def _winograd(m: int, matrices: Transforms) -> str:
    """Filters, then images, each transformed along rows, then columns; products; and the outputs back again."""
    sizes = {"a": f"{m + TAPS - 1}", "b": f"{m + TAPS - 1}", "s": f"{TAPS}", "c": "?c", "k": "?k", "n": "?n"}
    sizes |= {"y": f"((?p + {m - 1}) // {m})", "x": f"((?q + {m - 1}) // {m})", "i": f"{m}", "j": f"{m}"}
    sizes |= {"l": f"{m} * {sizes['x']} + {TAPS - 1}", "t": f"?n * {sizes['y']} * {sizes['x']}"}
    steps = (
        ("u1", _view(sizes, "a s c k", "k s c a", rf"map(\wk -> {_filter(matrices, 'wk')}, {mapped(4, _ZERO, '?w')})")),
        ("u", _view(sizes, "a b c k", "a c k b", rf"map(\ua -> {_filter(matrices, 'ua')}, u1)")),
        ("xt", rf"map(\im -> {mapped(3, _ADDED, _enough(m, sizes))}, ?x)"),
        ("v1", _view(sizes, "a n y l c", "n y l c a", rf"map(\im -> {_input(matrices, 'im', sizes['y'], 3)}, xt)")),
        ("v", mapped(2, r"(\t -> join(join(t)))", _view(sizes, "a b n y x c", "a n y x c b", _tiles(matrices, sizes)))),
        ("p", rf"map(\va ua -> map(\vb ub -> {_PRODUCTS}, zip(va, ua)), zip(v, u))"),
        ("z", mapped(2, rf"(\t -> split({sizes['y']}, split({sizes['x']}, t)))", _sums(matrices, sizes))),
    )
    lets = "".join(f"let {name} = {value} in " for name, value in steps)
    loops = ", ".join(f"{name}<{sizes[name]}" for name in "inyxkj")
    places = f"[{loops} where {m} * y + i < ?p, {m} * x + j < ?q: n, k, {m} * y + i, {m} * x + j]"
    return rf"{lets}scatter(=, ?n, ?k, ?p, ?q, {places}, map(\zi -> {_output(matrices, 'zi', 4)}, z))"


def _enough(m: int, sizes: dict[str, str]) -> str:
    """The image with as many rows and columns as the tiles take."""
    return f"map(pad(0, {m} * {sizes['x']} - ?q, none), pad(0, {m} * {sizes['y']} - ?p, none, ?g(im)))"


def _filter(matrices: Transforms, data: str) -> str:
    return transformed(matrices.filter, [member(number, data) for number in range(TAPS)], 2)


def _input(matrices: Transforms, data: str, count: str, depth: int) -> str:
    """For each point, the rows of ``data`` that are that point of a tile, put together."""
    step, points = len(matrices.output), range(len(matrices.input))
    return transformed(matrices.input, [f"slice({start}, {count}, {step}, {data})" for start in points], depth)


def _output(matrices: Transforms, data: str, depth: int) -> str:
    return transformed(matrices.output, [member(number, data) for number in range(len(matrices.input))], depth)


def _tiles(matrices: Transforms, sizes: dict[str, str]) -> str:
    """Inputs transformed along columns, too."""
    return rf"map(\va -> map(\vn -> map(\vy -> {_input(matrices, 'vy', sizes['x'], 2)}, vn), va), v1)"


def _sums(matrices: Transforms, sizes: dict[str, str]) -> str:
    """The outputs along rows, of all tiles in one row."""
    return _view(sizes, "i b t k", "b t k i", _output(matrices, "p", 3))


def _view(sizes: dict[str, str], loops: str, indices: str, data: str) -> str:
    return view({name: sizes[name] for name in loops.split()}, indices, data)


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


CONVOLUTION = (im2col(), winograd(2), winograd(4))
