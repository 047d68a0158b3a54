"""Windows that slide over the spatial axes of ``x[n, c, ...]``: where each reads, and when it is inside.

extent 56, kernel 3, stride 1, one of padding on both sides:  p + r - 1  where p + r >= 1, p + r < 57
"""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.base.errors import OperatorError
from dovetail.ir.graph.operator import Ints
from dovetail.ir.index import Index, constant, variable
from dovetail.ops.text import Grid

OUT_LOOPS, TAP_LOOPS = ("o", "p", "q"), ("t", "r", "s")
_RANKS = (1, 2, 3)


@dataclass(frozen=True, slots=True)
class Slide:
    """One spatial axis: its extent and how the window moves along it."""

    extent: Index
    kernel: Index
    stride: int
    dilation: int
    before: int
    after: int
    out: str
    """The loop over windows."""
    tap: str
    """The loop over places in the window."""

    @property
    def place(self) -> Index:
        """Where a window reads, in the axis of the input."""
        return variable(self.out) * self.stride + variable(self.tap) * self.dilation - self.before

    def count(self, ceil: bool = False) -> Index:
        """How many windows there are; with ``ceil`` a last one may reach past the padding, if it starts before it."""
        room = self.extent + (self.before + self.after - 1) - (self.kernel - 1) * self.dilation
        if room.is_constant and room.const < 0:
            raise OperatorError(
                f"a window of {self.kernel} does not fit an axis of {self.extent}",
                why=f"dilation {self.dilation}, padding {self.before} before and {self.after} behind",
            )
        if not ceil:
            return room // self.stride + 1
        found = (room + (self.stride - 1)) // self.stride + 1
        if not found.is_constant:
            raise OperatorError(f"a run-time extent, {self.extent}, cannot be rounded up", hint="ceil_mode = 0")
        beyond = (found.const - 1) * self.stride - (self.extent.const + self.before) >= 0
        return found - 1 if beyond else found

    def inside(self, count: Index, low: int = 0, high: int = 0) -> tuple[str, ...]:
        """Conditions under which the place is in the axis, or at most ``low`` before and ``high`` behind it."""
        place = self.place
        found = [f"{place} >= {-low}"] if self.before > low else []
        last = (count - 1) * self.stride + (self.kernel - 1) * self.dilation - self.before - self.extent - high
        surely = last.const < 0 if last.is_constant else self.after <= high
        return (*found,) if surely else (*found, f"{place} < {self.extent + high}")


def slides(
    spatial: tuple[Index, ...], kernel: tuple[Index, ...], strides: Ints, pads: Ints, dilations: Ints
) -> list[Slide]:
    """One for each spatial axis; strides and dilations are 1 and pads 0 where they are not given."""
    rank = len(spatial)
    if rank not in _RANKS:
        raise OperatorError(f"windows over {rank} spatial axes", why=f"there are {_listed()} of them")
    if len(kernel) != rank:
        raise OperatorError(f"a window of {len(kernel)} axes over {rank} spatial axes")
    steps, gaps = (_each(n, v, rank, 1) for n, v in (("strides", strides), ("dilations", dilations)))
    around = _each("pads", pads, 2 * rank, 0)
    if min((*steps, *gaps)) < 1:
        raise OperatorError(f"strides {steps} and dilations {gaps} must be at least 1")
    if min(around) < 0:
        raise OperatorError(f"pads {around} cannot be negative", hint="slice first")
    names = zip(OUT_LOOPS[-rank:], TAP_LOOPS[-rank:], strict=True)
    return [
        Slide(spatial[k], kernel[k], steps[k], gaps[k], around[k], around[k + rank], *pair)
        for k, pair in enumerate(names)
    ]


def extents(kernel: Ints) -> tuple[Index, ...]:
    if not kernel or min(kernel) < 1:
        raise OperatorError(f"kernel {kernel} must have extents of at least 1")
    return tuple(map(constant, kernel))


def taps(parts: list[Slide]) -> Grid:
    return Grid(tuple(part.tap for part in parts), tuple(part.kernel for part in parts))


def places(parts: list[Slide]) -> str:
    return ", ".join(str(part.place) for part in parts)


def _each(name: str, values: Ints, wanted: int, default: int) -> Ints:
    if values and len(values) != wanted:
        raise OperatorError(f"{name} {values} must be {wanted} number{'' if wanted == 1 else 's'}")
    return values or (default,) * wanted


def _listed() -> str:
    return ", ".join(map(str, _RANKS))
