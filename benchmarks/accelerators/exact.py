"""Every operator on every machine, run with data: results must equal the reference to the last bit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

import numpy as np

import dovetail
from benchmarks.accelerators.programs import (
    F8,
    F8_ALL,
    F16,
    F64,
    I8,
    Cell,
    Types,
    batch_last_conv,
    cell,
    channels_last_conv,
    gemm,
    layer_norm,
    separable,
    softmax,
)
from benchmarks.accelerators.subject import compiled
from benchmarks.shapes import SHAPES, Conv, output_extent, read_shapes
from dovetail.base.errors import DovetailError
from dovetail.ir.evaluate import evaluate
from dovetail.ir.fill import fill

DTYPES = {"npu-mv": (F16, F8, F8_ALL), "sw26010": (F64,), "systolic16": (I8,)}
MOST_PRODUCTS = 2**27
"""Larger products are not run with data."""
MOST_CONV_PRODUCTS = 2**25
"""Larger convolutions are run on an image with fewer rows and columns."""
FEW_CHANNELS = 8
MOST_FEW_PRODUCTS = 2**21
"""The same for convolutions of fewer channels than a copy takes at once: they are copied element by element."""


@dataclass(frozen=True, slots=True)
class ExactCase:
    """A program that is run with data on a machine."""

    label: str
    machine: str
    text: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """``wrong`` of ``elements`` differ, or an error says why there are none."""

    case: ExactCase
    elements: int
    wrong: int
    error: str = ""

    @property
    def is_exact(self) -> bool:
        return not self.error and not self.wrong


def exact_cases() -> Iterator[ExactCase]:
    """DeepBench's smaller products, ResNet-50's convolutions, cells, softmax, layer norm and a separable pair."""
    for machine, several in DTYPES.items():
        for types in several:
            for label, text in (*_products(types), *_convolutions(machine, types), *_others(types)):
                yield ExactCase(f"{types} {label}", machine, text)


def check(case: ExactCase) -> Verdict:
    """Compile, run on whole numbers, compare."""
    program = dovetail.program(case.text)
    arrays = fill(program, 0)
    try:
        found = compiled(program, case.machine)(*(arrays[t.name] for t in program.inputs))
    except DovetailError as error:
        return Verdict(case, 0, 0, str(error).splitlines()[0])
    results = found if isinstance(found, tuple) else (found,)
    wanted = evaluate(program, arrays)
    pairs = [(wanted[t.name], got) for t, got in zip(program.outputs, results, strict=True)]
    wrong = sum(int(np.count_nonzero(~_same(want, got))) for want, got in pairs)
    return Verdict(case, sum(want.size for want, _ in pairs), wrong)


def _same(
    want: np.ndarray[tuple[int, ...], np.dtype[np.generic]], got: object
) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    other = np.asarray(got)
    return np.asarray((want == other) | ((want != want) & (other != other)))


def _products(types: Types) -> Iterator[tuple[str, str]]:
    for shape in read_shapes(SHAPES / "deepbench.json").gemms:
        if shape.m * shape.n * shape.k <= MOST_PRODUCTS:
            yield shape.label, gemm(shape, types)


def _convolutions(machine: str, types: Types) -> Iterator[tuple[str, str]]:
    for conv in read_shapes(SHAPES / "resnet50_convs.json").convs:
        small = smaller(conv)
        yield small.label, channels_last_conv(small, types)
        if machine == "sw26010":
            many = smaller(replace(conv, n=128))
            yield f"{many.label} batch innermost", batch_last_conv(many, types)


def _others(types: Types) -> Iterator[tuple[str, str]]:
    """Float recurrences run for one step: after it numbers are no longer whole, and sums depend on their order."""
    steps = 3 if types.sums.startswith("i") else 1
    for kind in ("gru", "lstm"):
        for hidden, batch in ((64, 1), (128, 4)):
            shape = Cell(kind, hidden, batch, steps)
            yield shape.label, cell(shape, types)
    element = types.sums if types.sums.startswith("f") else "f32"
    yield "softmax 32x100", softmax(32, 100, element)
    yield "layer norm 32x128", layer_norm(32, 128, element)
    yield "separable 14x14 64-128", separable(14, 64, 128, types)


def smaller(conv: Conv) -> Conv:
    """The same convolution on the largest image that is small enough to be run with data."""
    most = MOST_CONV_PRODUCTS if conv.c >= FEW_CHANNELS else MOST_FEW_PRODUCTS
    for size in range(conv.spatial[0], 0, -1):
        both = (size, size)
        axes = zip(both, conv.pad, conv.kernel, conv.dilation, conv.stride, strict=True)
        out = tuple(output_extent(*axis) for axis in axes)
        if min(out) < 1:
            break
        found = replace(conv, spatial=both, out=out)
        if conv.n * prod(out) * conv.k * conv.c * prod(conv.kernel) <= most:
            return found
    return found
