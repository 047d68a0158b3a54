"""A program as it is compiled: without moves, with as few statements as may be, temporaries in the order of who reads
them.

    for k<64, p<49, c<32: t[k, p] += x[p, c] * w[k, c]            for k<64, p<49, c<32: t[p, k] += x[p, c] * w[k, c]
    for a<64, b<49: y[b, a] = max(t[a, b], 0)               ->    for a<64, b<49: y[b, a] = max(t[b, a], 0)

A temporary's order says along which axis its maker best goes in vectors: that of the result it becomes part of.
"""

from __future__ import annotations

from dovetail.ir.index import Access, variable
from dovetail.ir.inline import inline
from dovetail.ir.merge import merge
from dovetail.ir.program import Combine, Program, Statement
from dovetail.ir.reorder import with_dimensions


def compact(program: Program) -> Program:
    """A valid program that means the same and is better to schedule."""
    return aligned(merge(inline(program)))


def aligned(program: Program) -> Program:
    """Temporaries that one later statement reads element by element, with their dimensions as in what it writes."""
    for number in reversed(range(len(program.statements))):
        reader = program.statements[number]
        if reader.combine is not Combine.SET or reader.seq or reader.where:
            continue
        for access in dict.fromkeys(reader.reads()):
            order = _order(program, reader, number, access)
            if order is not None:
                program = with_dimensions(program, access.tensor, order)
    return program


def _order(program: Program, reader: Statement, number: int, access: Access) -> tuple[int, ...] | None:
    """How the dimensions of a temporary would lie as those of the result do; None where they do, or cannot."""
    if access.tensor not in {t.name for t in program.temps}:
        return None
    readers = [n for n, s in enumerate(program.statements) if any(a.tensor == access.tensor for a in s.reads())]
    alike = all(a == access for a in reader.reads() if a.tensor == access.tensor)
    if readers != [number] or not alike:
        return None
    places = {str(i.terms[0][0]): d for d, i in enumerate(reader.out.indices) if len(i.terms) == 1}
    found: list[int] = []
    for index in access.indices:
        name = next(iter(index.names()), "")
        if name and (index != variable(name) or name not in places):
            return None
        found.append(places[name] if name else -1)
    order = tuple(sorted(range(len(found)), key=found.__getitem__))
    return order if order != tuple(range(len(found))) else None
