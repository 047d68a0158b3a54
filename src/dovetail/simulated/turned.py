"""Constant weights of a sequence's products with their dimensions the other way round, made ahead of time.

    const r: f16[192,64]                                        const r: f16[192,64]  temp r_1: f16[64,192]
    seq t<8: for j<192, k<64: y[t,j] += h[t,k] * r[j,k]    ->   for k<64, j<192: r_1[k,j] = r[j,k]
                                                                seq t<8: for j<192, k<64: y[t,j] += h[t,k] * r_1[k,j]

An instruction that does more at once may want them so; a machine that is idle while calls are issued is helped by it.
"""

from __future__ import annotations

from dataclasses import replace

from dovetail.ir.expr import Expr, Read, rebuild
from dovetail.ir.index import Access, variable
from dovetail.ir.program import Combine, Loop, Program, Role, Statement, Tensor


def with_weights_turned(program: Program) -> Program:
    """All matrices that only products of sequences read, by rows along which they sum."""
    for tensor in program.tensors:
        if tensor.role is Role.CONST and len(tensor.shape) == 2 and _is_summed_by_rows(program, tensor.name):
            program = _turned(program, tensor)
    return program


def _is_summed_by_rows(program: Program, name: str) -> bool:
    readers = [(s, a) for s in program.statements for a in s.reads() if a.tensor == name]
    return bool(readers) and all(
        bool(s.seq) and a.indices[1].names() and a.indices[1].names() <= {x.name for x in s.reduced} for s, a in readers
    )


def _turned(program: Program, tensor: Tensor) -> Program:
    taken = {t.name for t in program.tensors}
    name = next(n for n in (f"{tensor.name}_{k}" for k in range(1, len(taken) + 2)) if n not in taken)
    rows, columns = tensor.shape

    def value(e: Expr) -> Expr:
        if not isinstance(e, Read) or e.access.tensor != tensor.name:
            return e
        return Read(Access(name, (e.access.indices[1], e.access.indices[0])))

    loops = (Loop("i", columns), Loop("j", rows))
    turn = Statement(
        loops,
        Access(name, (variable("i"), variable("j"))),
        Combine.SET,
        Read(Access(tensor.name, (variable("j"), variable("i")))),
    )
    statements = tuple(replace(s, value=rebuild(s.value, value)) for s in program.statements)
    tensors = (*program.tensors, Tensor(Role.TEMP, name, tensor.dtype, (columns, rows)))
    return replace(program, tensors=tensors, statements=(turn, *statements))
