"""What the sizes in a term must satisfy besides being equal: windows that fit, elements that exist."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dovetail.ir.functional.sizes import is_solved, product
from dovetail.ir.functional.term import Pattern, Places
from dovetail.ir.index import Index, constant
from dovetail.ir.interval import Ranges, interval


@dataclass(frozen=True, slots=True)
class Fact:
    """``index >= 0``, or ``what`` is wrong; ``why`` has ``shown`` in it as ``{}``."""

    index: Index
    what: str
    why: str
    shown: Index
    hint: str | None = None


def fails(index: Index, ranges: Ranges) -> bool:
    """Whether ``index`` is negative for some value of the sizes; not where nothing is known of them."""
    if not is_solved(index):
        return False
    found = (index.const, index.const) if index.is_constant else interval(index, ranges)
    return found is not None and found[0] < 0


def too_small(term: Pattern, sizes: Mapping[str, Index]) -> str | None:
    """Which setting of a pattern is a number that it cannot be; ``sizes`` are its settings as its scheme names them."""
    for name, least in _LEAST.get(term.name, {}).items():
        value = sizes.get(f"?{name}")
        if value is not None and value.is_constant and value.const < least:
            return f"'{name}' of {term.name} is {value}, at least {least} is needed"
    return None


def setting_facts(term: Pattern, sizes: Mapping[str, Index]) -> Iterator[Fact]:
    """What the settings of a pattern with a scheme must satisfy; ``sizes`` are those of its scheme."""
    if term.name == "slide":
        m, n = sizes["?m"], sizes["?n"]
        yield Fact(m - n, f"windows of {n} elements do not fit", "there are {} elements", m, "pad the data first")
    if term.name == "slice" and sizes["?count"] != constant(0):
        last, m = sizes["?start"] + product(sizes["?count"] - 1, sizes["?step"]), sizes["?m"]
        yield Fact(m - 1 - last, f"element {last} does not exist", "there are {} elements", m)


def place_facts(places: Places, sizes: tuple[Index, ...], ranges: Ranges) -> Iterator[Fact]:
    """That the elements at ``places`` exist where no condition is there to say so; ``sizes`` are the array's.

    Nothing is said where a loop may be empty.
    """
    extents = [interval(loop.extent, ranges) for loop in places.loops]
    if places.where or any(extent is None or extent[0] < 1 for extent in extents):
        return
    last = {loop.name: loop.extent - 1 for loop in places.loops}
    hint = "a condition: [loops where condition: indices]"
    for number, (index, size) in enumerate(zip(places.indices, sizes, strict=True)):
        if not index.is_affine:
            continue
        least, most = (
            index.substitute({n: end if (index.coefficient(n) > 0) == up else constant(0) for n, end in last.items()})
            for up in (False, True)
        )
        what, why = f"index {index} of dimension {number}", "the size is {}"
        yield Fact(least, f"{what} begins at {least}", why, size, hint)
        yield Fact(size - 1 - most, f"{what} reaches {most}", why, size, hint)


_LEAST = {
    "slide": {"n": 1, "step": 1},
    "split": {"n": 1},
    "pad": {"left": 0, "right": 0},
    "iota": {"n": 0},
    "repeat": {"n": 0},
    "slice": {"start": 0, "count": 0, "step": 1},
}
