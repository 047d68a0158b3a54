"""Does an instruction do what it says? Its emission is run against its own ``computes``.

Operands lie between guard elements, so a stray write shows. Data are small integers, whose sums are exact, then
edge values: zeros of both signs, infinities, NaN, the ends of the integers. Nothing may differ, but for elementary
functions, which may be as far off as the target file states.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Protocol

import numpy as np
import numpy.typing as npt

from dovetail.base.dtypes import DType, Kind
from dovetail.base.errors import CodegenError
from dovetail.codegen.compile import emit_object
from dovetail.codegen.emission import Emission
from dovetail.codegen.instruction import instructions_module
from dovetail.ir.evaluate import evaluate
from dovetail.ir.expr import Apply, walk
from dovetail.ir.instruction_function import dense_strides
from dovetail.targets.model import Instruction, Operand, Target

Array = npt.NDArray[np.generic]
GUARD = 64
"""Elements before and after each operand that must not change."""
BATCH = 64
"""Instructions compiled together; one alone would spend most of its time starting up."""


class Loaded(Protocol):
    """Code in memory."""

    def address(self, name: str) -> int: ...


Load = Callable[[bytes], Loaded]


@dataclass(frozen=True, slots=True)
class Checked:
    """``fault`` says how the emission differs from ``computes``; empty when it does not."""

    instruction: Instruction
    fault: str = ""
    skipped: str = ""


def check_instructions(instructions: Sequence[Instruction], target: Target, load: Load) -> Iterator[Checked]:
    """Each instruction, run on this machine; ``load`` turns object code into callable code."""
    runnable = []
    for instruction in instructions:
        reason = _unsuited(instruction)
        if reason:
            yield Checked(instruction, skipped=reason)
        else:
            runnable.append(instruction)
    for start in range(0, len(runnable), BATCH):
        yield from _batch(runnable[start : start + BATCH], target, load)


def check_instruction(instruction: Instruction, target: Target, load: Load) -> Checked:
    return next(check_instructions((instruction,), target, load))


def _unsuited(instruction: Instruction) -> str:
    if not instruction.emit and not instruction.call:
        return "nothing is emitted for it"
    if any(o.layout for o in instruction.operands):
        return "an operand has a layout of its own"
    return "it reaches several units at once" if instruction.broadcast else ""


def _batch(instructions: Sequence[Instruction], target: Target, load: Load) -> Iterator[Checked]:
    """Compiled together; one by one when something in the batch does not compile, to say which."""
    try:
        module, symbols = instructions_module(instructions, target)
        code = load(emit_object(module, target))
        addresses = [code.address(symbol) for symbol in symbols]
    except CodegenError as error:
        if len(instructions) == 1:
            yield Checked(instructions[0], fault=error.message())
        else:
            for one in instructions:
                yield from _batch((one,), target, load)
        return
    for instruction, address in zip(instructions, addresses, strict=True):
        emission = Emission(instruction, target, "")
        yield Checked(instruction, _fault(emission, ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)))


def _fault(emission: Emission, function: Callable[[int], None]) -> str:
    """The first difference found; "" when there is none."""
    for parameters in _parameters(emission.instruction):
        for fill in (_integers, _edges):
            fault = _Trial(emission, parameters, fill).run(function)
            if fault:
                given = ", ".join(f"{n} = {v}" for n, v in parameters.items())
                return fault + (f" with {given}" if given else "")
    return ""


def _parameters(instruction: Instruction) -> Iterator[dict[str, int]]:
    """The ends and the middle of each parameter's range, where the constraints allow."""
    sizes = instruction.program.sizes
    choices = [sorted({s.low, (s.low + s.high) // 2, s.high}) for s in sizes]
    for values in product(*choices):
        given = {s.name: v for s, v in zip(sizes, values, strict=True)}
        if all(condition.holds(given) for condition in instruction.constraints):
            yield given


class _Trial:
    """One run: storage for every operand, the words that point to it, and what should be there afterwards."""

    def __init__(self, emission: Emission, parameters: Mapping[str, int], fill: Callable[..., Array]) -> None:
        self.emission = emission
        self.program = emission.instruction.program
        self.parameters = parameters
        self.rng = np.random.default_rng(1)
        self.strides = {name: 3 + 2 * number for number, name in enumerate(emission.strides)}
        self.simple = _operations(emission.instruction) <= 1
        self.fill = fill
        self.storage: dict[str, Array] = {}
        self.views: dict[str, Array] = {}
        for operand in emission.instruction.operands:
            self._place(operand)

    def run(self, function: Callable[[int], None]) -> str:
        before = {name: view.copy() for name, view in self.views.items()}
        inputs = {t.name: before[t.name] for t in self.program.inputs}
        want = {name: array.copy() for name, array in self.storage.items()}
        out = self.program.statements[-1].out.tensor
        result = evaluate(self.program, inputs, self.parameters)[out]
        self._view(self.emission.instruction.operand(out), want[out])[...] = result
        words = [self.storage[o.name][GUARD:].ctypes.data for o in self.emission.instruction.operands]
        words += [*self.strides.values(), *self.parameters.values()]
        function(np.array(words, np.int64).ctypes.data)
        for operand in self.emission.instruction.operands:
            fault = self._difference(operand, want[operand.name])
            if fault:
                return fault
        return ""

    def _place(self, operand: Operand) -> None:
        room = max(self._span(operand), self.emission.lanes(operand)) + 2 * GUARD
        self.storage[operand.name] = np.asarray(self.fill(self.rng, operand.dtype, room, self.simple))
        self.views[operand.name] = self._view(operand, self.storage[operand.name])

    def _span(self, operand: Operand) -> int:
        """Elements from its first to its last."""
        shape, strides = self._geometry(operand)
        return 1 + sum((e - 1) * s for e, s in zip(shape, strides, strict=True)) if prod(shape) else 0

    def _view(self, operand: Operand, storage: Array) -> Array:
        shape, strides = self._geometry(operand)
        return np.lib.stride_tricks.as_strided(storage[GUARD:], shape, tuple(s * storage.itemsize for s in strides))

    def _geometry(self, operand: Operand) -> tuple[tuple[int, ...], tuple[int, ...]]:
        shape = tuple(e.evaluate(self.parameters) for e in self.program.tensor(operand.name).shape)
        if not operand.strides:
            return shape, dense_strides(shape)
        last = 1
        strides: list[int] = []
        for extent, stride in zip(reversed(shape), reversed(operand.strides), strict=True):
            step = stride if isinstance(stride, int) else self._stride(stride, last)
            strides.append(step)
            last = max(last, step * extent)
        return shape, tuple(reversed(strides))

    def _stride(self, name: str, least: int) -> int:
        """A run-time stride at which elements do not overlap."""
        self.strides[name] = max(self.strides[name], least + 3)
        return self.strides[name]

    def _difference(self, operand: Operand, want: Array) -> str:
        found = self.storage[operand.name]
        if operand.name == self.program.statements[-1].out.tensor and self.emission.in_registers(operand):
            spare = slice(GUARD + prod(self._geometry(operand)[0]), GUARD + self.emission.lanes(operand))
            found[spare] = want[spare]  # lanes beyond the tensor mean nothing
        wrong = np.flatnonzero(~_same(found, want, self.emission.instruction.ulps))
        if not wrong.size:
            return ""
        at = int(wrong[0])
        inside = 0 <= at - GUARD < self._span(operand)
        place = f"element {at - GUARD}" if inside else f"memory outside of it ({at - GUARD})"
        return f"{operand.name}: {place} is {found[at]}, {want[at]} expected"


def _same(found: Array, want: Array, ulps: float) -> npt.NDArray[np.bool_]:
    if found.dtype.kind in "biu":
        return np.asarray(np.equal(found, want))
    a, b = found.astype(np.float64), want.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    if ulps:
        with np.errstate(all="ignore"):
            same |= np.abs(a - b) <= ulps * np.spacing(np.abs(want)).astype(np.float64)
    return np.asarray(same)


def _integers(rng: np.random.Generator, dtype: DType, count: int, simple: bool) -> Array:
    low = 0 if dtype.kind in (Kind.BOOL, Kind.UNSIGNED) else -4
    return rng.integers(low, 2 if dtype.kind is Kind.BOOL else 5, count).astype(dtype.numpy)


def _edges(rng: np.random.Generator, dtype: DType, count: int, simple: bool) -> Array:
    """Extreme values; finite ones whose sums depend on order or rounding only where one operation is applied."""
    if dtype.kind is Kind.BOOL:
        return _integers(rng, dtype, count, simple)
    if dtype.is_integer:
        ends = [dtype.low, dtype.low + 1, dtype.high, dtype.high - 1, 0, 1, 2, dtype.high // 3]
        values = np.array(ends, dtype.numpy)
    else:
        numbers = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, float("inf"), float("-inf"), float("nan")]
        numbers += [1e10, -1e10, 1e-40, 255.5, -129.0] if simple else []
        with np.errstate(over="ignore", under="ignore"):
            values = np.array(numbers).astype(dtype.numpy)
    return np.asarray(values[rng.integers(0, len(values), count)])


def _operations(instruction: Instruction) -> int:
    """Arithmetic operations an element goes through."""
    statement = instruction.program.statements[0]
    applied = sum(isinstance(node, Apply) for node in walk(statement.value))
    return applied + (statement.combine.function is not None)
