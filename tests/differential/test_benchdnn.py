"""oneDNN's own test shapes, bit for bit: every convolution, its backward forms, every matrix product of equal ranks.

The default run takes a fixed sample; the slow tests take all of them, a slice each.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TypeVar

import pytest

from benchmarks.programs import conv, conv_backward_data, conv_backward_weights, matmul
from benchmarks.shapes import SHAPES, Conv, Matmul, read_shapes
from dovetail.ir.parse import parse
from dovetail.pipeline import compile
from tests.differential.kernels import assert_exact

T = TypeVar("T")
TARGET = "host"
LARGEST_BYTES = 2 * 10**9
SAMPLED_CONVS, SAMPLED_MATMULS, SAMPLED_BACKWARD = 260, 40, 40
SAMPLED_FLOPS = 10**9
BACKWARD = 200
SLICES = 16


@cache
def convs() -> tuple[Conv, ...]:
    return read_shapes(SHAPES / "benchdnn_convs.json").convs


@cache
def matmuls() -> tuple[Matmul, ...]:
    found = read_shapes(SHAPES / "benchdnn_matmul_rnn.json").matmuls
    return tuple(m for m in found if m.bytes < LARGEST_BYTES)


def spread(items: Sequence[T], count: int) -> list[T]:
    """``count`` of them, evenly spaced."""
    return [items[n * len(items) // count] for n in range(min(count, len(items)))]


def part(items: Sequence[T], number: int) -> Sequence[T]:
    return items[number::SLICES]


def check(text: str) -> None:
    assert_exact(compile(parse(text), TARGET, 2, cache=False))


@pytest.mark.parametrize("number", range(SLICES))
def test_sampled_convolutions_are_exact(number: int) -> None:
    for shape in part(spread(convs(), SAMPLED_CONVS), number):
        check(conv(shape))


@pytest.mark.parametrize("number", range(4))
def test_sampled_matrix_products_are_exact(number: int) -> None:
    small = [m for m in matmuls() if m.flops < SAMPLED_FLOPS]
    for shape in spread(small, SAMPLED_MATMULS)[number::4]:
        check(matmul(shape))


@pytest.mark.parametrize("number", range(4))
def test_sampled_backward_convolutions_are_exact(number: int) -> None:
    for shape in spread(convs(), SAMPLED_BACKWARD)[number::4]:
        check(conv_backward_data(shape))
        check(conv_backward_weights(shape))


@pytest.mark.slow
@pytest.mark.parametrize("number", range(SLICES))
def test_all_convolutions_are_exact(number: int) -> None:
    for shape in part(convs(), number):
        check(conv(shape))


@pytest.mark.slow
@pytest.mark.parametrize("number", range(SLICES))
def test_all_matrix_products_are_exact(number: int) -> None:
    for shape in part(matmuls(), number):
        check(matmul(shape))


@pytest.mark.slow
@pytest.mark.parametrize("number", range(SLICES))
def test_backward_convolutions_are_exact(number: int) -> None:
    for shape in part(spread(convs(), BACKWARD), number):
        check(conv_backward_data(shape))
        check(conv_backward_weights(shape))
