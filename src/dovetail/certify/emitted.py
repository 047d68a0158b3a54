"""On the emitted code: what it computes from small whole numbers is what the program says.

Small programs are compared in every element, larger ones in some elements of every kind of tile (interior, each edge,
each corner), and those that would take too long by the code of a small instance of the same plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from time import perf_counter

import numpy as np
import numpy.typing as npt

from dovetail.certify.calm import calmed
from dovetail.certify.exact import allowance, failure
from dovetail.certify.rounding import is_linear, spread_of, widened
from dovetail.certify.sample import evaluate_at, points_needed, written_elements
from dovetail.certify.sizes import shown
from dovetail.certify.stepped import allowed_spread
from dovetail.compare import compare, compare_elements, tile_classes
from dovetail.ir.bind import extents
from dovetail.ir.certificate import Check
from dovetail.ir.evaluate import evaluate
from dovetail.ir.fill import fill, sums_are_exact
from dovetail.ir.plan import Plan
from dovetail.ir.program import Program
from dovetail.ir.work import work
from dovetail.runtime.kernel import Kernel
from dovetail.schedule.flats import flat_of, flats

Array = npt.NDArray[np.generic]
Element = tuple[int, ...]
Sample = tuple[str, Element, np.generic, np.generic]
"""Output, place, value found, value wanted."""
CLAIM = "emitted code and program agree"
METHOD = "emitted code"
ALL_ELEMENTS = 2_000_000
"""Points up to which every element is compared: a few milliseconds of NumPy."""
MOST_BYTES = 64 << 20
MOST_SECONDS = 0.2
MOST_STEPS = 500
"""Steps of a recurrence, each of which the reference takes by itself."""
MOST_IN_STEPS = 5e7
"""Operations of a recurrence: all its elements are compared, and what rounding does to them is found out as well."""
POINTS = 20_000_000
"""Points of the reference that one element may need."""
PERIOD = 65_521
"""Inputs repeat after this many numbers; prime, so that no row or column repeats with them."""


def is_affordable(program: Program, sizes: Mapping[str, int], lanes: int, threads: int) -> bool:
    """Whether one run is cheap enough: memory, steps of the reference, time at a tenth of what the lanes can do."""
    steps = sum(prod(loop.extent.evaluate(sizes) for loop in s.seq) for s in program.statements if s.seq)
    touched = sum(prod(extents(t, sizes)) * t.dtype.bytes for t in program.tensors)
    operations = work(program, sizes).operations
    seconds = operations / (2e9 * lanes * threads)
    if steps and operations > MOST_IN_STEPS:
        return False
    return touched <= MOST_BYTES and seconds <= MOST_SECONDS and steps <= MOST_STEPS


def emitted_check(
    program: Program, plan: Plan, code: Callable[[], Kernel], choices: tuple[dict[str, int], ...], note: str
) -> Check:
    """``code`` of ``program`` for each choice of run-time sizes; ``note`` says what is being run.

    The code may still be in the making: what it is compared with is computed before it is asked for.
    """
    started = perf_counter()
    runs = [_Run(program, plan, sizes, note) for sizes in choices]
    first = runs[0].expected()
    before = perf_counter() - started
    kernel = code()
    started = perf_counter() - before
    details = []
    for number, run in enumerate(runs):
        passed, detail = run.compared(kernel, run.expected() if number else first)
        details.append(detail)
        if not passed:
            return Check(CLAIM, METHOD, detail, False, perf_counter() - started)
    return Check(CLAIM, METHOD, "; ".join(details), True, perf_counter() - started)


@dataclass(frozen=True, slots=True)
class _Expected:
    """What a kernel is given, and what it is to make of it: whole tensors, or some elements of them."""

    arrays: dict[str, Array]
    wanted: dict[str, Array]
    elements: dict[tuple[str, Element], np.generic]


@dataclass(frozen=True)
class _Run:
    """One call of a kernel that has no constants bound yet."""

    program: Program
    plan: Plan
    sizes: dict[str, int]
    note: str

    @property
    def is_large(self) -> bool:
        points = sum(prod(x.extent.evaluate(self.sizes) for x in s.all_loops) for s in self.program.statements)
        return points > ALL_ELEMENTS and not any(s.seq for s in self.program.statements)

    @property
    def whole(self) -> bool:
        return sums_are_exact(self.program, self.sizes, 1)

    def expected(self) -> _Expected:
        arrays = calmed(self.program, fill(self.program, 2, self.sizes, period=PERIOD), self.sizes)
        if not self.is_large:
            return _Expected(arrays, evaluate(self.program, arrays, self.sizes), {})
        chosen = {
            (tensor, element): evaluate_at(self.program, arrays, self.sizes, tensor, element)
            for tensor, element in dict.fromkeys(self.elements())
            if points_needed(self.program, self.sizes, tensor, element) <= POINTS
        }
        return _Expected(arrays, {}, chosen)

    def compared(self, kernel: Kernel, expected: _Expected) -> tuple[bool, str]:
        found = self.results(kernel, expected.arrays)
        return self.sampled(found, expected) if self.is_large else self.complete(found, expected)

    def results(self, kernel: Kernel, arrays: dict[str, Array]) -> dict[str, Array]:
        """Outputs by name."""
        found = kernel(*(arrays[t.name] for t in self.program.inputs), sizes=self.sizes or None)
        several = found if isinstance(found, tuple) else (found,)
        return {t.name: a for t, a in zip(self.program.outputs, several, strict=True)}

    def complete(self, found: dict[str, Array], expected: _Expected) -> tuple[bool, str]:
        wanted = expected.wanted
        compared = compare(self.program, self.plan, self.sizes, found, wanted, self.whole)
        if not compared.agrees and compared.inexact:
            allowed = allowed_spread(self.program, expected.arrays, self.sizes, wanted)
            compared = compare(self.program, self.plan, self.sizes, found, wanted, self.whole, allowed=allowed)
        if not compared.agrees:
            return False, failure(compared, self.note, self.sizes)
        elements = sum(c.elements for c in compared.classes)
        return True, f"all {elements} elements of {self.note}{shown(self.sizes)}{allowance(compared)}"

    def sampled(self, found: dict[str, Array], expected: _Expected) -> tuple[bool, str]:
        values: list[Sample] = [
            (tensor, element, found[tensor][element], wanted) for (tensor, element), wanted in expected.elements.items()
        ]
        wrong = compare_elements(self.program, self.sizes, values, self.whole)
        if wrong and is_linear(self.program):
            allowed = self.spread(expected.arrays, values)
            wrong = compare_elements(self.program, self.sizes, values, self.whole, allowed)
        if wrong:
            return False, f"{wrong}, in {self.note}{shown(self.sizes)}"
        return True, f"{len(values)} elements of {self.note}{shown(self.sizes)}, some of every kind of tile"

    def spread(self, arrays: dict[str, Array], values: Sequence[Sample]) -> float:
        """What roundings in another order may change at these elements."""
        wide = widened(self.program)
        given = {t.name: arrays[t.name].astype(t.dtype.numpy) for t in wide.inputs}
        found = 0.0
        for name in dict.fromkeys(tensor for tensor, _, _, _ in values):
            mine = [(place, float(wanted)) for tensor, place, _, wanted in values if tensor == name]
            exact = [float(evaluate_at(wide, given, self.sizes, name, place)) for place, _ in mine]
            found = max(found, spread_of([wanted for _, wanted in mine], exact))
        return found

    def elements(self) -> Iterator[tuple[str, Element]]:
        """The last and another element of every kind of tile; where several statements write, one of each."""
        yield from written_elements(self.program, self.sizes)
        flat = flat_of(flats(self.program), self.plan)
        rng = np.random.default_rng(3)
        for tensor in self.program.outputs:
            merged = flat.tensor(tensor.name)
            shape, real = extents(merged, self.sizes), extents(tensor, self.sizes)
            for _, region in tile_classes(flat, self.plan, merged, self.sizes):
                last = tuple(part.stop - 1 for part in region)
                other = tuple(int(rng.integers(part.start, part.stop)) for part in region)
                for place in dict.fromkeys((last, other)):
                    at = np.unravel_index(np.ravel_multi_index(place, shape), real) if shape else ()
                    yield tensor.name, tuple(int(x) for x in at)
