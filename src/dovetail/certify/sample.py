"""The reference at single elements: only the points that the element depends on are evaluated.

c[7, 9] of  for i<1024, j<1024, k<1024: c[i, j] += a[i, k] * b[k, j]   ->   for k<1024: c[7, 9] += a[7, k] * b[k, 9]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

import numpy as np
import numpy.typing as npt

from dovetail.ir.bind import extents
from dovetail.ir.evaluate import run_statement
from dovetail.ir.index import Access, variable
from dovetail.ir.program import Combine, Program, Role, Statement

Array = npt.NDArray[np.generic]
Need = tuple[int | None, ...]
"""The place needed along each dimension; None: all of them."""


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
        fixed = _fixed_loops(statement, need[statement.out.tensor])
        reach = {loop.name: loop.extent.evaluate(sizes) for loop in statement.loops}
        if any(not 0 <= place < reach[name] for name, place in fixed.items()):
            continue
        found[number] = fixed
        for access in statement.reads():
            here = _place(access, {**sizes, **found[number]})
            known = need.get(access.tensor)
            need[access.tensor] = here if known is None else _joined(known, here)
    return found


def _fixed_loops(statement: Statement, need: Need) -> dict[str, int]:
    loops = {loop.name for loop in statement.loops}
    fixed: dict[str, int] = {}
    for index, place in zip(statement.out.indices, need, strict=True):
        name = next(iter(index.names()), "")
        if place is not None and name in loops and index == variable(name):
            fixed.setdefault(name, place)
    return fixed


def _place(access: Access, values: Mapping[str, int]) -> Need:
    known = values.keys()
    return tuple(
        None if any(True for _ in i.reads()) or i.names() - known else i.evaluate(values) for i in access.indices
    )


def _joined(one: Need, other: Need) -> Need:
    return tuple(a if a == b else None for a, b in zip(one, other, strict=True))
