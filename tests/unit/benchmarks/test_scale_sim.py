"""What SCALE-Sim counted, as stored."""

from math import prod

from benchmarks.accelerators.scale_sim import stored
from benchmarks.shapes import Conv, Gemm


def test_ten_products_and_ten_convolutions_are_stored() -> None:
    kinds = [type(one.shape) for one in stored()]
    assert (kinds.count(Gemm), kinds.count(Conv)) == (10, 10)


def test_the_published_counts_are_among_them() -> None:
    counts = {one.shape: one.cycles for one in stored()}
    assert counts[Gemm(64, 32, 48)] == 659
    assert counts[Gemm(196, 64, 64)] == 3871


def test_every_tile_of_weights_takes_the_rows_and_46_cycles() -> None:
    for one in stored():
        if isinstance(one.shape, Gemm):
            rows, columns, depth = one.shape.m, one.shape.n, one.shape.k
        else:
            rows, columns, depth = prod(one.shape.out), one.shape.k, prod(one.shape.w_shape[1:])
        assert one.cycles == -(-columns // 16) * -(-depth // 16) * (rows + 46) - 1
