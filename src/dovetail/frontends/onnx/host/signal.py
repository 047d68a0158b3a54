"""Signals: Fourier transforms, windows, and the filters of the mel scale."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dovetail.frontends.onnx.convert.attributes import integer, malformed
from dovetail.frontends.onnx.elements import ELEMENTS
from dovetail.frontends.onnx.entries import Array
from dovetail.frontends.onnx.host.call import Call, HostFunction, Results

Floats = npt.NDArray[np.float64]
_WINDOWS = {
    "HannWindow": (0.5, 0.5, 0.0),
    "HammingWindow": (25 / 46, 21 / 46, 0.0),
    "BlackmanWindow": (0.42, 0.5, 0.08),
}
"""a - b cos(t) + c cos(2 t), as the standard states them."""


def dft(call: Call) -> Results:
    x, node = call.array(0), call.node
    axis = integer(node, "axis", 1) if call.opset < 20 else call.whole(2, -2)
    axis = axis % x.ndim
    inverse, one_sided = bool(integer(node, "inverse", 0)), bool(integer(node, "onesided", 0))
    if axis == x.ndim - 1:
        raise malformed(node, "the last axis holds the parts of complex numbers")
    length = call.whole(1, 2 * (x.shape[axis] - 1) if inverse and one_sided else x.shape[axis])
    if length < 1:
        raise malformed(node, f"a transform of {length} elements")
    call.room((*x.shape[:axis], length, *x.shape[axis + 1 : -1], 2), x.dtype)
    return (_transformed(x, length, axis, inverse, one_sided),)


def stft(call: Call) -> Results:
    x, step, window = call.array(0), call.whole(1, 1), call.maybe(2)
    length = call.whole(3, len(window) if window is not None else x.shape[1])
    if step < 1 or not 1 <= length <= x.shape[1]:
        raise malformed(call.node, f"frames of {length} elements every {step} of {x.shape[1]}")
    count = (x.shape[1] - length) // step + 1
    frames = np.stack([x[:, at * step : at * step + length] for at in range(count)], 1).astype(np.float64)
    if window is not None:
        frames = frames * window.astype(np.float64)[:, None]
    one_sided = bool(integer(call.node, "onesided", 1)) and x.shape[-1] == 1
    return (_transformed(frames, length, 2, False, one_sided).astype(x.dtype),)


def window(call: Call) -> Results:
    count, code = call.whole(0, 0), integer(call.node, "output_datatype", 1)
    over = count if integer(call.node, "periodic", 1) else count - 1
    a, b, c = _WINDOWS[call.node.op]
    call.room((max(0, count),), np.dtype(np.float64))
    if code not in ELEMENTS or count < 0:
        raise malformed(call.node, f"a window of {count} elements of type {code}")
    turn = np.arange(count).astype(np.float64) * (2 * np.pi / over if over else 0.0)
    return ((a - b * np.cos(turn) + c * np.cos(2 * turn)).astype(ELEMENTS[code].array),)


def mel_weights(call: Call) -> Results:
    bins, length, rate = (call.whole(at, 0) for at in range(3))
    low, high = (float(call.array(at).reshape(-1)[0]) for at in (3, 4))
    code = integer(call.node, "output_datatype", 1)
    if code not in ELEMENTS or bins < 0 or length < 0 or rate < 1:
        raise malformed(call.node, "numbers that no filter has")
    call.room((length // 2 + 1, bins), np.dtype(np.float64))
    mel_low, mel_high = (2595 * np.log10(1 + edge / 700) for edge in (low, high))
    mels = mel_low + np.arange(bins + 2) * ((mel_high - mel_low) / (bins + 2))
    edges = ((length + 1) * (700 * (10 ** (mels / 2595) - 1)) // rate).astype(np.int64)
    rows: npt.NDArray[np.int64] = np.arange(length // 2 + 1)
    found = np.zeros((len(rows), bins))
    for at in range(bins):
        left, centre, right = edges[at : at + 3]
        if centre == left:
            found[centre, at] = 1
        else:
            rising = (rows >= left) & (rows <= centre)
            found[rising, at] = (rows[rising] - left) / (centre - left)
        falling = (rows >= centre) & (rows < right)
        found[falling, at] = (right - rows[falling]) / max(1, right - centre)
    return (found.astype(ELEMENTS[code].array),)


def _transformed(x: Array, length: int, axis: int, inverse: bool, one_sided: bool) -> Array:
    """The transform along ``axis``, computed in x's precision; the last axis holds the parts of complex numbers."""
    wide = x.astype(np.float32) if x.dtype.itemsize < 4 else np.ascontiguousarray(x)
    complex_ = np.complex128 if wide.dtype == np.float64 else np.complex64
    signal = wide[..., 0] if x.shape[-1] == 1 else wide.view(complex_)[..., 0]
    if inverse and one_sided:
        return np.fft.irfft(signal, length, axis)[..., None].astype(x.dtype)
    made = np.fft.ifft(signal, length, axis) if inverse else np.fft.fft(signal, length, axis)
    if one_sided:
        made = np.take(made, np.arange(length // 2 + 1), axis)
    return np.stack([made.real, made.imag], -1).astype(x.dtype)


HOST: dict[tuple[str, str], HostFunction] = {
    ("", "DFT"): dft,
    ("", "STFT"): stft,
    ("", "MelWeightMatrix"): mel_weights,
    **{("", name): window for name in _WINDOWS},
}
