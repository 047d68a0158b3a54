"""Questions about sets of integer points, answered exactly by isl, with a point as the witness.

Sets and maps are isl text; ``set_text`` and ``map_text`` build it from names and constraints such as ``0 <= i < n``,
``e = floor((i)/4)`` and ``(i) mod 4 = 0``. There are no parameters: what varies is a variable. Answers are kept, since
compiling asks the same questions again.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TypeVar

import islpy as isl

from dovetail.base.errors import LimitError

Point = tuple[int, ...]
Parsed = TypeVar("Parsed", isl.Set, isl.Map)
MAX_OPERATIONS = 20_000_000
"""isl's own step count (a few seconds) after which a question is given up."""
_KEPT_ANSWERS = 4096
_THREAD = threading.local()


def set_text(variables: Sequence[str], constraints: Sequence[str], hidden: Sequence[str] = ()) -> str:
    """``{ [variables] : exists hidden : constraints }``."""
    body = " and ".join(constraints) or "true"
    if hidden:
        body = f"exists ({', '.join(hidden)} : {body})"
    return f"{{ [{', '.join(variables)}] : {body} }}"


def map_text(variables: Sequence[str], image: Sequence[str], constraints: Sequence[str]) -> str:
    """``{ [variables] -> [image] : constraints }``; the image is expressions of the variables."""
    return f"{{ [{', '.join(variables)}] -> [{', '.join(image)}] : {' and '.join(constraints) or 'true'} }}"


@lru_cache(_KEPT_ANSWERS)
def first_point(points: str) -> Point | None:
    """The lexicographically smallest point of a set bounded from below; None when it is empty."""
    context = _context()
    with _limited(context, _set(context, points)) as (whole,):
        return _first(whole)


def is_empty(points: str) -> bool:
    return first_point(points) is None


@lru_cache(_KEPT_ANSWERS)
def first_missing(whole: str, parts: tuple[str, ...]) -> Point | None:
    """The smallest point of ``whole`` that is in none of ``parts``; None when they cover it."""
    context = _context()
    with _limited(context, *(_set(context, text) for text in (whole, *parts))) as (rest, *known):
        for part in known:
            rest = rest.subtract(part)
        return _first(rest)


def is_subset(inner: str, outer: str) -> bool:
    return first_missing(inner, (outer,)) is None


@lru_cache(_KEPT_ANSWERS)
def first_collision(mapping: str) -> tuple[Point, Point] | None:
    """Two different points with the same image; None when the map is injective."""
    context = _context()
    with _limited(context, _map(context, mapping)) as (relation,):
        if relation.is_injective():
            return None
        pairs = relation.apply_range(relation.reverse())
        return _pair(pairs.subtract(isl.Map.identity(pairs.get_space())), relation.dim(isl.dim_type.in_))


def is_injective(mapping: str) -> bool:
    return first_collision(mapping) is None


@lru_cache(_KEPT_ANSWERS)
def first_meeting(one: str, other: str, ignored: str = "") -> tuple[Point, Point] | None:
    """A point of each map with the same image; None when the images are disjoint.

    ``ignored`` is a map from points of the one to points of the other that do not count.
    """
    context = _context()
    with _limited(context, *(_map(context, text) for text in (one, other, ignored) if text)) as (a, b, *rest):
        pairs = a.apply_range(b.reverse())
        for known in rest:
            pairs = pairs.subtract(known)
        return _pair(pairs, a.dim(isl.dim_type.in_))


def _context() -> isl.Context:
    """This thread's own isl context."""
    context: isl.Context | None = getattr(_THREAD, "context", None)
    if context is None:
        context = _THREAD.context = isl.Context()
    return context


@contextmanager
def _limited(context: isl.Context, *parsed: Parsed) -> Iterator[tuple[Parsed, ...]]:
    """Work on ``parsed`` within isl's step limit."""
    context.reset_operations()
    context.set_max_operations(MAX_OPERATIONS)
    try:
        yield parsed
    except isl.Error as error:
        why = f"isl gave up after {MAX_OPERATIONS} steps: {str(error).split(':')[0]}"
        raise LimitError("a proof about the program's points takes too long", why=why) from None
    finally:
        context.set_max_operations(0)


def _set(context: isl.Context, text: str) -> isl.Set:
    return isl.Set.read_from_str(context, text)


def _map(context: isl.Context, text: str) -> isl.Map:
    return isl.Map.read_from_str(context, text)


def _first(points: isl.Set) -> Point | None:
    if points.is_empty():
        return None
    point, width = points.lexmin().sample_point(), points.dim(isl.dim_type.set)
    return tuple(int(point.get_coordinate_val(isl.dim_type.set, axis).to_python()) for axis in range(width))


def _pair(pairs: isl.Map, width: int) -> tuple[Point, Point] | None:
    point = _first(pairs.wrap().flatten())
    return None if point is None else (point[:width], point[width:])
