"""Depth, count and time bound the search, and say so; the answer does not change from run to run."""

from __future__ import annotations

from time import perf_counter

from dovetail.base.limits import Limits
from dovetail.mapping.find import find_mappings
from dovetail.targets.load import load_target
from tests.unit.mapping import programs
from tests.unit.mapping.needles import FMA, MATRIX, bound, machine
from tests.unit.mapping.programs import program


def test_the_order_is_the_same_every_time() -> None:
    source = program(programs.CONV2D)
    first = find_mappings(source, machine(FMA, MATRIX))
    second = find_mappings(program(programs.CONV2D), machine(FMA, MATRIX))
    assert first == second
    numbers = [("fma", "matrix").index(fit.instruction) for fit in first.fits]
    assert numbers == sorted(numbers)


def test_depth_bounds_how_many_loops_are_fused() -> None:
    source = program(programs.CONV2D)
    for depth in range(4):
        result = find_mappings(source, machine(MATRIX), Limits(mapping_depth=depth))
        fused = [sum(max(0, len(b.loops) - 1) for b in fit.loops) for fit in result.fits]
        assert max(fused) == depth
        assert result.stopped_by == ""


def test_a_bound_on_the_count_is_reported_and_keeps_the_simplest() -> None:
    source = program(programs.CONV2D)
    everything = find_mappings(source, machine(MATRIX))
    result = find_mappings(source, machine(MATRIX), Limits(mapping_count=60))
    assert result.stopped_by == "count: 60 fits, complete to depth 0"
    assert len(result.fits) == 60
    assert set(result.fits) < set(everything.fits)
    unfused = {fit for fit in everything.fits if all(len(b.loops) < 2 for b in fit.loops)}
    assert unfused <= set(result.fits)


def test_a_bound_on_time_is_reported() -> None:
    result = find_mappings(program(programs.CONV2D), machine(MATRIX), Limits(mapping_seconds=0.0))
    assert result.stopped_by == "time: 0 s, no depth complete"


def test_without_nodes_only_whole_statements_are_searched() -> None:
    source, target = program(programs.CONV2D), load_target("x86-64-v3")
    everything = find_mappings(source, target, misfits=False)
    whole = find_mappings(source, target, misfits=False, nodes=False)
    assert whole.fits == tuple(fit for fit in everything.fits if fit.node is None)


def test_looking_only_at_what_can_fit_loses_nothing() -> None:
    target = load_target("x86-64-v3")
    for text in (programs.CONV2D, programs.SOFTMAX, programs.POINTWISE, programs.GATHER):
        source = program(text)
        assert find_mappings(source, target, misfits=False).fits == find_mappings(source, target).fits


def test_a_convolution_is_mapped_onto_a_large_target_in_milliseconds() -> None:
    source, target = program(programs.CONV2D), load_target("x86-64-v4")
    find_mappings(source, target, misfits=False, nodes=False)
    best = min(_seconds(lambda: find_mappings(source, target, misfits=False, nodes=False)) for _ in range(5))
    assert best < 0.15, "a few milliseconds on an idle machine, here with room for busy ones"


def test_loops_that_run_once_are_not_bound() -> None:
    result = find_mappings(program(programs.CONV2D), machine(FMA))
    assert all("n" not in bound(fit)["l"].split("*") for fit in result.fits)


def _seconds(work: object) -> float:
    started = perf_counter()
    assert callable(work)
    work()
    return perf_counter() - started
