"""A problem is a shape and what is known of it before it runs; here are its inputs and the check of its result.

Inputs hold small integers, so that every product and every sum is exact in float32 whatever the order. Results are
checked by projection: all output columns (or channels) are summed up with random non-zero weights on both sides,
``(A B) v = A (B v)``, in exact float64. That costs a small part of the computation itself, and a single wrong
element always shows.
"""

import math
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from benchmarks.shapes import FLOAT_BYTES, Conv, Gemm

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]

EXACT_FLOAT32 = 2**24
PERIOD = 1_000_003  # prime: no row of a matrix equals another
LINE_BYTES = 64
CHUNK_ELEMENTS = 2**23


class Table(Enum):
    """What is known before run time."""

    RUN_TIME = "both operands at run time"
    CONSTANT = "A constant"
    CONV = "convolution, constant weights"


class Work(Protocol):
    """What the harness wants to know of what is computed."""

    @property
    def label(self) -> str: ...
    @property
    def flops(self) -> int: ...
    @property
    def bytes(self) -> int: ...


class Task(Protocol):
    """What the harness measures: a problem, or a whole model."""

    @property
    def title(self) -> str: ...
    @property
    def shape(self) -> Work: ...
    def to_json(self) -> dict[str, object]: ...


@dataclass(frozen=True, slots=True)
class Problem:
    """One row of one table."""

    table: Table
    shape: Gemm | Conv

    @property
    def title(self) -> str:
        """Of the table it is in."""
        return self.table.value

    def to_json(self) -> dict[str, object]:
        return {"table": self.table.name, "shape": asdict(self.shape)}


def problem_from_json(data: dict[str, object]) -> Problem:
    """The inverse of ``Problem.to_json``."""
    table, fields = Table[str(data["table"])], data["shape"]
    assert isinstance(fields, dict)
    if table is not Table.CONV:
        return Problem(table, Gemm(**fields))
    axes = {key: tuple(value) for key, value in fields.items() if isinstance(value, list)}
    return Problem(table, Conv(**{**fields, **axes}))


@dataclass(frozen=True, slots=True)
class Operands:
    """Inputs of a problem: A and B as stored, or x and w."""

    first: Floats
    second: Floats


def operands(shape: Gemm | Conv) -> Operands:
    """The same integers in every process."""
    if isinstance(shape, Gemm):
        bound = largest_integer(shape.k)
        return Operands(_integers(shape.a_shape, 1, bound), _integers(shape.b_shape, 2, bound))
    bound = largest_integer(math.prod(shape.w_shape[1:]))
    return Operands(_integers(shape.x_shape, 1, bound), _integers(shape.w_shape, 2, bound))


def largest_integer(terms: int) -> int:
    """The largest bound, up to 3, whose ``terms`` products sum to an exact float32."""
    return max((bound for bound in (3, 2, 1) if terms * bound * bound < EXACT_FLOAT32), default=1)


def output_shape(shape: Gemm | Conv) -> tuple[int, ...]:
    return (shape.m, shape.n) if isinstance(shape, Gemm) else shape.y_shape


@dataclass(frozen=True, slots=True)
class Verdict:
    """How far a result is from the right one: the largest error, and the largest value it is measured against."""

    error: float
    scale: float

    def accepted(self, exact: bool) -> bool:
        """Exact systems may not differ at all; others may round, as fast algorithms for convolution do."""
        return self.error == 0.0 if exact else self.error <= 1e-4 * self.scale


def check(shape: Gemm | Conv, inputs: Operands, result: Floats) -> Verdict:
    """Compare ``result`` with the reference, projected on one random vector."""
    if result.shape != output_shape(shape):
        return Verdict(math.inf, 1.0)
    if isinstance(shape, Gemm):
        got, want = _project_gemm(shape, inputs, result)
    else:
        got, want = _project_conv(shape, inputs, result)
    error = float(np.max(np.abs(got - want), initial=0.0))
    return Verdict(math.inf if math.isnan(error) else error, float(np.max(np.abs(want), initial=1.0)))


def _project_gemm(shape: Gemm, inputs: Operands, result: Floats) -> tuple[Doubles, Doubles]:
    weights = _weights(shape.n)
    a = inputs.first.T if shape.trans_a else inputs.first
    b = inputs.second.T if shape.trans_b else inputs.second
    return _times_vector(result, weights), _times_vector(a, _times_vector(b, weights))


def _project_conv(shape: Conv, inputs: Operands, result: Floats) -> tuple[Doubles, Doubles]:
    """One output channel per group, made of all of its channels; then tap by tap."""
    groups, per_group = shape.groups, shape.k // shape.groups
    weights = _weights(per_group)
    got = np.tensordot(result.reshape(shape.n, groups, per_group, -1).astype(np.float64), weights, axes=(2, 0))
    kernel = np.tensordot(inputs.second.reshape(groups, per_group, -1).astype(np.float64), weights, axes=(1, 0))
    kernel = kernel.reshape(groups, shape.c // groups, -1)
    image = _padded(shape, inputs.first).reshape(shape.n, groups, shape.c // groups, -1)
    extents = _padded_extents(shape)
    want: Doubles = np.zeros((shape.n, groups, *shape.out))
    for position, tap in enumerate(np.ndindex(*shape.kernel)):
        summed = np.einsum("ngcx,gc->ngx", image, kernel[..., position]).reshape(shape.n, groups, *extents)
        window = tuple(
            slice(t * d, t * d + (o - 1) * st + 1, st)
            for t, d, o, st in zip(tap, shape.dilation, shape.out, shape.stride, strict=True)
        )
        want += summed[(..., *window)]
    return got, want.reshape(shape.n, groups, -1)


def _padded(shape: Conv, image: Floats) -> Doubles:
    padded: Doubles = np.zeros((shape.n, shape.c, *_padded_extents(shape)))
    spatial = (slice(p, p + i) for p, i in zip(shape.pad, shape.spatial, strict=True))
    padded[(slice(None), slice(None), *spatial)] = image
    return padded


def _padded_extents(shape: Conv) -> tuple[int, ...]:
    axes = zip(shape.spatial, shape.pad, shape.pad_end, strict=True)
    return tuple(i + p + max(0, e) for i, p, e in axes)


def _times_vector(matrix: Floats, vector: Doubles) -> Doubles:
    """``matrix @ vector`` in float64, some rows at a time: a large matrix is never copied whole."""
    rows = max(1, CHUNK_ELEMENTS // max(1, matrix.shape[1]))
    starts = range(0, matrix.shape[0], rows)
    parts = [matrix[start : start + rows].astype(np.float64) @ vector for start in starts]
    return np.concatenate(parts) if parts else np.zeros(0)


def _weights(count: int) -> Doubles:
    return np.random.default_rng(3).integers(1, 8, count).astype(np.float64)


def _integers(shape: tuple[int, ...], seed: int, bound: int) -> Floats:
    """Random integers in [-bound, bound], repeated after PERIOD of them: a gigabyte is filled in no time."""
    count = math.prod(shape)
    filled = _aligned(count)
    block = np.random.default_rng(seed).integers(-bound, bound + 1, min(count, PERIOD)).astype(np.float32)
    for start in range(0, count, PERIOD):
        part = filled[start : start + PERIOD]
        part[:] = block[: part.size]
    return filled.reshape(shape)


def _aligned(count: int) -> Floats:
    """Memory that begins with a line of the caches, as that of every library's own tensors does."""
    raw = np.empty(count * FLOAT_BYTES + LINE_BYTES, np.uint8)
    begin = -raw.ctypes.data % LINE_BYTES
    return raw[begin : begin + count * FLOAT_BYTES].view(np.float32)
