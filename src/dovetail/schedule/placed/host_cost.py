"""What a statement takes in scalar code: the cycles of the instructions that each of its points needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from dovetail.base.dtypes import DTYPES, DType, compute_type
from dovetail.base.errors import MappingError
from dovetail.ir.expr import Apply, Bitcast, Cast, Expr, Position, Read, argument_types, statement_type, value_type
from dovetail.ir.primitives import PRIMITIVES
from dovetail.ir.program import Combine, Program, Statement
from dovetail.schedule.repertoire import repertoire
from dovetail.targets.cost import evaluate_cost
from dovetail.targets.model import Instruction, Target

_SMALL = {name: "f16" for name, kind in DTYPES.items() if kind.is_float and kind.bits < 16}


@dataclass(frozen=True, slots=True)
class ScalarCost:
    """Cycles by the scalar instructions of ``target``."""

    target: Target

    def statement(self, program: Program) -> float:
        """Of a program of one statement, all points."""
        statement, dtypes = program.statements[0], program.dtypes
        points = prod(max(0, loop.extent.const) for loop in statement.loops)
        out = dtypes[statement.out.tensor]
        own = statement_type(statement.value, dtypes, out)
        each = sum(self.cycles("load", dtypes[a.tensor].name, 1, False, False) for a in set(statement.reads()))
        each += len(statement.where) * self.cycles("apply", "ge", "i64", 1)
        if not _is_move(statement, dtypes):
            each += self.value(statement.value, own, dtypes) + self.converted(own, out)
        function = statement.combine.function
        if function is not None:
            each += self.cycles("load", out.name, 1, False, False) + self.converted(out, own)
            each += self.cycles("apply", function, own.name, 1)
        return points * (each + self.cycles("store", out.name, 1, False, False))

    def value(self, e: Expr, own: DType, dtypes: Mapping[str, DType]) -> float:
        """Of an expression computed in ``own``, the loads of its elements left out."""
        if isinstance(e, Read):
            return self.converted(dtypes[e.access.tensor], own)
        if isinstance(e, Position):
            return self.converted(DTYPES["i64"], own)
        if isinstance(e, Cast | Bitcast):
            inner = value_type(e.arg, dtypes, None)
            wide = compute_type(inner)
            own_cost = self.value(e.arg, wide, dtypes) + self.converted(e.dtype, own)
            if isinstance(e, Cast):
                return own_cost + self.converted(wide, e.dtype)
            return own_cost + self.converted(wide, inner) + self.cycles("bitcast", inner.name, e.dtype.name, 1)
        if isinstance(e, Apply):
            return self.applied(e, own, dtypes)
        return 0.0

    def applied(self, e: Apply, own: DType, dtypes: Mapping[str, DType]) -> float:
        kinds = argument_types(e, dtypes, own)
        total = self.cycles("apply", e.function, compute_type(kinds[-1]).name, 1)
        for arg, kind in zip(e.args, kinds, strict=True):
            inner = compute_type(value_type(arg, dtypes, kind))
            total += self.value(arg, inner, dtypes) + self.converted(inner, kind)
        if PRIMITIVES[e.function].result == "bool":
            total += self.converted(DTYPES["bool"], own)
        return total

    def converted(self, source: DType, to: DType) -> float:
        """In one instruction, or by way of f32."""
        if source == to:
            return 0.0
        if self.find("cast", source.name, to.name, 1) is None and "f32" not in (source.name, to.name):
            return self.cycles("cast", source.name, "f32", 1) + self.cycles("cast", "f32", to.name, 1)
        return self.cycles("cast", source.name, to.name, 1)

    def find(self, *key: str | int | bool) -> Instruction | None:
        """Floats too small to have instructions are moved and converted as f16 is."""
        found = repertoire(self.target).find(*(_SMALL.get(str(part), part) for part in key))
        return None if found is None else found.instruction

    def cycles(self, *key: str | int | bool) -> float:
        found = self.find(*key)
        if found is None:
            what = " ".join(str(k) for k in key if isinstance(k, str))
            raise MappingError(
                f"the host has no scalar instruction for {what}",
                where=self.target.path or self.target.name,
                hint="an instruction for it in that file, or another dtype in the program",
            )
        return evaluate_cost(found.cycles)


def _is_move(statement: Statement, dtypes: Mapping[str, DType]) -> bool:
    """Elements go as they are."""
    value = statement.value
    same = isinstance(value, Read) and dtypes[value.access.tensor] == dtypes[statement.out.tensor]
    return same and statement.combine is Combine.SET
