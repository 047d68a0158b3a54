"""A product on the DMA-fed engine of tests/targets, double buffered, over four clusters: results and cycles."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dovetail.base.errors import SimulationError
from dovetail.ir.index import Condition, Index, constant, variable
from dovetail.ir.nest import Call, Nest, Node, Parallel, Start, Wait, When
from dovetail.sim.functional import simulate
from dovetail.sim.timed import simulate_time
from dovetail.targets.load import load_target
from tests.unit.sim.machines import alloc, buffer, call, loop, place

TARGET = load_target(Path(__file__).parents[2] / "targets" / "engine.toml")
I64, J64, K = variable("i") * 64, variable("j") * 64, variable("k")


def product(m: int, n: int, k: int, *, ahead: bool = True, waits: bool = True) -> Nest:
    """y = a @ b in tiles of 64x64x64; ``ahead``: the next operands are on their way while these are multiplied."""
    steps = k // 64

    def turn(step: Index) -> Index:
        return step % 2 if ahead else constant(0)

    def operands(step: Index) -> tuple[Call, Call]:
        first, second = place("s", turn(step), 0, 0), place("w", turn(step), 0, 0, 0)
        return (
            call("dma_rows", first, place("a", I64, step * 64), ld=k, m=64, p=64),
            call("dma_panel", second, place("b", step * 64, J64), ld=n, p=64, n=64),
        )

    def begin(step: Index) -> tuple[Node, ...]:
        return tuple(Start(f"t{number}", copy) for number, copy in enumerate(operands(step)))

    both = (Wait("t0"), Wait("t1"))
    tile = call("gemm", place("acc", 0, 0), place("s", turn(K), 0, 0), place("w", turn(K), 0, 0, 0), m=64, n=64, p=64)
    if ahead:
        more = (Condition(-K + (steps - 2)),)
        inner = (When(more, begin(K + 1)), tile, When(more, both if waits else ()))
        body: tuple[Node, ...] = (*begin(constant(0)), *both, loop("k", steps, *inner))
        body = body if waits else (*body, *both)
    else:
        body = (loop("k", steps, *begin(K), *both, tile),)
    held = (
        buffer("s", "scratchpad", "f32", 2, 64, 64),
        buffer("w", "scratchpad", "f32", 2, 8, 64, 8),
        buffer("acc", "sums", "f32", 64, 64),
    )
    sums = place("acc", 0, 0)
    out = call("dma_out", place("y", I64, J64), sums, ld=n, m=64, n=64)
    column = loop("j", n // 64, call("clear", sums, m=64, n=64), *body, Start("t2", out), Wait("t2"))
    arguments = (
        buffer("a", "memory", "f32", m, k),
        buffer("b", "memory", "f32", k, n),
        buffer("y", "memory", "f32", m, n),
    )
    rows = Parallel("cluster", "i", (constant(m // 64),), (alloc(held, column),))
    return Nest(arguments, (), (rows,), ("y",))


@pytest.mark.parametrize("ahead", [False, True])
def test_the_product_is_exact(ahead: bool) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, shape).astype(np.float32) for shape in ((128, 192), (192, 128)))
    found = simulate(product(128, 128, 192, ahead=ahead), TARGET, {"a": a, "b": b})
    np.testing.assert_array_equal(found.arrays["y"], a @ b)
    assert found.peak_bytes["scratchpad"] == 2 * (64 * 64 + 64 * 64) * 4


def test_a_wait_that_is_missing_is_found() -> None:
    arrays = {"a": np.ones((64, 192), np.float32), "b": np.ones((192, 64), np.float32)}
    with pytest.raises(SimulationError, match=r"gemm reads .* while the copy 't0' writes it"):
        simulate(product(64, 64, 192, waits=False), TARGET, arrays)


def test_copies_ahead_hide_behind_the_arithmetic() -> None:
    serial, ahead = (simulate_time(product(64, 512, 1024, ahead=a), TARGET) for a in (False, True))
    copies = 2 * (200 + 64 * 64 * 4 / 24)
    compute = 20 + 64**3 / 64
    assert serial.cycles > 128 * (copies + compute)
    assert ahead.cycles < 128 * max(copies, compute) * 1.15
    assert ahead.unit("cluster").utilisation > 0.9 / 4, "one of four clusters is at work"


@pytest.mark.parametrize("shape", [(64, 64, 64), (256, 128, 320), (320, 256, 192), (448, 64, 1024)])
def test_closing_loops_changes_nothing(shape: tuple[int, int, int]) -> None:
    nest = product(*shape)
    quick, full = (simulate_time(nest, TARGET, most_events=0, close_loops=c) for c in (True, False))
    assert (quick.cycles, quick.memories, quick.instructions) == (full.cycles, full.memories, full.instructions)


def test_a_large_product_takes_a_handful_of_steps() -> None:
    found = simulate_time(product(4096, 4096, 4096), TARGET)
    assert found.instruction("gemm").calls == 64**3
    assert found.stepped_calls < 1000
    assert found.instruction("gemm").busy_cycles == 64**3 * (20 + 64**3 / 64)
