"""The values an instruction's parameters may take: that there are any, and that costs mean something at all of them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

from dovetail.base.errors import TargetError
from dovetail.ir.domain import condition_text, size_constraints, variables
from dovetail.ir.index import Condition
from dovetail.ir.program import Size
from dovetail.poly.sets import first_point, set_text
from dovetail.targets.cost import cost_bounds, cost_names, evaluate_cost
from dovetail.targets.tables import Entry

_TRIES = 20_000
"""Points at which a cost is looked at when its bounds alone do not settle that it is never negative."""


def check_constraints(sizes: tuple[Size, ...], conditions: tuple[Condition, ...], entry: Entry) -> None:
    """Raise when no values of the parameters meet all conditions; the message has only those that contradict."""
    if all(condition.holds({size.name: size.high for size in sizes}) for condition in conditions):
        return
    if _is_possible(sizes, conditions):
        return
    core = list(conditions)
    for condition in conditions:
        rest = [other for other in core if other is not condition]
        if not _is_possible(sizes, rest):
            core = rest
    names = {name for condition in core for name in condition.names()}
    ranges = [f"{size.name} in {size.low}..{size.high}" for size in sizes if size.name in names]
    raise TargetError(
        "no parameters meet these constraints",
        where=entry.where("where"),
        why=", ".join([*map(str, core), *ranges]),
        hint="drop or loosen one of them, or widen the range in 'params'",
    )


def least_values(sizes: tuple[Size, ...], conditions: tuple[Condition, ...]) -> dict[str, int]:
    """For each parameter the smallest value it has at any point that meets the conditions."""
    found = {}
    for size in sizes:
        others = [other.name for other in sizes if other is not size]
        point = first_point(set_text(variables([size.name]), _constraints(sizes, conditions), variables(others)))
        found[size.name] = size.low if point is None else point[0]
    return found


def check_cost(key: str, cost: str, sizes: tuple[Size, ...], conditions: tuple[Condition, ...], entry: Entry) -> None:
    """Raise when ``cost`` divides by zero or is negative for values that the parameters may have.

    Bounds settle most costs; otherwise every point is tried, or an even choice of them where there are too many.
    """
    bounds = cost_bounds(cost, {size.name: (size.low, size.high) for size in sizes})
    if bounds is not None and 0 <= bounds[0] <= bounds[1] < math.inf:
        return
    used = cost_names(cost) | {name for condition in conditions for name in condition.names()}
    for point in _points([size for size in sizes if size.name in used], conditions):
        _check_at(key, cost, point, entry)


def _check_at(key: str, cost: str, point: dict[str, int], entry: Entry) -> None:
    named = {name: point[name] for name in sorted(cost_names(cost))}
    when = f" when {', '.join(f'{name} = {value}' for name, value in named.items())}" if named else ""
    others = "leave such values out with 'where' or 'params', or " if named else ""
    try:
        value = evaluate_cost(cost, named)
    except TargetError as problem:
        hint = f"{others}keep what is divided by away from 0, e.g. with max(1, ...)"
        raise TargetError(f"{key} cannot be told{when}: {problem.what}", where=entry.where(key), hint=hint) from None
    if not 0 <= value < math.inf:
        wanted = "a finite cost" if value > 0 else "a cost that is 0 or more, e.g. with max(0, ...)"
        hint = f"{others}give {wanted}"
        raise TargetError(f"{key} '{cost}' is {value:g}{when}", where=entry.where(key), hint=hint)


def _points(sizes: Sequence[Size], conditions: tuple[Condition, ...]) -> Iterator[dict[str, int]]:
    """Values of the parameters that meet the conditions: all of them, or up to ``_TRIES``, ends included."""
    names = [size.name for size in sizes]
    most = max(2, int(_TRIES ** (1 / max(1, len(sizes)))))
    count = math.prod(size.high - size.low + 1 for size in sizes)
    choices = [_values(size, conditions, size.high - size.low + 1 if count <= _TRIES else most) for size in sizes]
    for values in itertools.product(*choices):
        point = dict(zip(names, values, strict=True))
        if all(condition.holds(point) for condition in conditions if condition.names() <= point.keys()):
            yield point


def _values(size: Size, conditions: tuple[Condition, ...], most: int) -> list[int]:
    """Up to ``most`` values of one parameter that its own conditions allow, spread over its range."""
    own = [condition for condition in conditions if condition.names() == {size.name}]
    step = max(1, (size.high - size.low) // _TRIES)
    near = range(size.low, min(size.high, size.low + _TRIES) + 1)
    tried = sorted({*near, *range(size.low, size.high + 1, step), size.high})
    allowed = [value for value in tried if all(condition.holds({size.name: value}) for condition in own)]
    if len(allowed) <= most:
        return allowed
    return sorted({allowed[n * (len(allowed) - 1) // (most - 1)] for n in range(most)})


def _is_possible(sizes: Sequence[Size], conditions: Sequence[Condition]) -> bool:
    names = variables(size.name for size in sizes)
    return first_point(set_text(names, _constraints(sizes, conditions))) is not None


def _constraints(sizes: Sequence[Size], conditions: Sequence[Condition]) -> list[str]:
    return [*size_constraints(sizes), *map(condition_text, conditions)]
