"""Whether a result is the one a case asks for: kind, dtype and shape, then the values within the case's tolerances."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dovetail.frontends.onnx.entries import HostValue

Array = npt.NDArray[np.generic]


def difference(found: HostValue, wanted: HostValue, rtol: float, atol: float) -> str | None:
    """What is different, in words; None where nothing is."""
    if isinstance(wanted, np.ndarray):
        if not isinstance(found, np.ndarray):
            return f"a {type(found).__name__} instead of a tensor"
        return _arrays(found, wanted, rtol, atol)
    if isinstance(wanted, list):
        if not isinstance(found, list) or len(found) != len(wanted):
            return f"{_shown(found)} instead of a sequence of {len(wanted)}"
        pairs = zip(found, wanted, strict=True)
        return next((what for a, b in pairs if (what := difference(a, b, rtol, atol)) is not None), None)
    if isinstance(wanted, dict):
        if not isinstance(found, dict) or found.keys() != wanted.keys():
            return f"{_shown(found)} instead of a map"
        return next((what for k in wanted if (what := difference(found[k], wanted[k], rtol, atol)) is not None), None)
    return None if found is None else f"{_shown(found)} instead of an empty optional"


def _arrays(found: Array, wanted: Array, rtol: float, atol: float) -> str | None:
    if found.dtype != wanted.dtype or found.shape != wanted.shape:
        return f"{found.dtype}{list(found.shape)} instead of {wanted.dtype}{list(wanted.shape)}"
    if wanted.dtype == object or wanted.dtype.kind == "b":
        return None if np.array_equal(found, wanted) else _first(found, wanted, found != wanted)
    if wanted.dtype.kind in "iu":
        close: npt.NDArray[np.bool_] = np.asarray(found == wanted)
    else:
        wide = np.complex128 if wanted.dtype.kind == "c" else np.float64
        close = np.isclose(found.astype(wide), wanted.astype(wide), rtol=rtol, atol=atol, equal_nan=True)
    return None if close.all() else _first(found, wanted, ~close)


def _first(found: Array, wanted: Array, wrong: Array) -> str:
    at = tuple(int(places[0]) for places in np.nonzero(wrong)) if wrong.ndim else ()
    return (
        f"{int(np.count_nonzero(wrong))} of {wanted.size} differ, first {at}: {found[at]!r} instead of {wanted[at]!r}"
    )


def _shown(value: HostValue) -> str:
    return f"a sequence of {len(value)}" if isinstance(value, list) else f"a {type(value).__name__}"
