"""A value of several operations, for machines whose instructions do one each.

    h[b, i] = tanh(a[b, i] + x[b, i])     ->     h_1[b, i] = a[b, i] + x[b, i]
                                                 h[b, i] = tanh(h_1[b, i])

Temporaries have the type that the operation is computed in, so no value is rounded that was not before. A number that
an instruction does not know by itself becomes a row of it, written before all else. Where a machine has no difference,
no negation or no sigmoid they are made of sums, products and tanh.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from dovetail.base.dtypes import DType
from dovetail.ir.expr import Apply, Cast, Expr, Literal, Read, rebuild
from dovetail.ir.index import Access, variable
from dovetail.ir.program import Combine, Program, Role, Statement, Tensor
from dovetail.mapping.typed import Typed, typed

Fits = Callable[[Program, int], bool]
"""Whether a statement of a program can be done by an instruction."""


def split_values(program: Program, numbers: frozenset[int], fits: Fits) -> Program:
    """``program`` with those of the statements ``numbers`` split whose every operation ``fits`` an instruction."""
    splitter = _Splitter(program, fits)
    statements: list[Statement] = []
    for number, statement in enumerate(program.statements):
        parts = splitter.parts(statement) if number in numbers and _is_pointwise(statement) else None
        statements += [statement] if parts is None else parts
    if len(statements) == len(program.statements):
        return program
    return replace(
        program,
        tensors=(*program.tensors, *splitter.tensors),
        statements=(*splitter.rows.values(), *statements),
    )


def _is_pointwise(statement: Statement) -> bool:
    plain = statement.combine is Combine.SET and not statement.where and not statement.reduced
    return plain and isinstance(statement.value, Apply) and not any(True for _ in statement.out.reads())


def _by_others(e: Expr) -> Expr:
    """Operations that a machine may lack by those it is more likely to have.

    A difference is exact so; a sigmoid is so to the last bit of one, as all that is computed with tanh."""
    if not isinstance(e, Apply):
        return e
    if e.function == "sub":
        return Apply("add", (e.args[0], _times(e.args[1], -1.0)))
    if e.function == "neg":
        return _times(e.args[0], -1.0)
    if e.function == "sigmoid":
        return Apply("add", (_times(Apply("tanh", (_times(e.args[0], 0.5),)), 0.5), Literal(0.5)))
    return e


def _times(value: Expr, number: float) -> Expr:
    return Apply("mul", (value, Literal(number)))


@dataclass(slots=True)
class _Splitter:
    program: Program
    fits: Fits
    tensors: list[Tensor] = field(default_factory=list)
    rows: dict[str, Statement] = field(default_factory=dict)
    """Numbers as rows: tensor -> the statement that writes it."""

    def parts(self, statement: Statement) -> list[Statement] | None:
        """The statement as one statement for each operation; None where some of them do not fit."""
        dtypes = {t.name: t.dtype for t in self.program.tensors}
        is_float = dtypes[statement.out.tensor].is_float
        for value in dict.fromkeys((statement.value, rebuild(statement.value, _by_others) if is_float else None)):
            if value is None:
                continue
            before = list(self.tensors), dict(self.rows)
            found: list[Statement] = []
            if self.part(typed(value, dtypes, dtypes[statement.out.tensor]), statement, statement.out, found):
                return found
            self.tensors, self.rows = before
        return None

    def part(self, node: Typed, whole: Statement, out: Access, found: list[Statement]) -> bool:
        """``out = node`` by one operation, its arguments before it; whether all of that fits."""
        args: list[Expr] = []
        for arg in node.args:
            if isinstance(arg.expr, Apply):
                inner = self.temp(whole, arg.dtype)
                if not self.part(arg, whole, inner, found):
                    return False
                args.append(Read(inner))
            elif isinstance(arg.expr, Read | Literal | Cast):
                args.append(arg.expr)
            else:
                return False
        assert isinstance(node.expr, Apply)
        statement = replace(whole, out=out, value=Apply(node.expr.function, tuple(args)))
        if not self.does_fit(statement):
            rows = [self.row(a, whole, n.dtype) for a, n in zip(args, node.args, strict=True)]
            statement = replace(statement, value=Apply(node.expr.function, tuple(rows)))
            if rows == args or not self.does_fit(statement):
                return False
        found.append(statement)
        return True

    def temp(self, whole: Statement, dtype: DType) -> Access:
        loops = whole.all_loops
        name = self.fresh(whole.out.tensor)
        self.tensors.append(Tensor(Role.TEMP, name, dtype, tuple(loop.extent for loop in loops)))
        return Access(name, tuple(variable(loop.name) for loop in loops))

    def row(self, value: Expr, whole: Statement, dtype: DType) -> Expr:
        """A number as an element of a row of them, along the innermost loop."""
        if not isinstance(value, Literal) or not whole.loops:
            return value
        loop = whole.loops[-1]
        name = self.fresh("number")
        self.tensors.append(Tensor(Role.TEMP, name, dtype, (loop.extent,)))
        access = Access(name, (variable(loop.name),))
        self.rows[name] = Statement((loop,), access, Combine.SET, value)
        return Read(access)

    def does_fit(self, statement: Statement) -> bool:
        alone = replace(self.program, tensors=(*self.program.tensors, *self.tensors), statements=(statement,))
        return self.fits(alone, 0)

    def fresh(self, prefix: str) -> str:
        taken = {t.name for t in (*self.program.tensors, *self.tensors)}
        number = 1
        while f"{prefix}_{number}" in taken:
            number += 1
        return f"{prefix}_{number}"
