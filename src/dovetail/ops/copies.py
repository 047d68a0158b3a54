"""The same program under other names of loops, sizes and tensors, and the statement that copies a tensor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from dovetail.ir.expr import Read
from dovetail.ir.index import Access, Index, variable
from dovetail.ir.program import Combine, Loop, Program, Statement


def copied(program: Program, tensors: Mapping[str, str], names: Mapping[str, Index]) -> Program:
    """``program`` with tensors renamed, and loops and sizes replaced; a loop must be replaced by a name."""
    declared = tuple(
        replace(t, name=tensors.get(t.name, t.name), shape=tuple(e.substitute(names) for e in t.shape))
        for t in program.tensors
    )
    sizes = tuple(replace(s, name=str(names.get(s.name, s.name))) for s in program.sizes)
    return Program(declared, tuple(_copied(s, tensors, names) for s in program.statements), sizes)


def whole_copy(target: str, source: str, shape: Sequence[Index]) -> Statement:
    """``target[...] = source[...]`` everywhere."""
    names = [f"d{dim}" for dim in range(len(shape))]
    index = tuple(map(variable, names))
    loops = tuple(Loop(name, extent) for name, extent in zip(names, shape, strict=True))
    return Statement(loops, Access(target, index), Combine.SET, Read(Access(source, index)))


def _copied(statement: Statement, tensors: Mapping[str, str], names: Mapping[str, Index]) -> Statement:
    loops, seq = (
        tuple(Loop(str(names.get(x.name, x.name)), x.extent.substitute(names)) for x in part)
        for part in (statement.loops, statement.seq)
    )
    found = statement.rename(tensors).substitute(names, loops)
    return replace(found, seq=seq)
