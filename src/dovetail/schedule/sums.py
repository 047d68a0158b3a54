"""Sums are kept in the type they are formed in, and rounded to the tensor's dtype once, when the statement is done.

    out y: f16[8]   for i<8, k<64: y[i] += x[i, k]
 -> out y: f16[8]   temp y_sum: f32[8]   for i<8, k<64: y_sum[i] += x[i, k]   for e0<8: y[e0] = y_sum[e0]

Where contributions start from what is there (``inout``, several statements, steps), that is copied in before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dovetail.base.dtypes import DType
from dovetail.ir.expr import Literal, Read, statement_type
from dovetail.ir.index import Access, Index, variable
from dovetail.ir.program import Combine, Loop, Program, Role, Statement, Tensor


def with_wide_sums(program: Program) -> Program:
    """``program`` with every ``op=`` in the dtype of the tensor it goes to."""
    if not any(_own(program, s) != program.tensor(s.out.tensor).dtype for s in _accumulating(program)):
        return program
    work = _Work(program, list(program.tensors), [])
    for group in program.groups():
        work.group(group)
    return Program(tuple(work.tensors), tuple(work.statements), program.sizes)


def _accumulating(program: Program) -> list[Statement]:
    return [s for s in program.statements if s.combine is not Combine.SET]


def _own(program: Program, statement: Statement) -> DType:
    return statement_type(statement.value, program.dtypes, program.tensor(statement.out.tensor).dtype)


@dataclass(slots=True)
class _Work:
    program: Program
    tensors: list[Tensor]
    statements: list[Statement]

    def group(self, group: tuple[int, ...]) -> None:
        """Statements that step together; what must be set up once goes before them."""
        done: list[Statement] = []
        for number in group:
            statement = self.program.statements[number]
            tensor = self.program.tensor(statement.out.tensor)
            own = _own(self.program, statement)
            if statement.combine is Combine.SET or own == tensor.dtype:
                self.set_up(number, tensor)
                done.append(statement)
                continue
            done += self.widened(number, statement, tensor, own)
        self.statements += done

    def widened(self, number: int, statement: Statement, tensor: Tensor, own: DType) -> list[Statement]:
        kept = [d for d, i in enumerate(statement.out.indices) if not self.is_fixed(statement, i)]
        alone = tensor.role is not Role.INOUT and self.is_first(number)
        alone = alone and not statement.seq and len(kept) == len(tensor.shape)
        total = self.declare(tensor, own, [tensor.shape[d] for d in kept])
        out = Access(total, tuple(statement.out.indices[d] for d in kept))
        loops = tuple(Loop(f"e{d}", tensor.shape[d]) for d in kept)
        inside = Access(total, tuple(variable(loop.name) for loop in loops))
        whole = [variable(f"e{d}") if d in kept else i for d, i in enumerate(statement.out.indices)]
        outside = Access(tensor.name, tuple(whole))
        seq, line = statement.seq, statement.line
        before = []
        if not alone:
            self.set_up(number, tensor)
            before.append(Statement(loops, inside, Combine.SET, Read(outside), (), seq, line))
        after = Statement(loops, outside, Combine.SET, Read(inside), (), seq, line)
        return [*before, replace(statement, out=out), after]

    def is_fixed(self, statement: Statement, index: Index) -> bool:
        """The same for all points of a step."""
        loops = {loop.name for loop in statement.loops}
        return not index.names() & loops and not any(True for _ in index.reads())

    def is_first(self, number: int) -> bool:
        tensor = self.program.statements[number].out.tensor
        return not any(s.out.tensor == tensor for s in self.program.statements[:number])

    def set_up(self, number: int, tensor: Tensor) -> None:
        """The neutral element everywhere, where the first of several statements is about to combine with it."""
        combine = self.program.statements[number].combine
        writers = [s for s in self.program.statements if s.out.tensor == tensor.name]
        mixed = any(_own(self.program, s) != tensor.dtype for s in writers if s.combine is not Combine.SET)
        if tensor.role is Role.INOUT or combine is Combine.SET or not mixed or not self.is_first(number):
            return
        loops = tuple(Loop(f"e{d}", extent) for d, extent in enumerate(tensor.shape))
        out = Access(tensor.name, tuple(variable(loop.name) for loop in loops))
        self.statements.append(Statement(loops, out, Combine.SET, Literal(combine.neutral(tensor.dtype))))

    def declare(self, tensor: Tensor, dtype: DType, shape: list[Index]) -> str:
        taken = {t.name for t in self.tensors} | {s.name for s in self.program.sizes}
        name = f"{tensor.name}_sum"
        while name in taken:
            name += "_"
        self.tensors.append(Tensor(Role.TEMP, name, dtype, tuple(shape)))
        return name
