"""The dimensions of a tensor in another order, in its declaration and wherever it is read or written.

out y: f32[4,8]  for i<4, k<8: y[i,k] = ...     ->     out y: f32[8,4]  for i<4, k<8: y[k,i] = ...
"""

from __future__ import annotations

from dataclasses import replace

from dovetail.ir.expr import Expr, Position, Read, rebuild
from dovetail.ir.index import Access, Condition, Index, affine
from dovetail.ir.program import Program


def with_dimensions(program: Program, name: str, order: tuple[int, ...]) -> Program:
    """``program`` in which dimension n of tensor ``name`` is what was dimension ``order[n]`` of it."""

    def access(a: Access) -> Access:
        indices = tuple(index(i) for i in a.indices)
        return Access(a.tensor, tuple(indices[d] for d in order) if a.tensor == name else indices)

    def index(i: Index) -> Index:
        if i.is_affine:
            return i
        return i.map_atoms(lambda atom: affine(((access(atom), 1),)) if isinstance(atom, Access) else None)

    def value(e: Expr) -> Expr:
        if isinstance(e, Read):
            return Read(access(e.access))
        return Position(index(e.index)) if isinstance(e, Position) else e

    tensors = tuple(
        replace(t, shape=tuple(t.shape[d] for d in order)) if t.name == name else t for t in program.tensors
    )
    statements = tuple(
        replace(
            s,
            out=access(s.out),
            where=tuple(Condition(index(c.index), c.equal) for c in s.where),
            value=rebuild(s.value, value),
        )
        for s in program.statements
    )
    return replace(program, tensors=tensors, statements=statements)


def inverse(order: tuple[int, ...]) -> tuple[int, ...]:
    """The order that undoes ``order``."""
    return tuple(order.index(n) for n in range(len(order)))
