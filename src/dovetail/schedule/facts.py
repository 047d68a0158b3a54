"""What a planner wants to know about a statement, in plain numbers."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from dovetail.ir.expr import Apply, Cast, Position, Read, walk
from dovetail.ir.index import Access, Index
from dovetail.ir.program import Combine, Program, Role, Statement
from dovetail.schedule.lower.state import row_major


@dataclass(frozen=True, slots=True)
class Use:
    """One access of a statement. ``strides``: elements between neighbours along each loop; None: not affine in it.

    A constant whose shape is known at run time only counts as an input."""

    access: Access
    strides: dict[str, int | None]
    dims: tuple[tuple[tuple[str, int], ...], ...]
    """Per dimension: the loops that move along it, and by how much."""
    bytes: int
    role: Role
    dtype: str

    def stride(self, loop: str) -> int | None:
        return self.strides.get(loop, 0)


@dataclass(frozen=True, slots=True)
class Facts:
    """A statement and its numbers. Run-time extents count as their likely value, and are listed in ``dynamic``."""

    number: int
    statement: Statement
    extents: dict[str, int]
    dynamic: frozenset[str]
    guarded: frozenset[str]
    """Loops in a condition."""
    out: Use
    reads: tuple[Use, ...]
    uncountable: frozenset[str]
    """Loops that cannot be lanes: they index indirectly, by quotient, or appear as values."""
    kept: tuple[str, ...]
    """Loops of the output."""
    reduced: tuple[str, ...]
    panels: frozenset[tuple[int, str]]
    """(read, loop): the read can be laid out in panels along the loop, where results are sums."""
    is_contraction: bool
    """A sum of products of two elements."""

    def elements(self, use: Use) -> int:
        """What an access touches, each element of a window as often as it is in one."""
        return prod(self.extents[n] for n in use.strides if n in self.extents)

    @property
    def is_plain(self) -> bool:
        """Every output element belongs to one point of the kept loops, so it can be held while reducing."""
        seen: set[str] = set()
        for index in self.statement.out.indices:
            if not index.is_affine or any(True for _ in index.reads()):
                return False
            loops = sorted((index.coefficient(n), n) for n in index.names() if n in self.extents)
            if {n for _, n in loops} & seen or not self._digits(loops):
                return False
            seen |= {n for _, n in loops}
        return True

    def _digits(self, loops: list[tuple[int, str]]) -> bool:
        """Every sum of these multiples has only one reading, as digits of a number have."""
        reach = 1
        for c, name in loops:
            if c < reach:
                return False
            reach = c * max(1, self.extents[name])
        return len(loops) < 2 or not self.dynamic & {n for _, n in loops}

    @property
    def points(self) -> int:
        total = 1
        for extent in self.extents.values():
            total *= extent
        return total


def facts_of(program: Program, number: int) -> Facts:
    statement = program.statements[number]
    highs = {s.name: s.likely for s in program.sizes}
    extents = {loop.name: max(1, loop.extent.evaluate(highs)) for loop in statement.loops}
    dynamic = frozenset(loop.name for loop in statement.loops if not loop.extent.is_constant)
    guarded = frozenset().union(*(c.names() for c in statement.where)) & frozenset(extents)
    reads = tuple(_use(program, a, extents, highs) for a in statement.reads())
    out = _use(program, statement.out, extents, highs)
    hard = {n for use in (out, *reads) for n, s in use.strides.items() if s is None}
    for node in walk(statement.value):
        if isinstance(node, Position) and not node.index.is_affine:
            hard |= node.index.names()
    used = statement.out.names()
    summed = statement.combine is not Combine.SET
    return Facts(
        number,
        statement,
        extents,
        dynamic,
        guarded,
        out,
        reads,
        frozenset(hard),
        tuple(loop.name for loop in statement.loops if loop.name in used),
        tuple(loop.name for loop in statement.loops if loop.name not in used),
        frozenset(
            (n, loop)
            for n in range(len(reads) if summed else 0)
            for loop in extents
            if _packable(reads, out, guarded, dynamic, n, loop)
        ),
        is_contraction(statement),
    )


def is_contraction(statement: Statement) -> bool:
    """Whether a statement sums up products of two elements."""
    value = statement.value
    if statement.combine is not Combine.ADD or not isinstance(value, Apply) or value.function != "mul":
        return False
    return all(isinstance(a, Read) or (isinstance(a, Cast) and isinstance(a.arg, Read)) for a in value.args)


def _packable(
    reads: tuple[Use, ...], out: Use, guarded: frozenset[str], dynamic: frozenset[str], number: int, loop: str
) -> bool:
    """The loop alone walks one dimension of the read, and nothing about it is guarded."""
    use = reads[number]
    indices = use.access.indices
    once = sum(u.access.tensor == use.access.tensor for u in (*reads, out)) == 1
    if not once or sum(loop in i.names() for i in indices) != 1:
        return False
    plain = all(i.is_affine and len(i.terms) <= 1 and (i.const == 0 or use.role is not Role.CONST) for i in indices)
    if any(c != 1 and name in dynamic for i in indices for name, c in i.terms):
        return False
    return plain and (use.role is Role.CONST or not any(guarded & i.names() for i in indices))


def _use(program: Program, access: Access, extents: dict[str, int], sizes: dict[str, int]) -> Use:
    tensor = program.tensor(access.tensor)
    steps = [_number(s, sizes) for s in row_major(tensor.shape)]
    strides: dict[str, int | None] = {}
    for index, step in zip(access.indices, steps, strict=True):
        for name in index.names() & frozenset(extents):
            c = index.coefficient(name)
            nested = name in (index - Index(((name, c),)) if c else index).names()
            nested |= c * (step or 0) != 1 and any(True for _ in index.reads())
            before = strides.get(name, 0)
            known = not nested and step is not None and before is not None
            strides[name] = before + c * step if known and before is not None and step is not None else None
    fixed = tensor.role is not Role.CONST or all(extent.is_constant for extent in tensor.shape)
    dims = tuple(tuple((n, i.coefficient(n)) for n in i.names() if i.coefficient(n)) for i in access.indices)
    return Use(access, strides, dims, tensor.dtype.bytes, tensor.role if fixed else Role.IN, tensor.dtype.name)


def _number(index: Index | None, sizes: dict[str, int]) -> int | None:
    return None if index is None else index.evaluate(sizes)
