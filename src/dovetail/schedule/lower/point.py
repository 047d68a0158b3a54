"""One point of a leaf: its indices, and which conditions remain to be asked there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dovetail.base.errors import PlanError
from dovetail.ir.index import Condition, Index
from dovetail.ir.interval import simplify
from dovetail.ir.plan import Leaf
from dovetail.schedule.lower.state import Span, State


class Here:
    """Indices at one point of a leaf after the other: substituted once, then moved along."""

    def __init__(self, bases: Mapping[str, Index]) -> None:
        self.bases = bases
        self.offsets: dict[str, int] = {}
        self.starts: dict[int, tuple[Index, Index]] = {}

    def move(self, rest: Mapping[str, Span], offsets: tuple[int, ...], leaf: Leaf) -> None:
        """To the point ``offsets`` iterations (lanes: vectors) into ``rest``."""
        steps = zip(rest, offsets, strict=True)
        self.offsets = {name: at * (leaf.width if name == leaf.lanes else 1) for name, at in steps if at}

    def index(self, index: Index) -> Index:
        """``index`` at this point; the object given must stay alive and the same."""
        if not index.is_affine:
            return index.substitute(self.values())
        start = self.starts.get(id(index))
        if start is None:
            start = self.starts[id(index)] = index, index.substitute(self.bases)
        moved = sum(c * self.offsets.get(str(name), 0) for name, c in index.terms) if self.offsets else 0
        return Index(start[1].terms, start[1].const + moved) if moved else start[1]

    def values(self) -> dict[str, Index]:
        """Every loop at this point."""
        moved = {name: self.bases[name] + at for name, at in self.offsets.items()}
        return {**self.bases, **moved}


def open_conditions(
    state: State, leaf: Leaf, rest: dict[str, Span], offsets: tuple[int, ...], here: Here
) -> tuple[Condition, ...] | None:
    """The conditions that remain to be asked at a point; None when the point is not there."""
    conditions = state.conditions.get(leaf.statement, ())
    found = [c for c in _first_lane(leaf, rest, offsets) if not state.always(c)]
    if not conditions or any(map(state.never, found)):
        return None if any(map(state.never, found)) else tuple(found)
    for condition in conditions:
        if leaf.width > 1 and leaf.lanes in condition.names():
            if not lanes_always(state, leaf, condition):
                raise PlanError(f"lanes over '{leaf.lanes}' cross the condition {condition}")
            continue
        moved = Condition(simplify(here.index(condition.index), state.ranges), condition.equal)
        if state.never(moved):
            return None
        if not state.always(moved):
            found.append(moved)
    return tuple(found)


def _first_lane(leaf: Leaf, rest: dict[str, Span], offsets: tuple[int, ...]) -> Iterator[Condition]:
    """Where only part of a tile exists: its first vector does, each further one only if its first lane does."""
    for (name, span), offset in zip(rest.items(), offsets, strict=True):
        if name == leaf.lanes and leaf.width > 1 and span.valid is not None and offset * leaf.width >= span.sure:
            yield Condition(span.valid - offset * leaf.width - 1)


def lanes_always(state: State, leaf: Leaf, condition: Condition) -> bool:
    """The condition holds for everything that is left of the leaf's loops."""
    found = state.condition_range(leaf.statement, condition)
    return found is not None and (found == (0, 0) if condition.equal else found[0] >= 0)
