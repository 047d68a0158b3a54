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
    """``index >= 0``, or ``what`` is wrong, and ``why``: text with the value of ``index`` in it as ``{}``."""

    index: Index
    what: str
    why: str
    hint: str | None = None


def failed(fact: Fact, index: Index, ranges: Ranges) -> str | None:
    """Why ``index >= 0`` is not so for some value in ``ranges``; None where it is so, or nothing is known."""
    if not is_solved(index):
        return None
    found = (index.const, index.const) if index.is_constant else interval(index, ranges)
    if found is None or found[0] >= 0:
        return None
    return fact.why.format(index if not index.is_constant else index.const)


def setting_facts(term: Pattern, sizes: Mapping[str, Index]) -> Iterator[Fact]:
    """What the settings of a pattern with a scheme must satisfy; ``sizes`` are those of its scheme."""
    for name, least in _LEAST.get(term.name, {}).items():
        if f"?{name}" in sizes:
            what = f"'{name}' of {term.name} is {sizes[f'?{name}']}"
            yield Fact(sizes[f"?{name}"] - least, what, f"it must be {least} or more")
    if term.name == "slide":
        m, n = sizes["?m"], sizes["?n"]
        yield Fact(
            m - n, f"windows of {n} elements do not fit", "there are {} elements left over", "pad the data first"
        )
    if term.name == "slice":
        last = sizes["?start"] + product(sizes["?count"] - 1, sizes["?step"])
        if not sizes["?count"].is_constant or sizes["?count"].const > 0:
            yield Fact(sizes["?m"] - 1 - last, f"element {last} does not exist", "the last element lies {} beyond")


def place_facts(places: Places, sizes: tuple[Index, ...], ranges: Ranges) -> Iterator[Fact]:
    """That the elements at ``places`` exist where no condition is there to say so; ``sizes`` are the array's."""
    if places.where:
        return
    loops = {**ranges}
    for loop in places.loops:
        extent = interval(loop.extent, ranges)
        if extent is None:
            return
        loops[loop.name] = (0, max(0, extent[1] - 1))
    for number, (index, size) in enumerate(zip(places.indices, sizes, strict=True)):
        found = interval(index, loops)
        if found is None or not index.is_affine:
            continue
        hint = "a condition: [loops where condition: indices]"
        what = f"index {index} of dimension {number}"
        yield Fact(constant(found[0]), what, f"it begins at {found[0]}", hint)
        if not index.names() & ranges.keys():
            yield Fact(size - 1 - found[1], what, f"it reaches {found[1]}, the size is {size}", hint)


_LEAST = {
    "slide": {"n": 1, "step": 1},
    "split": {"n": 1},
    "pad": {"left": 0, "right": 0},
    "iota": {"n": 0},
    "repeat": {"n": 0},
    "slice": {"start": 0, "count": 0, "step": 1},
}
