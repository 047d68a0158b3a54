"""The analytic prediction against the timed simulation, on nests as a scheduler makes them and on random ones."""

from __future__ import annotations

import statistics
import time
from functools import cache

import pytest

from dovetail.base.errors import SimulationError
from dovetail.ir.index import Access, Condition, affine, constant, variable
from dovetail.ir.nest import Nest, Node, Start, Wait, When
from dovetail.schedule.placed.predict import Prediction, predict
from dovetail.schedule.placed.predict_build import build
from dovetail.schedule.placed.predict_keys import pieces
from dovetail.schedule.placed.predict_steps import LoopStep
from dovetail.sim.timed import simulate_time
from dovetail.targets.load import load_target
from dovetail.targets.model import Target
from tests.unit.schedule.placed.predicted_nests import (
    npu_cell,
    npu_product,
    sw_convolution,
    sw_product,
    systolic_product,
)
from tests.unit.sim.machines import (
    alloc,
    buffer,
    call,
    fill,
    loop,
    machine,
    parallel,
    place,
    product,
    product_arguments,
)
from tests.unit.sim.random_nests import Maker


@cache
def cases() -> tuple[tuple[str, Nest], ...]:
    found: list[tuple[str, Nest]] = []
    for twice in (True, False):
        for size, tile in (
            ((512, 512, 512), (64, 64, 64)),
            ((300, 200, 450), (64, 64, 64)),
            ((35, 96, 256), (64, 32, 128)),
        ):
            found += [("systolic16", systolic_product(*size, tile, twice=twice, weights="ahead"))]
            found += [("systolic16", systolic_product(*size, tile, twice=twice, weights="started"))]
            found += [("systolic16-serial", systolic_product(*size, tile, twice=twice, weights="called"))]
        for size, tile in (
            ((512, 512, 512), (64, 128, 128)),
            ((35, 1024, 640), (16, 64, 64)),
            ((7, 2048, 512), (7, 1024, 512)),
        ):
            found += [("npu-mv", npu_product(*size, tile, twice=twice))]
        found += [("sw26010", sw_product(512, 200, 512, (128, 64, 64), twice=twice))]
        found += [("sw26010", sw_convolution(64, 128, 14, 128, (32, 32), twice=twice))]
        found += [("npu-mv", npu_cell(1024, inner=inner, hold=twice)) for inner in "ik"]
    return tuple(found)


def test_the_prediction_is_near_the_simulation() -> None:
    off = []
    for name, nest in cases():
        target = load_target(name)
        off.append(abs(predict(nest, target).cycles / simulate_time(nest, target, most_events=0).cycles - 1))
    assert statistics.median(off) < 0.01
    assert max(off) < 0.1


def test_larger_extents_do_not_take_longer_to_predict() -> None:
    target = load_target("systolic16")
    small, large = (
        systolic_product(n * 64, n * 64, n * 64, (64, 64, 64), twice=True, weights="ahead") for n in (8, 4096)
    )
    taken = [min(_seconds(nest, target) for _ in range(5)) for nest in (small, large)]
    assert taken[1] < 3 * taken[0] + 1e-3
    assert predict(large, target).cycles == pytest.approx(512**3 * predict(small, target).cycles, rel=0.2)


def _seconds(nest: Nest, target: Target) -> float:
    start = time.perf_counter()
    predict(nest, target)
    return time.perf_counter() - start


def test_the_order_of_loops_decides_whether_a_latency_shows() -> None:
    """A sum that is added to in every call waits for its latency; one of eight in turn does not."""
    target = load_target("npu-mv")
    y, w, x = place("y", "i"), place("w", "i", 0), place("x", 0)
    multiply = call("MVMul128.f16.f16", y, w, x, ldw=128)
    held = (
        buffer("y", "vector", "f32", 2048),
        buffer("w", "matrix", "f16", 2048, 128),
        buffer("x", "vector", "f16", 128),
    )
    orders = (loop("i", 2048, loop("k", 50, multiply), step=128), loop("k", 50, loop("i", 2048, multiply, step=128)))
    nests = [Nest((buffer("z", "dram", "f16", 1),), (), (alloc(held, order),), ()) for order in orders]
    slow, quick = (predict(nest, target).cycles for nest in nests)
    assert (slow, quick) == tuple(simulate_time(nest, target).cycles for nest in nests)
    assert slow > 10 * quick


def ring(rows: int, columns: int, *, padded: bool) -> Nest:
    """Copies started one tile ahead over both loops, smaller in the last column; ``padded``: none for the first row."""
    i, j = variable("i"), variable("j")
    after = (j + 1) % columns
    down = (i + (j + 1) // columns) % rows
    width = (constant(64), constant(64 * columns - 32) - after * 64)
    fill_next = Start(
        "t", call("move_in", place("s", after % 2, 0, 0), place("a", 0, 0), lds=64, ldx=64, m=64, p=width)
    )
    inside = (When((Condition(down - 1),), (fill_next,)),) if padded else (fill_next,)
    ahead = When((Condition(constant(rows * columns - 2) - i * columns - j),), inside)
    multiply = call("matmul16", place("acc", 0, 0), place("s", j % 2, 0, 0), place("w", 0, 0), ldc=16, lda=64, m=64)
    products = loop("k", (constant(4), constant(4 * columns - 2) - j * 4), multiply)
    first = Start("t", call("move_in", place("s", 0, 0, 0), place("a", 0, 0), lds=64, ldx=64, m=64, p=64))
    held = (
        buffer("s", "scratchpad", "i8", 2, 64, 64),
        buffer("w", "weights", "i8", 16, 16),
        buffer("acc", "accumulator", "i32", 64, 16),
    )
    waits: Node = When((Condition(i - 1),), (Wait("t"),)) if padded else Wait("t")
    tiles = loop("i", rows, loop("j", columns, waits, ahead, products))
    body = (tiles,) if padded else (first, tiles)
    return Nest((buffer("a", "dram", "i8", 64, 64),), (), (alloc(held, *body),), ())


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize(("rows", "columns"), [(3, 4), (7, 2), (9, 30), (40, 3)])
def test_copies_started_ahead_over_several_loops_are_predicted(rows: int, columns: int, padded: bool) -> None:
    nest, target = ring(rows, columns, padded=padded), load_target("systolic16")
    simulated = simulate_time(nest, target, most_events=0).cycles
    assert predict(nest, target).cycles == pytest.approx(simulated, rel=0.05)


def test_what_stands_behind_a_condition_makes_no_more_cases() -> None:
    """Rows at the edge of an image: the first, the last and all others are three cases, however many there are."""
    p = variable("p")
    few = When(
        (Condition(-p),), (loop("r", (constant(3), constant(1) + p), fill(place("s", 0, 0), place("a", 0, 0), 4)),)
    )
    nest = Nest(
        product_arguments(4, 4, 4), (), (alloc((buffer("s", "scratchpad", "i8", 4, 4),), loop("p", 50, few)),), ()
    )
    steps = build(nest, machine(), {})
    assert isinstance(steps.body[0], LoopStep)
    assert [piece.count for piece in pieces(steps.body[0].own_items, "p", 0, 1, 50, {})] == [1, 49]


def timed(nest: Nest, target: str = "tile4") -> tuple[Prediction, float]:
    return predict(nest, machine(target)), simulate_time(nest, machine(target)).cycles


def test_what_bounds_a_nest_is_named() -> None:
    found = predict(
        systolic_product(512, 512, 512, (128, 64, 64), twice=True, weights="ahead"), load_target("systolic16")
    )
    assert found.bound is not None and str(found.bound) == "unit array"
    assert found.bound.cycles == 512**3 / 256
    assert found.exposed_cycles == found.cycles - found.bound.cycles > 0
    copied = predict(npu_product(7, 2048, 512, (7, 1024, 512), twice=True), load_target("npu-mv"))
    assert str(copied.bound) == "copies of dma"


def test_busy_cycles_are_those_of_the_simulation() -> None:
    nest, target = systolic_product(300, 200, 450, (64, 64, 64), twice=True, weights="ahead"), load_target("systolic16")
    found, simulated = predict(nest, target), simulate_time(nest, target)
    for busy in found.busy:
        if busy.kind == "memory":
            assert busy.cycles == pytest.approx(simulated.memory(busy.name).busy_cycles)
        else:
            assert busy.cycles == pytest.approx(simulated.unit(busy.name, busy.kind == "engine").busy_cycles)


@pytest.mark.parametrize("spread", [False, True])
def test_a_plain_product_is_exact(spread: bool) -> None:
    found, simulated = timed(product(32, 24, 40, spread=spread), "quad" if spread else "tile4")
    assert found.cycles == pytest.approx(simulated)


def test_cores_contend_for_the_memory_they_share() -> None:
    held = buffer("s", "scratchpad", "i8", 16, 4, 4)
    copies = loop("k", 16, Start("t", fill(place("s", "k", 0, 0), place("a", 0, 0), 64)))
    for cores in (1, 4, 9):
        nest = Nest(product_arguments(64, 64, 64), (), (parallel("v", cores, alloc((held,), copies, Wait("t"))),), ())
        found, simulated = timed(nest, "quad")
        assert found.cycles == pytest.approx(simulated)


@pytest.mark.parametrize("seed", range(60))
def test_random_nests_are_predicted_without_doing_two_things_at_once(seed: int) -> None:
    nest, target = Maker(seed).nest(), machine("quad" if seed % 3 else "tile4")
    found = predict(nest, target)
    assert all(found.cycles >= busy.cycles - 1e-6 for busy in found.busy)
    assert (found.cycles > 0) == (simulate_time(nest, target, most_events=0).cycles > 0)


def test_random_nests_are_mostly_predicted_closely() -> None:
    off = []
    for seed in range(100):
        nest, target = Maker(seed).nest(), machine("quad" if seed % 3 else "tile4")
        simulated = simulate_time(nest, target, most_events=0).cycles
        off += [abs(predict(nest, target).cycles / simulated - 1)] if simulated else []
    assert statistics.median(off) < 0.05


def test_data_that_decides_the_time_is_refused() -> None:
    arguments = (*product_arguments(4, 4, 4), buffer("n", "memory", "i32", 4))
    end = affine(((Access("n", (constant(0),)), 1),))
    held = (buffer("s", "scratchpad", "i8", 4, 4),)
    nest = Nest(arguments, (), (alloc(held, loop("k", end, fill(place("s", 0, 0), place("a", 0, 0), 4))),), ())
    with pytest.raises(SimulationError, match=r"the time depends on data: n\[0\]"):
        predict(nest, machine())


def test_run_time_sizes_are_given() -> None:
    held = (buffer("s", "scratchpad", "i8", 4, 4),)
    nest = Nest(
        product_arguments(4, 4, 4),
        ("m",),
        (alloc(held, loop("k", "m", fill(place("s", 0, 0), place("a", 0, 0), 4))),),
        (),
    )
    assert [predict(nest, machine(), {"m": m}).cycles for m in (0, 3, 1000)] == [0, 72, 24000]
    with pytest.raises(SimulationError, match="'m' has no value"):
        predict(nest, machine())
