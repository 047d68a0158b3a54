"""``steps`` for the evaluator: arrays changed in place, step by step.

Before the first step, what is not there of an array that an ``op=`` writes is its neutral element. In each step the
writes are done in their order; each sees what those before it wrote. What is written is converted to the array's type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product

import numpy as np

from dovetail.base.dtypes import DType, Kind, compute_type, join
from dovetail.ir.functional.rearrange import places_at
from dovetail.ir.functional.term import Places, Setting
from dovetail.ir.functional.values import Array, Bools, Data, Value, as_type, chosen, rounded
from dovetail.ir.index import Index
from dovetail.ir.program import Combine

Write = tuple[Combine, int, Places]
_UFUNCS = {Combine.ADD: np.add, Combine.MUL: np.multiply, Combine.MAX: np.maximum, Combine.MIN: np.minimum}
_OF_BOOLS = {Combine.ADD: np.logical_or, Combine.MAX: np.logical_or}


def in_steps(
    settings: tuple[Setting, ...],
    changes: Callable[[Value], Value],
    start: Value,
    depth: int,
    sizes: Mapping[str, int],
) -> Value:
    """The arrays after all steps; ``changes`` says what is written, given the arrays as they are."""
    count, *rows = settings
    writes = [_write(rows[k : k + 3]) for k in range(0, len(rows), 3)]
    arrays = [_numbers(part) for part in (start if isinstance(start, tuple) else (start,))]
    for combine, target, _ in writes:
        arrays[target] = _neutral(arrays[target], combine)
    assert isinstance(count, Index)
    steps = [loop.extent.evaluate(sizes) for loop in writes[0][2].loops[: count.const]]
    for step in product(*map(range, steps)):
        for number, (combine, target, places) in enumerate(writes):
            found = changes(tuple(arrays) if isinstance(start, tuple) else arrays[0])
            data = _numbers(found[number] if isinstance(found, tuple) else found)
            arrays[target] = _put(arrays[target], data, combine, places, step, depth, sizes)
    return tuple(arrays) if isinstance(start, tuple) else arrays[0]


def _write(row: list[Setting]) -> Write:
    combine, target, places = row
    assert isinstance(target, Index) and isinstance(places, Places)
    return Combine(combine), target.const, places


def _numbers(value: Value) -> Data:
    assert isinstance(value, Data), "not an array of numbers"
    return value


def _neutral(data: Data, combine: Combine) -> Data:
    if combine is Combine.SET or data.there is None:
        return data
    number = np.asarray(combine.neutral(data.dtype)).astype(data.values.dtype)
    return chosen(
        data.there, Data(data.values, data.dtype), Data(np.broadcast_to(number, data.values.shape), data.dtype)
    )


def _put(
    old: Data,
    new: Data,
    combine: Combine,
    places: Places,
    step: tuple[int, ...],
    depth: int,
    sizes: Mapping[str, int],
) -> Data:
    """``old`` with the elements of ``new`` at one step put in their places."""
    own = _own(old.dtype, new.dtype)
    loops, rank = len(places.loops), len(places.indices)
    batch = np.broadcast_shapes(old.values.shape[:depth], new.values.shape[:depth])
    total, had = _last_batch(as_type(old, own), batch, rank)
    values, have = _last_batch(as_type(new, own), batch, loops)
    indices, inside = places_at(places, total.shape[:rank], sizes)
    here = inside[step]
    at = tuple(np.broadcast_to(index, inside.shape)[step][here] for index in indices)
    values, have = values[step][here], have[step][here]
    if not rank:  # NumPy has no list of places in an array without axes
        at, total, had = (np.zeros(len(values), np.int64),), total[np.newaxis], had[np.newaxis]
    if combine is Combine.SET:
        total[at] = np.where(have, values, total[at])
        had[at] |= have
    else:
        neutral = np.asarray(combine.neutral(own)).astype(values.dtype)
        ufunc = _OF_BOOLS.get(combine, np.logical_and) if own.kind is Kind.BOOL else _UFUNCS[combine]
        ufunc.at(total, at, np.where(have, values, neutral))
    if not rank:
        total, had = total[0], had[0]
    axes = range(rank, rank + depth), range(depth)
    found = Data(np.moveaxis(total, *axes), own, None if had.all() else np.moveaxis(had, *axes))
    return rounded(found, old.dtype)


def _own(old: DType, new: DType) -> DType:
    """The type in which a write computes."""
    return compute_type(new if old.kind is Kind.BOOL else join(old, new))


def _last_batch(data: Data, batch: tuple[int, ...], own: int) -> tuple[Array, Bools]:
    """Values and where they are there, with the first ``own`` axes before those of the maps around; copies."""
    depth = len(batch)
    shape = batch + data.values.shape[depth:]
    axes = range(depth), range(own, own + depth)
    there = np.broadcast_to(True if data.there is None else data.there, shape)
    return np.array(np.moveaxis(np.broadcast_to(data.values, shape), *axes)), np.array(np.moveaxis(there, *axes))
