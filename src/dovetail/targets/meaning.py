"""What an instruction computes: its text parsed once, with L as a size, then given lanes and dtypes.

An instruction's program has its operands as tensors: ``out`` for =, ``inout`` for op=, ``in`` for what is read, each
as large as the indices that occur in the statement reach.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dovetail.base.dtypes import DType
from dovetail.base.errors import ParseError, TargetError, VerifyError
from dovetail.ir.expr import Apply, Bitcast, Cast, check_types, statement_type, walk
from dovetail.ir.index import Access, Index, Quotient, Remainder, constant
from dovetail.ir.parse import parse_statement
from dovetail.ir.program import Combine, Loop, Role, Size, Statement
from dovetail.targets.operands import OperandText
from dovetail.targets.tables import Entry

Shapes = dict[str, tuple[Index, ...]]
_LANES = Size("L", 1, 1 << 20)


@dataclass(frozen=True, slots=True)
class Meaning:
    """A parsed ``computes``; its loops may mention L."""

    statement: Statement
    shapes: Shapes
    roles: dict[str, Role]
    functions: frozenset[str]
    mentions_lanes: bool
    by_lanes: dict[int, tuple[Statement, Shapes]] = field(default_factory=dict)

    def with_lanes(self, lanes: int) -> tuple[Statement, Shapes]:
        """The statement and the operands' shapes when L is ``lanes``."""
        if not self.mentions_lanes:
            return self.statement, self.shapes
        found = self.by_lanes.get(lanes)
        if found is None:
            value = {"L": constant(lanes)}
            loops = tuple(Loop(loop.name, loop.extent.substitute(value)) for loop in self.statement.loops)
            shapes = {name: tuple(i.substitute(value) for i in shape) for name, shape in self.shapes.items()}
            found = self.by_lanes[lanes] = (self.statement.substitute(value, loops), shapes)
        return found


def parse_meaning(
    text: str, operands: Mapping[str, OperandText], dtypes: Mapping[str, DType], params: tuple[str, ...], entry: Entry
) -> Meaning:
    """The meaning of ``text`` over operands of these dtypes; a TargetError with a caret where it has none."""
    sizes = [Size(name, 0, 0) for name in params]
    if "lanes" in entry.values:
        sizes.append(_LANES)
    try:
        statement = parse_statement(text, dtypes, sizes, "computes")
    except ParseError as problem:
        where = f"{entry.where('computes')}\n{problem.where}"
        raise TargetError(problem.what, where=where, why=problem.why, hint=problem.hint) from None
    roles = _roles(statement, operands, entry)
    used = statement.names().union(*(loop.extent.names() for loop in statement.all_loops))
    for name in params:
        if name not in used:
            raise TargetError(f"parameter '{name}' does not occur in computes", where=entry.where("params"))
    return Meaning(statement, _shapes(statement, operands, entry), roles, _functions(statement), "L" in used)


def check_dtypes(meaning: Meaning, dtypes: Mapping[str, DType], entry: Entry) -> None:
    """Raise a TargetError where a primitive meets a dtype it has no meaning for."""
    statement = meaning.statement
    try:
        own = statement_type(statement.value, dtypes, dtypes[statement.out.tensor])
        check_types(statement.value, dtypes, own)
    except VerifyError as problem:
        raise TargetError(problem.what, where=entry.where("computes"), hint=problem.hint) from None


def _functions(statement: Statement) -> frozenset[str]:
    """Primitives applied, those of ``op=`` not counted."""
    found = set()
    for node in walk(statement.value):
        if isinstance(node, Apply):
            found.add(node.function)
        elif isinstance(node, Cast | Bitcast):
            found.add("cast" if isinstance(node, Cast) else "bitcast")
    return frozenset(found)


def _roles(statement: Statement, operands: Mapping[str, OperandText], entry: Entry) -> dict[str, Role]:
    roles = {access.tensor: Role.IN for access in statement.reads()}
    written = statement.out.tensor
    if written in roles:
        hint = "an instruction that adds to what is there says so with +="
        raise TargetError(f"'{written}' is both read and written", where=entry.where("computes"), hint=hint)
    roles[written] = Role.OUT if statement.combine is Combine.SET else Role.INOUT
    for name in operands:
        if name not in roles:
            raise TargetError(f"operand '{name}' does not occur in computes", where=entry.where("operands"))
    return roles


def _shapes(statement: Statement, operands: Mapping[str, OperandText], entry: Entry) -> Shapes:
    """Each operand's extents: one more than the largest index that occurs."""
    extents = {loop.name: loop.extent for loop in statement.all_loops}
    shapes: Shapes = {}
    for access in (statement.out, *statement.reads()):
        shape = tuple(_largest(index, extents, entry) + 1 for index in access.indices)
        shapes[access.tensor] = _joined(access, shapes.get(access.tensor, shape), shape, entry)
    for name, operand in operands.items():
        given, rank = len(operand.strides), len(shapes[name])
        if given and given != rank:
            what = f"operand '{name}' has {given} strides for {rank} dimension{'s' if rank != 1 else ''}"
            raise TargetError(what, where=entry.where("operands"))
    return shapes


def _joined(access: Access, a: tuple[Index, ...], b: tuple[Index, ...], entry: Entry) -> tuple[Index, ...]:
    if len(a) != len(b):
        what = f"'{access.tensor}' is used with {len(a)} and with {len(b)} dimensions"
        raise TargetError(what, where=entry.where("computes"))
    return tuple(_larger(x, y, access, entry) for x, y in zip(a, b, strict=True))


def _larger(a: Index, b: Index, access: Access, entry: Entry) -> Index:
    difference = a - b
    if not difference.is_constant:
        raise TargetError(f"the extents of '{access.tensor}' differ: {a} and {b}", where=entry.where("computes"))
    return a if difference.const >= 0 else b


def _largest(index: Index, extents: Mapping[str, Index], entry: Entry) -> Index:
    """The largest value of an index, as an index over parameters."""
    total = constant(index.const)
    for atom, factor in index.terms:
        if isinstance(atom, Access):
            what = f"'{atom}' is an indirect index, which an instruction cannot have"
            raise TargetError(what, where=entry.where("computes"))
        if isinstance(atom, str):
            top = extents[atom] - 1 if atom in extents else Index(((atom, 1),), 0)
            total = total + (top * factor if factor > 0 or atom not in extents else constant(0))
        elif isinstance(atom, Quotient) and factor > 0:
            total = total + (_largest(atom.index, extents, entry) // atom.divisor) * factor
        elif isinstance(atom, Remainder) and factor > 0:
            total = total + (atom.divisor - 1) * factor
    return total
