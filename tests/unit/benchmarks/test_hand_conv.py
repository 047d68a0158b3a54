"""The hand-written plan that convolutions are compared with is right, and is the published one."""

import numpy as np
import pytest

import dovetail
from benchmarks.accelerators.hand_conv import can_run, hand_conv_nest, hand_tiles
from benchmarks.accelerators.programs import F64, batch_last_conv
from benchmarks.shapes import Conv, output_extent
from dovetail.ir.evaluate import evaluate
from dovetail.ir.fill import fill
from dovetail.sim.functional import simulate
from dovetail.sim.timed import simulate_time
from dovetail.targets.load import load_target


def conv(channels: int, filters: int, size: int, kernel: int, stride: int = 1, batch: int = 128) -> Conv:
    pad = (kernel - 1) // 2
    out = output_extent(size, pad, kernel, 1, stride)
    both = ((size, size), (kernel, kernel), (out, out), (stride, stride), (pad, pad), (1, 1))
    return Conv(batch, channels, filters, *both)


@pytest.mark.parametrize(
    "shape",
    [conv(64, 64, 4, 3), conv(64, 96, 5, 3, 2), conv(96, 64, 3, 1), conv(64, 64, 5, 1, 2), conv(128, 1024, 3, 3)],
    ids=lambda shape: shape.label,
)
def test_the_hand_written_plan_is_exact(shape: Conv) -> None:
    program = dovetail.program(batch_last_conv(shape, F64))
    arrays = fill(program, 0)
    found = simulate(hand_conv_nest(shape), load_target("sw26010"), arrays)
    np.testing.assert_array_equal(found.arrays["y"], evaluate(program, arrays)["y"])


def test_the_column_tile_is_the_published_one() -> None:
    assert hand_tiles(conv(64, 64, 224, 3)).columns == (64 * 60 * 1024 // 8 - 64 * 128 - 64 * 64) // (64 * 128)
    assert hand_tiles(conv(512, 512, 14, 3)).columns == 2


def test_channels_are_tiled_only_where_there_is_no_room_for_all() -> None:
    assert hand_tiles(conv(512, 512, 14, 3)).channels == 512
    assert hand_tiles(conv(1024, 1024, 13, 3)).channels == 256


def test_it_runs_no_small_batch_and_no_odd_channels() -> None:
    assert can_run(conv(64, 64, 14, 3))
    assert not any(map(can_run, (conv(64, 64, 14, 3, batch=32), conv(32, 64, 14, 3), conv(1024, 425, 13, 1))))


def test_its_copies_and_products_do_not_overlap() -> None:
    """Only the first columns of a row may be put away while the last product runs."""
    found = simulate_time(hand_conv_nest(conv(64, 64, 8, 3)), load_target("sw26010"))
    busy = found.unit("group").busy_cycles + found.unit("dma", is_engine=True).busy_cycles
    assert found.cycles <= busy <= 1.05 * found.cycles
