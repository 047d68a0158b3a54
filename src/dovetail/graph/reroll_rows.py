"""An unrolled loop as rows: one node of its body, at every step. Rows are grown upwards from one that is known.

    step 0              step 1              step 2             row 0: (a0, a1, a2)    operand 0: carried from row 2
    a0 = matmul(h, r)   a1 = matmul(n0, r)  a2 = matmul(n1, r)                        operand 1: shared, r
    b0 = add(a0, x0)    b1 = add(a1, x1)    b2 = add(a2, x2)   row 1: (b0, b1, b2)    inside, row 0; cut from x
    n0 = tanh(b0)       n1 = tanh(b1)       n2 = tanh(b2)      row 2: (n0, n1, n2)    inside, row 1

What a row reads is one of four: the same value at every step; a part of one tensor, or one of several values, that
belongs to the step; what a row makes at the same step; what a row made one step before, and a first value. Where steps
part, ``Parted`` says what and where.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TypeVar

from dovetail.graph.reroll_cut import Cut, CutRow, Cuts
from dovetail.graph.reroll_same import Same
from dovetail.graph.sheet import Sheet
from dovetail.ir.graph.graph import Node

MOST_ROWS = 1024
_NEARBY = 256
_LARGEST_CONSTANT = 64
"""Elements of a constant that may differ from step to step: numbers of steps, not weights of layers."""
T = TypeVar("T")
Stack = tuple[str | None, ...]
"""Values of their own for each step; None at the last ones, as long as nothing is known to read them."""


class Kind(Enum):
    """Where an operand comes from."""

    SHARED = "shared"
    SCANNED = "scanned"
    CARRIED = "carried"
    INSIDE = "inside"


@dataclass(frozen=True, slots=True)
class Source:
    """``number`` counts shared, scanned or carried values, or rows, of which it is one of the results."""

    kind: Kind
    number: int
    result: int = 0


@dataclass(frozen=True, slots=True)
class Carry:
    """A state: what ``row`` made one step before, and ``first`` at the first step."""

    row: int
    result: int
    first: str


@dataclass(frozen=True, slots=True)
class Parted:
    """Why steps are not alike, and from which step on."""

    why: str
    step: int = 0


@dataclass
class Rows:
    """All rows, as far as they are known. A node is known by its first result; the last ones of a row may not exist:
    nothing needs what they would make."""

    steps: int
    rows: list[list[str | None]] = field(default_factory=list)
    operands: list[list[Source]] = field(default_factory=list)
    shared: list[str] = field(default_factory=list)
    scanned: list[CutRow | Stack] = field(default_factory=list)
    carried: list[Carry] = field(default_factory=list)
    home: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    """Of each node: its rows and steps. What two states that begin alike are made into at first is in two rows."""

    def add(self, nodes: Sequence[str | None]) -> int:
        number = len(self.rows)
        self.rows.append(list(nodes))
        for step, key in enumerate(nodes):
            if key is not None:
                self.home.setdefault(key, []).append((number, step))
        return number

    def fill(self, row: int, step: int, key: str) -> None:
        self.rows[row][step] = key
        self.home.setdefault(key, []).append((row, step))


class Growth:
    """Rows around ``anchors``, one node for each step."""

    def __init__(self, sheet: Sheet, cuts: Cuts, same: Same, anchors: Sequence[Node]) -> None:
        self.sheet, self.cuts, self.same = sheet, cuts, same
        self.anchors = [node.results[0] for node in anchors]
        self.found = Rows(len(anchors))
        self._outside: set[tuple[str, ...]] = set()
        self._marks = frozenset(self.anchors)
        self._first = min(map(same.place, self.anchors))
        self._dependent: set[str] | None = None

    def grow(self) -> Rows | Parted:
        """Every row that the anchors need. A row that does not depend on them and leads nowhere stays outside."""
        while True:
            self.found = Rows(len(self.anchors))
            self.found.add(self.anchors)
            parted = self._rows()
            if parted is None:
                return self.found
            if isinstance(parted, Parted):
                return parted
            self._outside.add(parted)

    def _rows(self) -> Parted | tuple[str, ...] | None:
        """What parted, or the nodes of a row that should not have been one."""
        number = 0
        while number < len(self.found.rows):
            nodes = self.found.rows[number]
            real = [self.sheet.nodes[key] for key in nodes if key is not None]
            found: list[Source] = []
            for place in range(len(real[0].operands)):
                source = self._source([node.operands[place] for node in real])
                if isinstance(source, Parted):
                    alone = all(self.is_free(node.results[0]) for node in real)
                    return tuple(node.results[0] for node in real) if alone else source
                found.append(source)
            self.found.operands.append(found)
            number += 1
            if len(self.found.rows) > MOST_ROWS:
                return Parted(f"more than {MOST_ROWS} nodes in a step")
        return None

    def _source(self, values: Sequence[str]) -> Source | Parted:
        """Where what is read at each of the first steps comes from."""
        self.same.looked += len(values)
        if len(values) < 2:
            return self._alone(values[0])
        if len(set(values)) == 1:
            return self._numbered(Kind.SHARED, self.found.shared, values[0])
        if (known := self._known(values)) is not None:
            return known
        if (row := self._cut_row(values)) is not None:
            return self._numbered(Kind.SCANNED, self.found.scanned, row)
        forms = [self._form(value) for value in values]
        keys = tuple(node.results[0] for value in values if (node := self.sheet.maker(value)) is not None)
        if forms[0] is not None and len(set(forms)) == 1 and keys not in self._outside and self._is_new(keys):
            return Source(Kind.INSIDE, self.found.add(self._padded(keys)), forms[0][1])
        later = keys[1 - len(values) :]
        alike = forms[1] is not None and len(set(forms[1:])) == 1
        if forms[1] is not None and alike and later not in self._outside and self._is_new(later):
            return self._carried(self.found.add(self._padded(later)), forms[1][1], values[0])
        if all(map(self.is_free, values)):
            return self._stacked(values)
        marks = [(form, self._made(value) in self.found.home) for form, value in zip(forms, values, strict=True)]
        step = next((t for t in range(2, len(values)) if marks[t] != marks[1]), 1)
        return Parted(_difference(self.sheet, values, step), step)

    def _alone(self, value: str) -> Source | Parted:
        """Where one step alone says what is read: something that is known."""
        node = self.sheet.maker(value)
        for row, step in [] if node is None else self.found.home.get(node.results[0], []):
            if step == 0 and node is not None:
                return Source(Kind.INSIDE, row, node.results.index(value))
        if value in self.found.shared:
            return Source(Kind.SHARED, self.found.shared.index(value))
        return Parted("too few steps")

    def _known(self, values: Sequence[str]) -> Source | None:
        """Rows that are there: at the same step, or one step before."""
        node = self.sheet.maker(values[1])
        for row, step in [] if node is None else self.found.home.get(node.results[0], []):
            assert node is not None
            result, nodes = node.results.index(values[1]), self.found.rows[row]
            if step == 1 and self._agree(values, nodes, result):
                for t, key in enumerate(nodes[: len(values)]):
                    if key is None:
                        self.found.fill(row, t, self._made(values[t]))
                return Source(Kind.INSIDE, row, result)
            if step == 0 and self._agree(values[1:], nodes, result):
                return self._carried(row, result, values[0])
        return None

    def _agree(self, values: Sequence[str], nodes: Sequence[str | None], result: int) -> bool:
        """Whether the nodes make the values; one that is not known may become the maker of a value."""
        first = self.sheet.nodes[nodes[0] or ""]
        for value, key in zip(values, nodes, strict=False):
            made = self.sheet.maker(value)
            if made is None or value not in made.results or made.results.index(value) != result:
                return False
            if key is not None and made.results[0] != key:
                return False
            if key is None and self.same.form(made) != self.same.form(first):
                return False
        return True

    def _cut_row(self, values: Sequence[str]) -> CutRow | None:
        row = self.cuts.row(values)
        extents = None if row is None else self.sheet.shape(row.source)
        if row is None or extents is None or not row.fits(extents[row.axis], self.found.steps):
            return None
        return replace(row, count=self.found.steps)

    def _stacked(self, values: Sequence[str]) -> Source | Parted:
        arrays = [array for value in values if (array := self.sheet.array(value)) is not None]
        if max((array.size for array in arrays), default=0) > _LARGEST_CONSTANT:
            return Parted(f"each step reads a constant of its own, {self.sheet.shown(values[0])} the first")
        for step, value in enumerate(values):
            if self.sheet.types[value] != self.sheet.types[values[0]]:
                return Parted(_difference(self.sheet, values, step), max(step, 1))
        return self._numbered(Kind.SCANNED, self.found.scanned, tuple(self._padded(values)))

    def _carried(self, row: int, result: int, first: str) -> Source:
        return self._numbered(Kind.CARRIED, self.found.carried, Carry(row, result, first))

    def _numbered(self, kind: Kind, known: list[T], one: T) -> Source:
        if one not in known:
            known.append(one)
        return Source(kind, known.index(one))

    def _padded(self, keys: Sequence[str]) -> list[str | None]:
        return [*keys, *[None] * (self.found.steps - len(keys))]

    def is_free(self, value: str) -> bool:
        """Whether ``value`` is none that the anchors lead to."""
        near = _leads_to(self.sheet, self.same, self._marks, self._first, value)
        if near is None:
            if self._dependent is None:
                self._dependent = _readers_of(self.sheet, self.anchors)
                self.same.looked += len(self._dependent) // 4
            near = self._made(value) in self._dependent
        return not near

    def _form(self, value: str) -> tuple[int, int] | None:
        node = self.sheet.maker(value)
        if node is None or not self.same.repeats(node):
            return None
        return self.same.form(node), node.results.index(value)

    def _made(self, value: str) -> str:
        node = self.sheet.maker(value)
        return "" if node is None else node.results[0]

    def _is_new(self, keys: Sequence[str]) -> bool:
        return len(set(keys)) == len(keys) and not any(key in self.found.home for key in keys[1:])


def complete(growth: Growth, rows: Rows) -> None:
    """Nodes of the last steps found by what they read."""
    changed = True
    while changed:
        changed = False
        for number, nodes in enumerate(rows.rows):
            for step in (step for step, key in enumerate(nodes) if key is None):
                key = _missing(growth, rows, number, step)
                if key is not None:
                    rows.fill(number, step, key)
                    _fill_stacks(growth, rows, number, step)
                    changed = True


def extended(growth: Growth, rows: Rows) -> bool:
    """One step more at the end, where there are nodes for it that read what it would read."""
    before = list(rows.scanned)
    for scanned in before:
        extents = growth.sheet.shape(scanned.source) if isinstance(scanned, CutRow) else None
        if isinstance(scanned, CutRow) and (extents is None or not scanned.fits(extents[scanned.axis], rows.steps + 1)):
            return False
    rows.scanned[:] = [replace(s, count=s.count + 1) if isinstance(s, CutRow) else (*s, None) for s in before]
    rows.steps += 1
    for nodes in rows.rows:
        nodes.append(None)
    complete(growth, rows)
    if _is_mostly_there(rows):
        return True
    shorten(rows)
    return False


def shorten(rows: Rows) -> None:
    """One step less at the end."""
    rows.steps -= 1
    rows.scanned[:] = [replace(s, count=s.count - 1) if isinstance(s, CutRow) else s[:-1] for s in rows.scanned]
    for number, nodes in enumerate(rows.rows):
        key = nodes.pop()
        if key is not None:
            rows.home[key].remove((number, rows.steps))
            if not rows.home[key]:
                del rows.home[key]


def trimmed(rows: Rows, least: int) -> None:
    """Without a last step of which most would be computed for nothing."""
    while rows.steps > least and not _is_mostly_there(rows):
        shorten(rows)


def _is_mostly_there(rows: Rows) -> bool:
    """Whether at least half of the nodes of the last step exist."""
    return 2 * sum(nodes[-1] is not None for nodes in rows.rows) >= len(rows.rows)


def verified(growth: Growth, rows: Rows) -> Parted | None:
    """Every operand of every node looked at once more; None where all is as the rows say."""
    for number, nodes in enumerate(rows.rows):
        first = growth.same.form(growth.sheet.nodes[nodes[0] or ""])
        for step, key in enumerate(nodes):
            if key is None:
                continue
            node = growth.sheet.nodes[key]
            fits = growth.same.form(node) == first and len(node.operands) == len(rows.operands[number])
            if not fits or not _reads_so(growth, rows, number, step, node):
                what = f"{node.op} of {growth.sheet.shown(key)} is not what it is at other steps"
                return Parted(what, step)
    return None


def _reads_so(growth: Growth, rows: Rows, number: int, step: int, node: Node) -> bool:
    return all(
        _is_read(growth, rows, source, step, value)
        for source, value in zip(rows.operands[number], node.operands, strict=True)
    )


def _is_read(growth: Growth, rows: Rows, source: Source, step: int, value: str) -> bool:
    """Whether ``source`` is ``value`` at ``step``."""
    if source.kind is Kind.SHARED:
        return rows.shared[source.number] == value
    if source.kind is Kind.SCANNED:
        scanned = rows.scanned[source.number]
        if not isinstance(scanned, CutRow):
            wanted = scanned[step]
            like = growth.sheet.types[scanned[0] or ""]
            return value == wanted or (wanted is None and growth.is_free(value) and growth.sheet.types[value] == like)
        start = scanned.start + step * scanned.stride
        return growth.cuts.of(value) == Cut(scanned.source, scanned.axis, start, scanned.width)
    return value == _value(growth, rows, source, step)


def _value(growth: Growth, rows: Rows, source: Source, step: int) -> str | None:
    """What a row makes, or what is carried; None where the node is not there."""
    row, result = source.number, source.result
    if source.kind is Kind.CARRIED:
        carry = rows.carried[source.number]
        row, result = carry.row, carry.result
        if step == 0:
            return carry.first
        step -= 1
    key = rows.rows[row][step]
    return None if key is None else growth.sheet.nodes[key].results[result]


def _missing(growth: Growth, rows: Rows, number: int, step: int) -> str | None:
    """The node that belongs at ``step`` of a row, among the readers of what it should read."""
    first = growth.sheet.nodes[rows.rows[number][0] or ""]
    form = growth.same.form(first)
    sources = [s for s in rows.operands[number] if s.kind in (Kind.INSIDE, Kind.CARRIED)]
    shared = [rows.shared[s.number] for s in rows.operands[number] if s.kind is Kind.SHARED]
    values = [_value(growth, rows, s, step) for s in sources]
    if None in values:
        return None
    for value in (*values, *shared)[:1]:
        for node in growth.sheet.readers(value or ""):
            fresh = node.results[0] not in rows.home and growth.same.form(node) == form
            if fresh and _reads_so(growth, rows, number, step, node):
                return node.results[0]
    return None


def _fill_stacks(growth: Growth, rows: Rows, number: int, step: int) -> None:
    """What a node that has been found reads, where that was open."""
    node = growth.sheet.nodes[rows.rows[number][step] or ""]
    for source, value in zip(rows.operands[number], node.operands, strict=True):
        scanned = rows.scanned[source.number] if source.kind is Kind.SCANNED else None
        if isinstance(scanned, tuple) and scanned[step] is None:
            rows.scanned[source.number] = (*scanned[:step], value, *scanned[step + 1 :])


def _leads_to(sheet: Sheet, same: Same, wanted: frozenset[str], first: int, value: str) -> bool | None:
    """Whether one of these nodes is needed for ``value``; None where that is not to be seen nearby."""
    seen, waiting = {value}, deque((value,))
    while waiting and len(seen) < _NEARBY:
        node = sheet.maker(waiting.popleft())
        if node is not None and node.results[0] in wanted:
            return True
        if node is None or same.place(node.results[0]) < first:
            continue
        for name in node.operands:
            if name not in seen:
                seen.add(name)
                waiting.append(name)
    same.looked += len(seen) // 4
    return None if waiting else False


def _readers_of(sheet: Sheet, keys: Sequence[str]) -> set[str]:
    """These nodes, and all that depend on them."""
    found, waiting = set(keys), list(keys)
    while waiting:
        for result in sheet.nodes[waiting.pop()].results:
            for reader in sheet.readers(result):
                if reader.results[0] not in found:
                    found.add(reader.results[0])
                    waiting.append(reader.results[0])
    return found


def _difference(sheet: Sheet, values: Sequence[str], step: int) -> str:
    """What is read at ``step``, and what before it."""
    here, before = (_made_by(sheet, values[t]) for t in (step, max(step - 1, 0)))
    return f"step {step} reads {here}, the step before {before}"


def _made_by(sheet: Sheet, value: str) -> str:
    node = sheet.maker(value)
    return sheet.shown(value) if node is None else f"{sheet.shown(value)}, made by {node.op}"
