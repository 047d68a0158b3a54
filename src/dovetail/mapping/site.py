"""The places of a program where an instruction may fit: whole statements and the nodes of their values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import gcd

from dovetail.base.dtypes import DType
from dovetail.ir.expr import Apply, Read
from dovetail.ir.index import Access, Index
from dovetail.ir.program import Combine, Loop, Program, Statement
from dovetail.mapping.typed import Typed, typed

SIZE_PROBE = 1_000_003
"""Stands for a run-time size where strides are compared: far above any coefficient in use."""


@dataclass(frozen=True, slots=True)
class Haystack:
    """One statement prepared for search; ``value`` is its value, ``step`` the same joined to what is there already."""

    number: int
    statement: Statement
    value: Typed
    step: Typed | None
    loops: tuple[Loop, ...]
    """Loops that an instruction's may run over: those of ``for`` that run more than once."""
    extents: tuple[int, ...]
    """Their largest extents."""
    contents: dict[str, int]
    """For each of them the largest number that divides its extent, whatever the run-time sizes are."""
    dtypes: dict[str, DType]
    strides: dict[str, tuple[int, ...]]
    """Row-major element strides of each tensor, run-time sizes replaced by ``probes``."""
    probes: dict[str, int]
    sizes: tuple[tuple[str, int, int], ...]
    steps: dict[tuple[int, tuple[str, ...]], int | None] = field(default_factory=dict, compare=False, repr=False)
    """Distances between neighbours, by access (its id: accesses live as long as this) and loops run as one."""


@dataclass(frozen=True, slots=True)
class Site:
    """A place: the whole statement (``node`` is None and ``result`` what it writes) or a node of its value."""

    haystack: Haystack
    node: tuple[int, ...] | None
    value: Typed
    result: Access | None
    kinds: tuple[str, ...]
    """The kinds of forms that can stand here."""
    apart: dict[frozenset[str], bool] = field(default_factory=dict, compare=False, repr=False)
    """For sets of loops, whether elements of the result tell their points apart (filled during the search)."""


def haystacks(program: Program) -> Iterator[Haystack]:
    """Every statement of ``program``, in order."""
    probes = {size.name: SIZE_PROBE + 1010 * n for n, size in enumerate(program.sizes)}
    strides = {t.name: _strides(t.shape, probes) for t in program.tensors}
    sizes = tuple((size.name, size.low, size.high) for size in program.sizes)
    for number, statement in enumerate(program.statements):
        most = {loop.name: _most(loop.extent, program) for loop in statement.loops}
        value = typed(statement.value, program.dtypes, program.dtypes[statement.out.tensor])
        loops = tuple(loop for loop in statement.loops if most[loop.name] > 1)
        yield Haystack(
            number,
            statement,
            value,
            _step(statement, value),
            loops,
            tuple(most[loop.name] for loop in loops),
            {loop.name: gcd(loop.extent.const, *(c for _, c in loop.extent.terms)) for loop in loops},
            program.dtypes,
            strides,
            probes,
            sizes,
        )


def sites(haystack: Haystack) -> Iterator[Site]:
    """The places in a statement, the whole first, then nodes outermost first."""
    statement = haystack.statement
    whole_set = statement.combine is Combine.SET
    if whole_set:
        yield Site(haystack, None, haystack.value, statement.out, ("set", "chain", "once"))
    else:
        yield Site(haystack, None, haystack.value, statement.out, (f"reduce {statement.combine.value}",))
        assert haystack.step is not None
        yield Site(haystack, None, haystack.step, statement.out, ("self",))
    kinds = ("node", "chain", "once") if whole_set else ("node", "chain")
    for node in haystack.value.walk():
        if node.args and not (whole_set and node is haystack.value):
            yield Site(haystack, node.path, node, None, kinds)


def _step(statement: Statement, value: Typed) -> Typed | None:
    """``max(y[i], x[i, k])`` of ``y[i] max= x[i, k]``."""
    function = statement.combine.function
    if function is None:
        return None
    before = Typed(Read(statement.out), value.dtype, "read")
    return Typed(Apply(function, (before.expr, value.expr)), value.dtype, function, (before, value))


def _most(extent: Index, program: Program) -> int:
    total = extent.const
    ranges = {size.name: size for size in program.sizes}
    for atom, c in extent.terms:
        if isinstance(atom, str):
            total += c * (ranges[atom].high if c > 0 else ranges[atom].low)
    if extent.is_affine:
        return total
    return extent.evaluate({size.name: size.high for size in program.sizes})


def _strides(shape: tuple[Index, ...], probes: dict[str, int]) -> tuple[int, ...]:
    found: list[int] = []
    stride = 1
    for extent in reversed(shape):
        found.append(stride)
        stride *= extent.evaluate(probes)
    return tuple(reversed(found))
