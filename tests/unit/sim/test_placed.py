"""Convolutions that the compiler plans for a machine with placed memories, timed: as stepping through them, at once."""

from __future__ import annotations

import time

import pytest

from dovetail.ir.nest import Nest
from dovetail.ir.parse import parse
from dovetail.mapping.find import find_mappings
from dovetail.schedule.placed.choose import default_placed_plan
from dovetail.schedule.placed.lower import placed_nest
from dovetail.schedule.placed.zeros import zero_target
from dovetail.sim.timed import simulate_time
from dovetail.targets.load import load_target

TARGET = zero_target(load_target("sw26010"))


def padded(size: int, channels: int, filters: int, batch: int) -> Nest:
    """A 3x3 convolution with a border of zeros, by the compiler's plan."""
    x, y = f"f64[{size}, {size}, {channels}, {batch}]", f"f64[{size}, {size}, {filters}, {batch}]"
    program = parse(
        f"in x: {x} const w: f64[3, 3, {filters}, {channels}] out y: {y} "
        f"for p<{size}, q<{size}, k<{filters}, n<{batch}, c<{channels}, r<3, s<3 "
        f"where 0 <= p+r-1 < {size}, 0 <= q+s-1 < {size}: y[p,q,k,n] += x[p+r-1,q+s-1,c,n] * w[r,s,k,c]"
    )
    fits = find_mappings(program, TARGET, misfits=False, nodes=False, allow=frozenset({"finite"})).fits
    return placed_nest(program, default_placed_plan(program, TARGET, fits), TARGET)


@pytest.mark.parametrize(("channels", "filters"), [(64, 64), (3, 64), (256, 128)])
def test_a_small_padded_convolution_takes_as_long_as_its_steps(channels: int, filters: int) -> None:
    nest = padded(10, channels, filters, 128)
    quick, full = (simulate_time(nest, TARGET, close_loops=c) for c in (True, False))
    assert quick.cycles == full.cycles
    assert set(quick.instructions) == set(full.instructions)
    assert (set(quick.units), quick.memories) == (set(full.units), full.memories)
    assert quick.stepped_calls < full.stepped_calls


def test_a_large_padded_convolution_is_timed_in_less_than_a_second() -> None:
    nest = padded(56, 64, 64, 128)
    start = time.process_time()
    found = simulate_time(nest, TARGET)
    assert time.process_time() - start < 1
    assert sum(i.calls for i in found.instructions) > 20_000
    assert found.stepped_calls < 400
