"""The reference at single elements: only the points that the element depends on are evaluated.

c[7, 9] of  for i<1024, j<1024, k<1024: c[i, j] += a[i, k] * b[k, j]   ->   for k<1024: c[7, 9] += a[7, k] * b[k, 9]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import prod

import numpy as np
import numpy.typing as npt

from dovetail.ir.bind import extents
from dovetail.ir.evaluate import run_statement
from dovetail.ir.index import Access, Condition, Index, constant
from dovetail.ir.program import Combine, Program, Role, Statement

Array = npt.NDArray[np.generic]
Need = tuple[int | None, ...]
"""The place needed along each dimension; None: all of them."""
TRIES = 20
"""Points of a statement that are looked at for one where its conditions hold."""


def points_needed(program: Program, sizes: Mapping[str, int], tensor: str, element: tuple[int, ...]) -> int:
    """How many points ``evaluate_at`` would run."""
    fixed = _fixed(program, sizes, tensor, element)
    return sum(
        prod(loop.extent.evaluate(sizes) for loop in statement.loops if loop.name not in fixed[number])
        for number, statement in enumerate(program.statements)
        if number in fixed
    )


def evaluate_at(
    program: Program, arrays: Mapping[str, Array], sizes: Mapping[str, int], tensor: str, element: tuple[int, ...]
) -> np.generic:
    """The value of one element of an output; ``program`` has no steps."""
    fixed = _fixed(program, sizes, tensor, element)
    memory = {name: array for name, array in arrays.items() if program.tensor(name).role is not Role.INOUT}
    needed = {program.statements[n].out.tensor for n in fixed}
    for t in program.tensors:
        if t.name in needed:
            memory[t.name] = arrays[t.name].copy() if t.role is Role.INOUT else _start(program, t.name, sizes)
    dtypes = program.dtypes
    with np.errstate(all="ignore"):
        for number, values in sorted(fixed.items()):
            statement = program.statements[number]
            loops = tuple(loop for loop in statement.loops if loop.name not in values)
            run_statement(replace(statement, loops=loops), dtypes, memory, {**sizes, **values})
    value: np.generic = memory[tensor][element]
    return value


def written_elements(program: Program, sizes: Mapping[str, int]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """(output, element): one that each statement writes, of outputs that several statements write."""
    rng = np.random.default_rng(4)
    outputs = {t.name for t in program.outputs}
    writers = [s.out.tensor for s in program.statements]
    for statement in program.statements:
        name = statement.out.tensor
        if name not in outputs or writers.count(name) < 2 or any(True for _ in statement.out.reads()):
            continue
        for _ in range(TRIES):
            point = {x.name: int(rng.integers(max(1, x.extent.evaluate(sizes)))) for x in statement.all_loops}
            values = {**sizes, **point}
            if all(_holds(c, values) for c in statement.where if not any(True for _ in c.index.reads())):
                yield name, tuple(i.evaluate(values) for i in statement.out.indices)
                break


def _holds(condition: Condition, values: Mapping[str, int]) -> bool:
    found = condition.index.evaluate(values)
    return found == 0 if condition.equal else found >= 0


def _start(program: Program, name: str, sizes: Mapping[str, int]) -> Array:
    """Memory at the neutral element; pages that nobody touches cost nothing when it is zero."""
    tensor = program.tensor(name)
    combines = [s.combine for s in program.statements if s.out.tensor == name and s.combine is not Combine.SET]
    neutral = combines[0].neutral(tensor.dtype) if combines else 0
    shape = extents(tensor, sizes)
    return np.full(shape, neutral, tensor.dtype.numpy) if neutral else np.zeros(shape, tensor.dtype.numpy)


def _fixed(
    program: Program, sizes: Mapping[str, int], tensor: str, element: tuple[int, ...]
) -> dict[int, dict[str, int]]:
    """The statements that the element needs, with the loops that it fixes in each."""
    need: dict[str, Need] = {tensor: element}
    found: dict[int, dict[str, int]] = {}
    for number in reversed(range(len(program.statements))):
        statement = program.statements[number]
        if statement.out.tensor not in need:
            continue
        fixed = _fixed_loops(statement, need[statement.out.tensor], sizes)
        if fixed is None:
            continue
        found[number] = fixed
        for access in statement.reads():
            here = _place(access, {**sizes, **found[number]})
            known = need.get(access.tensor)
            need[access.tensor] = here if known is None else _joined(known, here)
    return found


def _fixed_loops(statement: Statement, need: Need, sizes: Mapping[str, int]) -> dict[str, int] | None:
    """The loops that only one value brings to what is needed; None: the statement never gets there."""
    extents = {loop.name: loop.extent.evaluate(sizes) for loop in statement.loops}
    fixed: dict[str, int] = {}
    for index, place in zip(statement.out.indices, need, strict=True):
        if place is None or not index.is_affine or not index.names() <= extents.keys():
            continue
        if not fixed.keys().isdisjoint(index.names()):
            index = index.substitute({name: constant(value) for name, value in fixed.items()})
        found = _digits(index, place, extents)
        if found is None:
            return None
        fixed |= found
    return fixed


def _digits(index: Index, place: int, extents: Mapping[str, int]) -> dict[str, int] | None:
    """``4 * i + j == place`` -> i and j, where only one pair will do; {} where several might, None where none does."""
    factors = sorted((index.coefficient(name), name) for name in index.names())
    reach = 1
    for factor, name in factors:
        if factor < reach:
            return {}
        reach += factor * (extents[name] - 1)
    left = place - index.const
    found: dict[str, int] = {}
    for factor, name in reversed(factors):
        found[name], left = divmod(left, factor)
    inside = all(0 <= value < extents[name] for name, value in found.items())
    return found if inside and not left else None


def _place(access: Access, values: Mapping[str, int]) -> Need:
    known = values.keys()
    return tuple(
        None if any(True for _ in i.reads()) or i.names() - known else i.evaluate(values) for i in access.indices
    )


def _joined(one: Need, other: Need) -> Need:
    return tuple(a if a == b else None for a, b in zip(one, other, strict=True))
