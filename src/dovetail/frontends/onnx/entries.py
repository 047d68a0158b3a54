"""What stands for a value of an ONNX model while its graph is made, and where its parts are at run time.

Entry  = Tensor      a value of the graph in the making
       | Held        an array the graph language has no dtype for (strings, 4-bit numbers): only the host takes it
       | Listed      a sequence whose length is known
       | NOTHING     an optional that is empty
Recipe = Made        a result of the graph
       | Given       what was handed in, or a part of it
       | Fixed       a value known while building
       | tuple       a sequence of these
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.generic]
HostValue = Array | list["HostValue"] | dict[int | str, "HostValue"] | None
"""A value at run time: a tensor, a sequence, a map, or an optional that is empty. Strings are arrays of objects."""
Path = tuple[str, *tuple[int, ...]]
"""A value by the model's name, then which element of a sequence, and so on."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """The value ``name`` of the graph."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """``recipe`` says where it is."""

    recipe: Given | Fixed


@dataclass(frozen=True, slots=True)
class Listed:
    """A sequence."""

    items: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Nothing:
    """An empty optional."""


NOTHING = Nothing()
Entry = Tensor | Held | Listed | Nothing


@dataclass(frozen=True, slots=True)
class Made:
    """Result ``place`` of the graph."""

    place: int


@dataclass(frozen=True, slots=True)
class Given:
    """A part of what was handed in."""

    path: Path


@dataclass(frozen=True, slots=True, eq=False)
class Fixed:
    """The same in every call of the same stage."""

    value: HostValue


Recipe = Made | Given | Fixed | tuple["Recipe", ...]


def follow(recipe: Recipe, values: Mapping[str, HostValue], results: Sequence[Array]) -> HostValue:
    """What ``recipe`` makes of a call's values and the graph's results."""
    if isinstance(recipe, Made):
        return results[recipe.place]
    if isinstance(recipe, Given):
        return part(values, recipe.path)
    if isinstance(recipe, Fixed):
        return recipe.value
    return [follow(item, values, results) for item in recipe]


def part(values: Mapping[str, HostValue], path: Path) -> HostValue:
    """The value at ``path``."""
    name, *places = path
    found = values[name]
    for place in places:
        assert isinstance(found, list)
        found = found[place]
    return found


Signature = tuple[object, ...] | None


def signature(value: HostValue) -> Signature:
    """What a stage depends on without looking at the elements: dtype and shape, all through a sequence."""
    if isinstance(value, np.ndarray):
        return value.dtype, value.shape
    if isinstance(value, list):
        return tuple(map(signature, value))
    return ("map",) if isinstance(value, dict) else None
