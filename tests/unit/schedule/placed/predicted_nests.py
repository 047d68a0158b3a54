"""Nests as a scheduler makes them for machines with placed memories: tiles, double buffers, edges, drains."""

from __future__ import annotations

from collections.abc import Callable

from dovetail.ir.index import Condition, Index, constant, variable
from dovetail.ir.nest import Call, Nest, Node, Start, Wait, When
from tests.unit.sim.machines import Bound, alloc, buffer, call, loop, place

Fill = Callable[[Index, Index], Call]
"""From the number of a tile and the half of its buffer to the copy."""


def up(a: int, b: int) -> int:
    return -(-a // b)


def edge(size: int, tile: int, at: Index) -> Bound:
    """Extent of a tile at ``at``: what is left at the end."""
    return tile if size % tile == 0 else (constant(tile), constant(size) - at)


def ahead(token: str, var: str, count: int, fill: Fill, twice: bool) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
    """What stands before a loop and at the start of its body so that each iteration finds its tile."""
    t = variable(var)
    if not twice:
        return (), (Start(token, fill(t, constant(0))), Wait(token))
    following = When((Condition(constant(count - 2) - t),), (Start(token, fill(t + 1, (t + 1) % 2)),))
    return (Start(token, fill(constant(0), constant(0))),), (Wait(token), following)


def systolic_product(m: int, n: int, k: int, tile: tuple[int, int, int], *, twice: bool, weights: str) -> Nest:
    """c = a @ b in i8 on a weight-stationary 16 x 16 array. ``weights``: "ahead", "started" or "called"."""
    tm, tn, tk = tile
    i, j = variable("i") * tm, variable("j") * tn
    counts, halves = [up(m, tm), up(n, tn), up(k, tk)], 2 if twice else 1
    rows, columns = edge(m, tm, i), edge(n, tn, j)

    def fill_a(t: Index, half: Index) -> Call:
        return call(
            "move_in", place("sa", half, 0, 0), place("a", i, t * tk), ldx=k, lds=tk, m=rows, p=edge(k, tk, t * tk)
        )

    def fill_b(t: Index, half: Index) -> Call:
        return call(
            "move_in", place("sb", half, 0, 0), place("b", t * tk, j), ldx=n, lds=tn, m=edge(k, tk, t * tk), p=columns
        )

    first_a, each_a = ahead("ta", "k", counts[2], fill_a, twice)
    first_b, each_b = ahead("tb", "k", counts[2], fill_b, twice)
    half = variable("k") % 2 if twice else constant(0)
    jj, kk = variable("jj"), variable("kk")

    def load(at: Index, which: Index) -> Call:
        return call("load_weights", place("w", which, 0, 0), place("sb", half, at * 16, jj * 16), lds=tn)

    steps = up(tk, 16)
    first_w: tuple[Node, ...] = ()
    each_w: tuple[Node, ...] = (load(kk, constant(0)),)
    if weights == "ahead":
        first_w, each_w = ahead("tw", "kk", steps, load, True)
    elif weights == "started":
        first_w, each_w = ahead("tw", "kk", steps, load, False)
    loaded = place("w", kk % 2 if weights == "ahead" else 0, 0, 0)
    part = place("sa", half, 0, kk * 16)
    multiply = call("matmul16", place("acc", 0, jj * 16), part, loaded, lda=tk, ldc=tn, m=rows)
    column_tiles: Bound = tn // 16 if n % tn == 0 else (constant(tn // 16), (constant(n + 15) - j) // 16)
    inner = loop("jj", column_tiles, *first_w, loop("kk", steps, *each_w, multiply))
    out = call("move_out", place("c", i, j), place("acc", 0, 0), ldx=n, ldc=tn, m=rows, n=columns)
    block = (
        call("clear", place("acc", 0, 0), ldc=tn, m=rows, n=columns),
        *first_a,
        *first_b,
        loop("k", counts[2], *each_a, *each_b, inner),
        Start("tc", out),
        Wait("tc"),
    )
    held = (
        buffer("sa", "scratchpad", "i8", halves, tm, tk),
        buffer("sb", "scratchpad", "i8", halves, tk, tn),
        buffer("w", "weights", "i8", 2, 16, 16),
        buffer("acc", "accumulator", "i32", tm, tn),
    )
    arguments = (buffer("a", "dram", "i8", m, k), buffer("b", "dram", "i8", k, n), buffer("c", "dram", "i32", m, n))
    return Nest(arguments, (), (alloc(held, loop("i", counts[0], loop("j", counts[1], *block))),), ("c",))


def npu_product(m: int, n: int, k: int, tile: tuple[int, int, int], *, twice: bool) -> Nest:
    """c = a @ b in f16 by MMMul; n and k are multiples of their tiles."""
    tm, tn, tk = tile
    i, j = variable("i") * tm, variable("j") * tn
    halves, rows = 2 if twice else 1, edge(m, tm, variable("i") * tm)

    def fill_a(t: Index, half: Index) -> Call:
        return call("toChip.f16.f16", place("sa", half, 0, 0), place("a", i, t * tk), lds=tk, ldx=k, m=rows, p=tk)

    def fill_b(t: Index, half: Index) -> Call:
        return call("toChipMatrix.f16", place("sb", half, 0, 0), place("b", t * tk, j), lds=tn, ldx=n, m=tk, p=tn)

    first_a, each_a = ahead("ta", "k", k // tk, fill_a, twice)
    first_b, each_b = ahead("tb", "k", k // tk, fill_b, twice)
    half = variable("k") % 2 if twice else constant(0)
    multiply = call(
        "MMMul.f16.f16", place("y", 0, 0), place("sa", half, 0, 0), place("sb", half, 0, 0),
        ldy=tn, lda=tk, ldb=tn, m=rows, n=tn, p=tk,
    )  # fmt: skip
    out = call("toDram.f32.f16", place("c", i, j), place("y", 0, 0), ldx=n, lds=tn, m=rows, p=tn)
    block = (
        call("VVZero.f32", place("y", 0, 0), n=tm * tn),
        *first_a,
        *first_b,
        loop("k", k // tk, *each_a, *each_b, multiply),
        Start("tc", out),
        Wait("tc"),
    )
    held = (
        buffer("sa", "vector", "f16", halves, tm, tk),
        buffer("sb", "matrix", "f16", halves, tk, tn),
        buffer("y", "vector", "f32", tm, tn),
    )
    arguments = (buffer("a", "dram", "f16", m, k), buffer("b", "dram", "f16", k, n), buffer("c", "dram", "f16", m, n))
    return Nest(arguments, (), (alloc(held, loop("i", up(m, tm), loop("j", n // tn, *block))),), ("c",))


def sw_product(m: int, n: int, k: int, tile: tuple[int, int, int], *, twice: bool) -> Nest:
    """c[n, m] = a[k, m] * b[n, k] in f64, spread over 8 x 8 units; all multiples of their tiles but for n."""
    tm, tn, tk = tile
    i, j = variable("i") * tm, variable("j") * tn
    halves, columns = 2 if twice else 1, edge(n, tn, variable("j") * tn)

    def fill_a(t: Index, half: Index) -> Call:
        return call("dma_get", place("sa", 0, 0, half, 0, 0), place("a", t * tk, i), ld=m, m=tk, n=tm)

    def fill_b(t: Index, half: Index) -> Call:
        return call("dma_get", place("sb", 0, 0, half, 0, 0), place("b", j, t * tk), ld=k, m=columns, n=tk)

    first_a, each_a = ahead("ta", "k", k // tk, fill_a, twice)
    first_b, each_b = ahead("tb", "k", k // tk, fill_b, twice)
    half = variable("k") % 2 if twice else constant(0)
    multiply = call(
        "gemm", place("acc", 0, 0, 0, 0), place("sa", 0, 0, half, 0, 0), place("sb", 0, 0, half, 0, 0),
        m=tm, n=tn, p=tk,
    )  # fmt: skip
    block = (
        call("clear", place("acc", 0, 0, 0, 0), m=tn, n=tm),
        *first_a,
        *first_b,
        loop("k", k // tk, *each_a, *each_b, multiply),
        Start("tc", call("dma_put", place("c", j, i), place("acc", 0, 0, 0, 0), ld=m, m=columns, n=tm)),
        Wait("tc"),
    )
    held = (
        buffer("sa", "ldm", "f64", 8, 8, halves, tk // 8, tm // 8),
        buffer("sb", "ldm", "f64", 8, 8, halves, tn // 8, tk // 8),
        buffer("acc", "ldm", "f64", 8, 8, tn // 8, tm // 8),
    )
    arguments = (buffer("a", "dram", "f64", k, m), buffer("b", "dram", "f64", n, k), buffer("c", "dram", "f64", n, m))
    return Nest(arguments, (), (alloc(held, loop("i", m // tm, loop("j", up(n, tn), *block))),), ("c",))


def sw_convolution(c: int, f: int, size: int, batch: int, tile: tuple[int, int], *, twice: bool) -> Nest:
    """y[p, q, f, b] of a 3 x 3 convolution without padding, a product for each place and kernel element."""
    tc, tf = tile
    p, q, fo = variable("p"), variable("q"), variable("fo") * tf
    steps, halves = c // tc, 2 if twice else 1

    def spot(t: Index) -> tuple[Index, Index, Index]:
        return t // (3 * steps), t // steps % 3, t % steps * tc

    def fill_x(t: Index, half: Index) -> Call:
        down, across, channel = spot(t)
        where = place("x", p + down, q + across, channel, 0)
        return call("dma_get", place("sx", 0, 0, half, 0, 0), where, ld=batch, m=tc, n=batch)

    def fill_w(t: Index, half: Index) -> Call:
        down, across, channel = spot(t)
        where = place("w", down, across, fo, channel)
        return call("dma_get", place("sw", 0, 0, half, 0, 0), where, ld=c, m=tf, n=tc)

    count = 9 * steps
    first_x, each_x = ahead("tx", "t", count, fill_x, twice)
    first_w, each_w = ahead("tw", "t", count, fill_w, twice)
    half = variable("t") % 2 if twice else constant(0)
    multiply = call(
        "gemm", place("acc", 0, 0, 0, 0), place("sx", 0, 0, half, 0, 0), place("sw", 0, 0, half, 0, 0),
        m=batch, n=tf, p=tc,
    )  # fmt: skip
    block = (
        call("clear", place("acc", 0, 0, 0, 0), m=tf, n=batch),
        *first_x,
        *first_w,
        loop("t", count, *each_x, *each_w, multiply),
        Start("ty", call("dma_put", place("y", p, q, fo, 0), place("acc", 0, 0, 0, 0), ld=batch, m=tf, n=batch)),
        Wait("ty"),
    )
    held = (
        buffer("sx", "ldm", "f64", 8, 8, halves, tc // 8, batch // 8),
        buffer("sw", "ldm", "f64", 8, 8, halves, tf // 8, tc // 8),
        buffer("acc", "ldm", "f64", 8, 8, tf // 8, batch // 8),
    )
    arguments = (
        buffer("x", "dram", "f64", size + 2, size + 2, c, batch),
        buffer("w", "dram", "f64", 3, 3, f, c),
        buffer("y", "dram", "f64", size, size, f, batch),
    )
    around = loop("p", size, loop("q", size, loop("fo", f // tf, *block)))
    return Nest(arguments, (), (alloc(held, around),), ("y",))


def npu_cell(size: int, *, inner: str, hold: bool) -> Nest:
    """h = tanh(w @ x + u @ h + bias), ``inner`` the loop next to the product; ``hold`` keeps weights on the chip."""
    blocks = size // 128
    i, k = variable("i") * 128, variable("k") * 128

    def matrix(name: str, vector: str) -> tuple[Node, ...]:
        at = (i, k) if hold else (constant(0), constant(0))
        weights = place(f"s{name}", *at)
        copy = call("toChipMatrix.f16", weights, place(name, i, k), lds=size if hold else 128, ldx=size, m=128, p=128)
        multiply = call("MVMul128.f16.f16", place("y", i), weights, place(vector, k), ldw=size if hold else 128)
        body = (multiply,) if hold else (Start(f"t{name}", copy), Wait(f"t{name}"), multiply)
        order = ("k", "i") if inner == "i" else ("i", "k")
        return (loop(order[0], blocks, loop(order[1], blocks, *body)),)

    whole = (
        (call("toChipMatrix.f16", place("sw", 0, 0), place("w", 0, 0), lds=size, ldx=size, m=size, p=size),
         call("toChipMatrix.f16", place("su", 0, 0), place("u", 0, 0), lds=size, ldx=size, m=size, p=size))
        if hold else ()
    )  # fmt: skip
    vectors: tuple[Node, ...] = tuple(
        Start("tv", call("toChip.f16.f16", place(to, 0), place(of, 0), lds=size, ldx=size, m=1, p=size))
        for to, of in (("sx", "x"),)
    )
    half = variable("i") * 64
    body: tuple[Node, ...] = (
        *whole,
        *vectors,
        Wait("tv"),
        Start("th", call("toChip.f16.f16", place("sh", 0), place("h", 0), lds=size, ldx=size, m=1, p=size)),
        Start("tb", call("toChip.f16.f32", place("sb", 0), place("bias", 0), lds=size, ldx=size, m=1, p=size)),
        call("VVZero.f32", place("y", 0), n=size),
        *matrix("w", "sx"),
        Wait("th"),
        *matrix("u", "sh"),
        Wait("tb"),
        loop("i", size // 64, call("VVAdd64.f32", place("y", half), place("y", half), place("sb", half))),
        loop("i", size // 64, call("VVTanh.f32", place("y", half), place("y", half), n=64)),
        Start("to", call("toDram.f32.f16", place("out", 0), place("y", 0), ldx=size, lds=size, m=1, p=size)),
        Wait("to"),
    )
    side = size if hold else 128
    held = (
        buffer("sw", "matrix", "f16", side, side),
        buffer("su", "matrix", "f16", side, side),
        buffer("sx", "vector", "f16", size),
        buffer("sh", "vector", "f16", size),
        buffer("sb", "vector", "f32", size),
        buffer("y", "vector", "f32", size),
    )
    matrices = (buffer("w", "dram", "f16", size, size), buffer("u", "dram", "f16", size, size))
    others = tuple(buffer(name, "dram", "f16", size) for name in ("x", "h", "bias", "out"))
    return Nest((*matrices, *others), (), (alloc(held, *body),), ("out",))
