"""States and results of a ``scan`` that nothing needs, or that are there twice, are left out."""

from __future__ import annotations

from dataclasses import replace

from dovetail.graph.scan_form import Body, Fed, Scan, State, exchange, tidy
from dovetail.graph.sheet import Sheet


def dropped(sheet: Sheet, scan: Scan) -> tuple[Scan, int]:
    """The scan as it is in ``sheet`` then, and how many states and results are gone."""
    before = len(scan.results)
    smaller = _single(sheet, _unchanged(sheet, scan))
    stacks: dict[str, str] = {}
    for stack in smaller.stacks:
        if not sheet.needed(stack.result):
            continue
        if stack.value in stacks:
            sheet.replace(stack.result, stacks[stack.value])
        else:
            stacks[stack.value] = stack.result
    live = _live(sheet, smaller, set(stacks))
    smaller = replace(
        smaller,
        states=tuple(state for state in smaller.states if state.value.name in live),
        stacks=tuple(s for s in smaller.stacks if stacks.get(s.value) == s.result),
    )
    gone = before - len(smaller.results)
    if not gone:
        return scan, 0
    smaller = tidy(smaller)
    return (exchange(sheet, scan, smaller) if smaller.results else smaller), gone


def _unchanged(sheet: Sheet, scan: Scan) -> Scan:
    """States that stay as they are at first are shared."""
    fixed = [state for state in scan.states if state.next_ == state.value.name]
    for state in fixed:
        sheet.replace(state.result, state.first)
    return replace(
        scan,
        states=tuple(state for state in scan.states if state not in fixed),
        shared=(*scan.shared, *(Fed(state.value, state.first) for state in fixed)),
    )


def _single(sheet: Sheet, scan: Scan) -> Scan:
    """States that begin and go on alike are one."""
    body = Body(scan, sheet.operators)
    seen: dict[tuple[str, str], State] = {}
    for state in scan.states:
        first = seen.setdefault((state.first, state.next_), state)
        if first is not state:
            body.replace(state.value.name, first.value.name)
            sheet.replace(state.result, first.result)
    if len(seen) == len(scan.states):
        return scan
    made = body.finish()
    kept = {state.value.name for state in seen.values()}
    return replace(made, states=tuple(state for state in made.states if state.value.name in kept))


def _live(sheet: Sheet, scan: Scan, stacked: set[str]) -> set[str]:
    """The values of states that decide something that is read."""
    makers = {name: node for node in scan.nodes for name in node.results}
    nexts = {state.value.name: state.next_ for state in scan.states}
    found = {state.value.name for state in scan.states if sheet.needed(state.result)}
    waiting = [*stacked, *(nexts[name] for name in found)]
    seen: set[str] = set()
    while waiting:
        value = waiting.pop()
        if value in seen:
            continue
        seen.add(value)
        if value in nexts and value not in found:
            found.add(value)
            waiting.append(nexts[value])
        if value in makers:
            waiting += makers[value].operands
    return found
