"""A move that several nodes read is there once for each of them, where reading through it is free: then each region
that reads it can take it over, and it is never made.

s = slice(x)                      s = slice(x)
y = conv(s, w)             ->     t = slice(x)
z = exp(s)                        y = conv(s, w)
                                  z = exp(t)
"""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.graph.record import Passed, Record, counted
from dovetail.graph.roles import Work, works
from dovetail.graph.sheet import Sheet
from dovetail.ir.graph.bound import BoundGraph
from dovetail.ir.graph.graph import Node
from dovetail.ir.graph.verify import Operators

_TAKES_OVER = frozenset((Work.CONTRACTION, Work.POINTWISE, Work.WINDOW, Work.REDUCTION, Work.PIECES))
_MOST_READERS = 16


@dataclass(frozen=True, slots=True)
class FreeMoves:
    """Slices, stretched axes, and what only changes axes before sums of products; for ``regions``, after all passes."""

    name: str = "free-moves"

    def __call__(self, bound: BoundGraph, operators: Operators) -> Passed:
        sheet = Sheet(bound, operators)
        work = works(bound.graph, operators, sheet.types)
        taken: dict[str, None] = {}
        made = 0
        for node in reversed(bound.graph.nodes):
            copies = _copies(sheet, sheet.nodes[node.results[0]], work, taken)
            made += copies
        if not made:
            return bound, ()
        what = f"{counted(made, 'move')} made once more, for another reader"
        return sheet.finish(), (Record(self.name, what, "who reads it reads where the elements lie"),)


def _copies(sheet: Sheet, node: Node, work: dict[str, Work], taken: dict[str, None]) -> int:
    """A copy of ``node`` for each reader but the first; nodes in ``taken`` will be part of who reads them."""
    (kind, value) = work[node.results[0]], node.results[0]
    if kind not in (Work.MOVE, Work.VIEW) or len(node.results) > 1 or len(node.operands) != 1:
        return 0
    readers = sheet.readers(value)
    kinds = {work[reader.results[0]] for reader in readers if reader.results[0] not in taken}
    if sheet.is_output(value) or len(readers) > _MOST_READERS or not kinds <= _TAKES_OVER:
        return 0
    if kind is Work.VIEW and not _is_move(sheet, node.operands[0], work):
        return 0
    if node.op == "transpose" and (not kinds <= {Work.CONTRACTION} or _is_written_so(sheet, node, work)):
        return 0
    taken[value] = None
    for reader in readers[1:]:
        copy = sheet.add(node.op, *node.operands, **dict(node.attributes))
        work[copy] = kind
        taken[copy] = None
        sheet.redirect(reader.results[0], value, copy)
    return max(len(readers) - 1, 0)


def _is_written_so(sheet: Sheet, node: Node, work: dict[str, Work]) -> bool:
    """Whether a layer can write its result in the order of ``node``: it has no other reader."""
    made = sheet.maker(node.operands[0])
    return made is not None and work[made.results[0]] in _TAKES_OVER and len(sheet.readers(node.operands[0])) == 1


def _is_move(sheet: Sheet, value: str, work: dict[str, Work]) -> bool:
    made = sheet.maker(value)
    return made is not None and work[made.results[0]] is Work.MOVE
