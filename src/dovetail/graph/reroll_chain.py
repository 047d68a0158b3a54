"""Nodes that may be one and the same at every step of an unrolled loop: alike, and each depends on the one before.

a0 = matmul(h, r)     n0 = tanh(a0)     a1 = matmul(n0, r)     n1 = tanh(a1)     a2 = matmul(n1, r)     ->  (a0, a1, a2)

Nodes that read the same weights are tried first: two of them in one step are rare.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from dovetail.graph.reroll_same import Same
from dovetail.graph.roles import VIEWS
from dovetail.graph.sheet import Sheet

LEAST_STEPS = 3
_MOST_SEEN = 64
"""Nodes looked at between one and the one before it; four times as many between products with the same weights."""
_PRODUCTS = frozenset(("matmul", "gemm", "dense", "einsum", "conv"))
_MOVES = VIEWS | {"transpose", "cast", "expand"}


@dataclass(frozen=True, slots=True)
class Chain:
    """Nodes by their first result, in the order of steps."""

    keys: tuple[str, ...]
    weighted: bool
    """Whether they are products with the same weights: then they would be steps of a loop."""


def chains(sheet: Sheet, same: Same) -> list[Chain]:
    """Products first, long ones before short ones, and as they stand in the graph."""
    places = {key: place for place, key in enumerate(sheet.nodes)}
    classes = [(members, fixed) for members, fixed in _classes(sheet, same) if len(members) >= LEAST_STEPS]
    found = [
        Chain(keys, fixed and sheet.nodes[keys[-1]].op in _PRODUCTS)
        for members, fixed in classes
        for keys in _chains(sheet, members, places, _MOST_SEEN * (4 if fixed else 1))
    ]

    def order(chain: Chain) -> tuple[bool, int, int]:
        return sheet.nodes[chain.keys[0]].op not in _PRODUCTS, -len(chain.keys), places[chain.keys[0]]

    return sorted(found, key=order)


def _classes(sheet: Sheet, same: Same) -> Iterator[tuple[list[str], bool]]:
    """Nodes alike that read the same weights, if any; a first one may read more that is fixed, its state."""
    fixed = _fixed(sheet)
    by_form: dict[object, dict[frozenset[tuple[int, str]], list[str]]] = {}
    for node in (node for node in sheet.nodes.values() if node.op not in _MOVES):
        shared = frozenset((k, name) for k, name in enumerate(node.operands) if name in fixed)
        by_form.setdefault(same.form(node), {}).setdefault(shared, []).append(node.results[0])
    for groups in by_form.values():
        single = [(shared, members[0]) for shared, members in groups.items() if len(members) == 1]
        for shared, members in groups.items():
            if len(members) > 1:
                yield [*(key for more, key in single if shared < more), *members], bool(shared)


def _chains(sheet: Sheet, members: list[str], places: Mapping[str, int], most: int) -> Iterator[tuple[str, ...]]:
    """The longest chains of ``members``, each member in one."""
    wanted = frozenset(members)
    before = {key: _nearest(sheet, key, wanted, most) for key in members}
    taken: set[str] = set()
    for last in sorted(members, key=lambda key: -places[key]):
        chain: list[str] = []
        key: str | None = last
        while key is not None and key not in taken:
            chain.append(key)
            taken.add(key)
            key = before[key]
        if len(chain) >= LEAST_STEPS:
            yield tuple(reversed(chain))


def _nearest(sheet: Sheet, key: str, wanted: Collection[str], most: int) -> str | None:
    """The node of ``wanted`` that is found first, going up from ``key``."""
    seen = {key}
    waiting = deque(sheet.nodes[key].operands)
    while waiting and len(seen) < most:
        node = sheet.maker(waiting.popleft())
        if node is None or node.results[0] in seen:
            continue
        if node.results[0] in wanted:
            return node.results[0]
        seen.add(node.results[0])
        waiting += node.operands
    return None


def _fixed(sheet: Sheet) -> set[str]:
    """Inputs and constants, and what is only another order or shape of one."""
    found = {value.name for value in (*sheet.graph.inputs, *sheet.graph.constants)}
    for node in sheet.nodes.values():
        if node.op in _MOVES and all(name in found for name in node.operands):
            found.update(node.results)
    return found
