"""An image between its points: the nearest one, or a weighted sum of its neighbours along each axis."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
_CUBIC = -0.75


def sampled(image: Floats, places: Sequence[Floats], mode: str, padding: str, aligned: bool) -> Floats:
    """``image[c, ...]`` at ``places``, one array of coordinates for each axis after the first.

    ``mode`` is nearest, linear or cubic; ``padding`` zeros, border or reflection; reflection is about the outermost
    points where they are ``aligned``, and half a step beyond them otherwise.
    """
    if mode not in _TAPS or padding not in ("zeros", "border", "reflection"):
        raise ValueError(f"no sampling by '{mode}' with '{padding}' outside")
    columns = []
    for place, extent in zip(places, image.shape[1:], strict=True):
        at = np.rint(place) if mode == "nearest" else place
        at = _inside(at, extent, padding, aligned)
        columns.append([(_tap(at, step), weight) for step, weight in _TAPS[mode](at)])
    made = np.zeros((len(image), *places[0].shape))
    for taps in product(*columns):
        indices, weights = zip(*taps, strict=True)
        made += _pixels(image, indices, padding, aligned) * np.prod(np.broadcast_arrays(*weights), 0)
    return made


def _inside(at: Floats, extent: int, padding: str, aligned: bool) -> Floats:
    low, high = (0.0, extent - 1.0) if aligned else (-0.5, extent - 0.5)
    out = (at < low) | (at > high)
    if padding == "border":
        return np.where(out, np.clip(at, 0, extent - 1), at)
    return np.where(out, _reflected(at, low, high), at) if padding == "reflection" else at


def _pixels(image: Floats, indices: Sequence[Ints], padding: str, aligned: bool) -> Floats:
    there, inside = [], np.ones(indices[0].shape, np.bool_)
    for index, extent in zip(indices, image.shape[1:], strict=True):
        if padding == "reflection":
            low, high = (0.0, extent - 1.0) if aligned else (-0.5, extent - 0.5)
            out = (index < low) | (index > high)
            index = np.where(out, _reflected(index.astype(np.float64), low, high), index).astype(np.int64)
        elif padding == "zeros":
            inside &= (index >= 0) & (index < extent)
        there.append(np.clip(index, 0, extent - 1))
    found = np.moveaxis(image, 0, -1)[tuple(there)]
    return np.moveaxis(found, -1, 0) * inside


def _reflected(at: Floats, low: float, high: float) -> Floats:
    """Turned back at the borders as often as it takes."""
    span = high - low
    if span <= 0:
        return np.full_like(at, low)
    away = np.where(at < low, low - at, at - high)
    turns, rest = np.floor(away / span), np.mod(away, span)
    from_low = (at < low) == (turns % 2 == 0)
    return np.where(from_low, low + rest, high - rest)


def _tap(at: Floats, step: int) -> Ints:
    return np.floor(at).astype(np.int64) + step


def _nearest(at: Floats) -> list[tuple[int, Floats]]:
    return [(0, np.ones_like(at))]


def _linear(at: Floats) -> list[tuple[int, Floats]]:
    part = at - np.floor(at)
    return [(0, 1 - part), (1, part)]


def _cubic(at: Floats) -> list[tuple[int, Floats]]:
    """Keys' cubic convolution."""
    part = at - np.floor(at)

    def near(t: Floats) -> Floats:
        return ((_CUBIC + 2) * t - (_CUBIC + 3)) * t * t + 1

    def far(t: Floats) -> Floats:
        return ((t - 5) * t + 8) * t * _CUBIC - 4 * _CUBIC

    return [(-1, far(part + 1)), (0, near(part)), (1, near(1 - part)), (2, far(2 - part))]


_TAPS = {"nearest": _nearest, "linear": _linear, "cubic": _cubic}
