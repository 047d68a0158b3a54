"""How a window of an ONNX node moves: kernel, strides, dilations, and the padding that ``auto_pad`` stands for."""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.frontends.onnx.convert.attributes import integers, malformed, text
from dovetail.frontends.onnx.model import OnnxNode
from dovetail.ir.graph.graph import Attribute


@dataclass(frozen=True, slots=True)
class Window:
    """One number for each spatial axis; ``pads`` are all before, then all behind."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[int, ...]

    def settings(self) -> dict[str, Attribute]:
        """Attributes of our operators."""
        return {"strides": self.strides, "dilations": self.dilations, "pads": self.pads}


def window(node: OnnxNode, spatial: tuple[int, ...], kernel: tuple[int, ...]) -> Window:
    """The window of ``node`` over axes of these extents."""
    rank = len(spatial)
    kernel = integers(node, "kernel_shape", kernel) or kernel
    strides = integers(node, "strides", ()) or (1,) * rank
    dilations = integers(node, "dilations", ()) or (1,) * rank
    pads = integers(node, "pads", ()) or (0,) * (2 * rank)
    if any(len(part) != rank for part in (kernel, strides, dilations)) or len(pads) != 2 * rank:
        raise malformed(node, f"its window does not have {rank} axes")
    if min((*strides, *dilations, *kernel), default=1) < 1:
        raise malformed(node, "its kernel, strides and dilations must be at least 1")
    mode = text(node, "auto_pad", "NOTSET")
    if mode == "VALID":
        pads = (0,) * (2 * rank)
    elif mode in ("SAME_UPPER", "SAME_LOWER"):
        totals = [_same(*axis) for axis in zip(spatial, kernel, strides, dilations, strict=True)]
        pads = shared(totals, upper=mode == "SAME_UPPER")
    elif mode not in ("NOTSET", ""):
        raise malformed(node, f"there is no auto_pad '{mode}'")
    return Window(kernel, strides, dilations, pads)


def shared(totals: list[int], upper: bool) -> tuple[int, ...]:
    """Padding before and behind; an odd one goes behind with ``upper``."""
    before = [n // 2 if upper else n - n // 2 for n in totals]
    return (*before, *(n - b for n, b in zip(totals, before, strict=True)))


def _same(extent: int, kernel: int, stride: int, dilation: int) -> int:
    """How much padding makes as many windows as there are strides in the extent."""
    count = -(-extent // stride)
    return max((count - 1) * stride + (kernel - 1) * dilation + 1 - extent, 0)
