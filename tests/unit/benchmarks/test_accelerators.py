"""Cases and verdicts of the benchmark of simulated machines."""

from collections import Counter
from collections.abc import Iterable, Sequence
from math import prod
from typing import TypeVar

import pytest

import dovetail
from benchmarks.accelerators.cases import (
    LARGE,
    Case,
    array_products,
    convolutions,
    fully_connected,
    npu_cells,
    npu_products,
)
from benchmarks.accelerators.exact import MOST_CONV_PRODUCTS, exact_cases, smaller
from benchmarks.accelerators.programs import F16, Cell, cell
from benchmarks.accelerators.sections import Bar, Runner, geomean, prediction, speed
from benchmarks.accelerators.subject import Row
from benchmarks.shapes import SHAPES, read_shapes

T = TypeVar("T")


def row(cycles: float, predicted: float = 0.0, peer: float | None = None, machine: str = "sw26010") -> Row:
    return Row(Case("a case", machine, "", 256 * 50), cycles, predicted, peer, simulation_seconds=0.5)


def test_the_hand_written_plan_is_asked_only_where_it_runs() -> None:
    found = list(convolutions(128))
    assert (len(found), sum(case.hand is not None for case in found)) == (43, 38)
    assert not any(case.hand for batch in (1, 32) for case in convolutions(batch))


def test_every_timed_program_is_one() -> None:
    cases = [*convolutions(1), *convolutions(128), *fully_connected(1), *fully_connected(128), *array_products()]
    for case in (*cases, *npu_products(), next(npu_cells())):
        dovetail.program(case.text)


def test_the_exact_cases_cover_every_operator_on_every_machine() -> None:
    found = list(exact_cases())
    counts = Counter(case.machine for case in found)
    assert counts == {"npu-mv": 3 * 56, "sw26010": 76, "systolic16": 56}
    for word in ("m512 n1 k512", "resnet_03", "gru", "lstm", "softmax", "layer norm", "separable"):
        assert {case.machine for case in found if word in case.label} == set(counts)


def test_smaller_images_keep_everything_else() -> None:
    for conv in read_shapes(SHAPES / "resnet50_convs.json").convs:
        small = smaller(conv)
        assert (small.c, small.k, small.kernel, small.stride, small.pad) == (
            conv.c,
            conv.k,
            conv.kernel,
            conv.stride,
            conv.pad,
        )
        assert small.flops // 2 <= MOST_CONV_PRODUCTS or prod(small.out) == 1


def test_the_products_of_the_array_fill_it() -> None:
    assert all(min(s.m, s.n, s.k) >= 512 and not (s.m % 16 or s.n % 16 or s.k % 16) for s in LARGE)


def test_a_cell_has_two_products_of_all_gates() -> None:
    shape = Cell("gru", 64, 2, 5)
    program = dovetail.program(cell(shape, F16))
    products = [s for s in program.statements if len(s.all_loops) == 4 and len(list(s.reads())) > 1]
    assert len(products) == 2
    assert shape.macs == sum(prod(loop.extent.const for loop in s.all_loops) for s in products)


@pytest.mark.parametrize(("bar", "met"), [(Bar("x", 1.3, 1.3), True), (Bar("x", 1.2, 1.3), False)])
def test_a_bar_is_reached_or_not(bar: Bar, met: bool) -> None:
    assert bar.is_met is met
    assert str(bar).endswith("met" if met else "MISSED")


def test_a_ceiling_is_kept_or_not() -> None:
    assert Bar("x", 2, 3, at_most=True).is_met
    assert not Bar("x", 4, 3, at_most=True).is_met


def test_a_case_without_a_plan_spoils_the_mean() -> None:
    failed = Row(Case("x", "sw26010", "", 1), peer=100.0, error="no plan")
    assert geomean([row(50, peer=100).gain, row(200, peer=100).gain]) == pytest.approx(1)
    assert geomean([row(50, peer=100).gain, failed.gain]) == 0


def test_predictions_are_judged_by_median_and_worst() -> None:
    found = prediction([row(100, 101), row(100, 95), row(100, 130)])
    assert [bar.value for bar in found.bars] == pytest.approx([5, 30])
    assert [bar.is_met for bar in found.bars] == [True, False]


def test_speed_is_told_of_machines_that_were_run() -> None:
    assert [(bar.text, bar.value) for bar in speed([row(100)]).bars] == [("slowest case on sw26010", 0.5)]
    assert not speed([]).bars


def test_a_sample_is_run_quickly() -> None:
    def untold(cases: Sequence[T], name: str) -> Iterable[T]:
        return cases

    assert len(Runner(untold, lambda name, found: None, quick=True).sample(list(range(20)))) == 3
