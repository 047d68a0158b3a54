"""Statements as isl text: the points of their loops, the elements they touch.

A loop ``i`` is the variable ``v_i``, so that no name can be a word of isl's. Conditions and indices that data decides
are left out of domains: what is described then is every point that could be there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from dovetail.ir.index import Access, Condition, Index, Quotient
from dovetail.ir.interval import interval
from dovetail.ir.program import Loop, Program, Size, Statement


def variables(names: Iterable[str], mark: str = "") -> list[str]:
    return [f"v{mark}_{name}" for name in names]


def index_text(index: Index, marks: Mapping[str, str] | None = None) -> str:
    """``index`` in isl's words; ``marks`` tells apart several copies of one loop. There is no indirect read in it."""
    parts = [str(index.const)] if index.const or not index.terms else []
    for atom, factor in index.terms:
        if isinstance(atom, str):
            text = f"v{marks.get(atom, '') if marks else ''}_{atom}"
        else:
            assert not isinstance(atom, Access)
            inner = index_text(atom.index, marks)
            text = (
                f"floor(({inner})/{atom.divisor})" if isinstance(atom, Quotient) else f"(({inner}) mod {atom.divisor})"
            )
        parts.append(text if factor == 1 else f"{factor}*{text}")
    return " + ".join(parts)


def size_constraints(sizes: Iterable[Size]) -> list[str]:
    return [f"{s.low} <= v_{s.name} <= {s.high}" for s in sizes]


def loop_constraints(loops: Iterable[Loop], marks: Mapping[str, str] | None = None) -> list[str]:
    return [f"0 <= {index_text(_name(loop), marks)} < {index_text(loop.extent, marks)}" for loop in loops]


def condition_text(condition: Condition, marks: Mapping[str, str] | None = None) -> str:
    return f"{index_text(condition.index, marks)} {'=' if condition.equal else '>='} 0"


def static_conditions(statement: Statement) -> tuple[Condition, ...]:
    """The conditions that no data decides."""
    return tuple(c for c in statement.where if not is_indirect(c.index))


def is_indirect(index: Index) -> bool:
    return index.is_indirect


def domain(program: Program, statement: Statement, mark: str = "") -> list[str]:
    """Constraints on sizes (unmarked) and on all loops of ``statement`` (marked)."""
    marks = dict.fromkeys((loop.name for loop in statement.all_loops), mark)
    conditions = [condition_text(c, marks) for c in static_conditions(statement)]
    return [*size_constraints(program.sizes), *loop_constraints(statement.all_loops, marks), *conditions]


def element_constraints(
    access: Access, shape: Sequence[Index], elements: Sequence[str], marks: Mapping[str, str] | None = None
) -> list[str]:
    """``elements`` (variables) are the indices of ``access``; an indirect index can be anything in its dimension."""
    return [
        f"0 <= {e} < {index_text(extent)}" if is_indirect(index) else f"{e} = {index_text(index, marks)}"
        for e, index, extent in zip(elements, access.indices, shape, strict=True)
    ]


def loop_ranges(program: Program, statement: Statement) -> dict[str, tuple[int, int]]:
    """The values sizes and loops can take; a loop that may be empty counts as running once."""
    ranges = {size.name: (size.low, size.high) for size in program.sizes}
    for loop in statement.all_loops:
        found = interval(loop.extent, ranges)
        assert found is not None
        ranges[loop.name] = (0, max(0, found[1] - 1))
    return ranges


def _name(loop: Loop) -> Index:
    return Index(((loop.name, 1),))
