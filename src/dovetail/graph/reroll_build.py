"""Rows of an unrolled loop as one ``scan``, and everything outside that read a step reads the scan.

The states that others read are its last values, or parts of what it stacks; a ``concat`` of all steps is the stack.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dovetail.graph.reroll_cut import CutRow, Cuts, joined, stacked, viewed
from dovetail.graph.reroll_rows import Kind, Rows, Source
from dovetail.graph.roles import VIEWS
from dovetail.graph.sheet import Sheet
from dovetail.ir.graph.graph import SCAN, Graph, Node, Type, Value


@dataclass(frozen=True, slots=True)
class Use:
    """A value of a step that something outside reads."""

    row: int
    result: int
    step: int
    value: str


def uses_outside(sheet: Sheet, rows: Rows) -> list[Use]:
    """All of them, row by row."""
    inside = set(rows.home)
    return [
        Use(number, result, step, value)
        for number, nodes in enumerate(rows.rows)
        for step, key in enumerate(nodes)
        if key is not None
        for result, value in enumerate(sheet.nodes[key].results)
        if value in sheet.outputs or any(reader.results[0] not in inside for reader in sheet.readers(value))
    ]


def outer_values(rows: Rows) -> Iterator[str]:
    """Everything that the scan will read."""
    yield from rows.shared
    yield from (carry.first for carry in rows.carried)
    for scanned in rows.scanned:
        yield from (scanned.source,) if isinstance(scanned, CutRow) else (v for v in scanned if v is not None)


def roll(sheet: Sheet, cuts: Cuts, rows: Rows) -> Node:
    """The ``scan``; nodes of the steps that nothing needs any more are gone."""
    backwards = bool(rows.scanned) and all(isinstance(s, CutRow) and s.stride < 0 for s in rows.scanned)
    uses = uses_outside(sheet, rows)
    last = {(carry.row, carry.result): k for k, carry in reversed(list(enumerate(rows.carried)))}
    stacks = list(dict.fromkeys((u.row, u.result) for u in uses if not _is_last(rows, u, last)))
    body = _body(sheet, rows, stacks)
    operands = (
        *(carry.first for carry in rows.carried),
        *(scanned_value(sheet, cuts, rows, number, backwards) for number in range(len(rows.scanned))),
        *rows.shared,
    )
    attributes: dict[str, int] = {"carried": len(rows.carried), "scanned": len(rows.scanned)}
    if not rows.scanned:
        attributes["steps"] = rows.steps
    if backwards:
        attributes["reverse"] = 1
    results = tuple(_free_names(sheet, len(rows.carried) + len(stacks)))
    node = Node(SCAN, operands, results, tuple(sorted(attributes.items())), (body,))
    sheet.insert(node)
    _lead_out(sheet, rows, uses, last, dict(zip(stacks, results[len(rows.carried) :], strict=True)), results, backwards)
    return node


def _is_last(rows: Rows, use: Use, last: dict[tuple[int, int], int]) -> bool:
    return use.step == rows.steps - 1 and (use.row, use.result) in last


def _body(sheet: Sheet, rows: Rows, stacks: Sequence[tuple[int, int]]) -> Graph:
    first = [sheet.nodes[nodes[0] or ""] for nodes in rows.rows]
    inputs = [Value(f"h{k}", sheet.types[carry.first]) for k, carry in enumerate(rows.carried)]
    inputs += [Value(f"x{k}", _step_type(sheet, rows, k)) for k in range(len(rows.scanned))]
    inputs += [Value(f"w{k}", sheet.types[value]) for k, value in enumerate(rows.shared)]
    names = [tuple(f"v{k}_{j}" if j else f"v{k}" for j in range(len(node.results))) for k, node in enumerate(first)]
    nodes = tuple(
        Node(
            first[k].op,
            tuple(_name(source, names) for source in rows.operands[k]),
            names[k],
            first[k].attributes,
        )
        for k in in_order(rows)
    )
    outputs = [(carry.row, carry.result) for carry in rows.carried] + list(stacks)
    return Graph("step", tuple(inputs), tuple(names[row][result] for row, result in outputs), nodes)


_PREFIX = {Kind.CARRIED: "h", Kind.SCANNED: "x", Kind.SHARED: "w"}


def _name(source: Source, names: Sequence[tuple[str, ...]]) -> str:
    if source.kind is Kind.INSIDE:
        return names[source.number][source.result]
    return f"{_PREFIX[source.kind]}{source.number}"


def in_order(rows: Rows) -> Iterator[int]:
    """Rows, each behind those it reads at the same step."""
    done: set[int] = set()
    for start in range(len(rows.rows)):
        waiting = [start]
        while waiting:
            row = waiting[-1]
            needs = (s.number for s in rows.operands[row] if s.kind is Kind.INSIDE)
            missing = [number for number in needs if number not in done]
            if row in done or not missing:
                waiting.pop()
                if row not in done:
                    done.add(row)
                    yield row
            else:
                waiting += missing


def _step_type(sheet: Sheet, rows: Rows, number: int) -> Type:
    """The type of what a step reads of what is scanned."""
    for row, sources in enumerate(rows.operands):
        for place, source in enumerate(sources):
            if source == Source(Kind.SCANNED, number):
                return sheet.types[sheet.nodes[rows.rows[row][0] or ""].operands[place]]
    raise AssertionError("something reads what is scanned")


def scanned_value(sheet: Sheet, cuts: Cuts, rows: Rows, number: int, backwards: bool) -> str:
    """All steps of what is scanned along a first axis, in the order in which the scan counts them."""
    shape = tuple(extent.const for extent in _step_type(sheet, rows, number).shape)
    scanned = rows.scanned[number]
    if isinstance(scanned, CutRow):
        if backwards:
            start = scanned.start + (scanned.count - 1) * scanned.stride
            scanned = CutRow(scanned.source, scanned.axis, start, -scanned.stride, scanned.width, scanned.count)
        return stacked(sheet, scanned, shape)
    last = next(value for value in reversed(scanned) if value is not None)
    parts = [viewed(sheet, last if value is None else value, (1, *shape)) for value in scanned]
    node = Node("concat", tuple(parts), ("",), (("axis", 0),))
    return joined(sheet, cuts, node) or sheet.add("concat", *parts, axis=0)


def _lead_out(
    sheet: Sheet,
    rows: Rows,
    uses: Sequence[Use],
    last: dict[tuple[int, int], int],
    stacks: dict[tuple[int, int], str],
    results: Sequence[str],
    backwards: bool,
) -> None:
    """Everything outside reads the scan; a ``concat`` of parts of a stack is made of the stack."""
    joins: dict[str, None] = {}
    for use in uses:
        stack = stacks.get((use.row, use.result))
        place = rows.steps - 1 - use.step if backwards else use.step
        joins.update((join, None) for join in _concats(sheet, use.value))
        part = "" if stack is None else part_of(sheet, stack, place, sheet.types[use.value])
        for reader in sheet.readers(use.value) if part else ():
            sheet.redirect(reader.results[0], use.value, part)
        sheet.replace(use.value, results[last[use.row, use.result]] if _is_last(rows, use, last) else part)
        sheet.release(part)
    cuts = Cuts(sheet)
    for key in joins:
        node = sheet.nodes.get(key)
        new_join = None if node is None else joined(sheet, cuts, node)
        if node is not None and new_join is not None:
            sheet.replace(node.results[0], new_join)


def part_of(sheet: Sheet, stack: str, place: int, t: Type) -> str:
    part = sheet.add("slice", stack, starts=(place,), ends=(place + 1,), axes=(0,), steps=(1,))
    return viewed(sheet, part, tuple(extent.const for extent in t.shape))


def _concats(sheet: Sheet, value: str) -> Iterator[str]:
    """Those that read a value, or another view of it."""
    for reader in sheet.readers(value):
        if reader.op == "concat":
            yield reader.results[0]
        elif reader.op in VIEWS:
            yield from _concats(sheet, reader.results[0])


def _free_names(sheet: Sheet, count: int) -> Iterator[str]:
    number = 0
    while count:
        if (name := f"s{number}") not in sheet.types:
            count -= 1
            yield name
        number += 1
