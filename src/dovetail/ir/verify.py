"""Whether a program means anything: raises the first thing that is wrong with it, with a point where it is.

Declarations and types here; indices inside their tensors in ``verify_indices``; who writes which element, and whether
it is there when it is read, in ``verify_flow``. Intervals settle the plain cases, isl the others.
"""

from __future__ import annotations

from math import prod

from dovetail.base.dtypes import DType, Kind
from dovetail.base.errors import LimitError, ProgramError, VerifyError
from dovetail.base.limits import DEFAULT_LIMITS, Limits
from dovetail.ir.domain import index_text, is_indirect, loop_ranges, size_constraints, variables
from dovetail.ir.expr import Position, check_types, statement_type, walk
from dovetail.ir.index import Access, Index
from dovetail.ir.interval import interval
from dovetail.ir.program import Combine, Program, Role, Statement
from dovetail.ir.verify_flow import check_flow
from dovetail.ir.verify_indices import check_indices
from dovetail.poly.sets import first_point, set_text

_INDEX_BITS = 62


def verify(program: Program, limits: Limits = DEFAULT_LIMITS) -> None:
    """Raise a VerifyError (no meaning) or a LimitError (too large) unless ``program`` is valid."""
    if len(program.statements) > limits.statements:
        raise LimitError(f"{len(program.statements)} statements, the limit is {limits.statements}")
    _check_sizes(program, limits)
    _check_tensors(program, limits)
    for statement in program.statements:
        _check_names(program, statement)
        for loop in statement.all_loops:
            if not (loop.extent.is_constant and 0 <= loop.extent.const <= limits.extent):
                _check_extent(program, loop.extent, f"loop {loop}", statement.place, limits)
        _check_written(program, statement)
        _check_value(program.dtypes, statement)
        _check_index_types(program.dtypes, statement)
        _check_index_sizes(program, statement)
        check_indices(program, statement)
    check_flow(program)


def _check_sizes(program: Program, limits: Limits) -> None:
    for size in program.sizes:
        if size.low > size.high:
            raise VerifyError(f"the range of size '{size.name}' is empty", where=str(size))
        if size.low < 0:
            raise VerifyError(f"size '{size.name}' can be negative", where=str(size), hint=f"0..{max(size.high, 0)}")
        if size.high > limits.extent:
            raise LimitError(f"size '{size.name}' can be {size.high}, the limit is {limits.extent}", where=str(size))


def _check_tensors(program: Program, limits: Limits) -> None:
    ranges = {size.name: (size.low, size.high) for size in program.sizes}
    for tensor in program.tensors:
        for dim, extent in enumerate(tensor.shape):
            _check_extent(program, extent, f"dimension {dim} of '{tensor.name}'", str(tensor), limits)
        largest = [found[1] for extent in tensor.shape if (found := interval(extent, ranges))]
        count = prod(largest) * tensor.dtype.bytes
        if count > limits.tensor_bytes:
            raise LimitError(
                f"'{tensor.name}' has {count} bytes, the limit is {limits.tensor_bytes}", where=str(tensor)
            )


def _check_extent(program: Program, extent: Index, what: str, where: str, limits: Limits) -> None:
    """Not negative, not over the limit, for every value of the sizes."""
    ranges = {size.name: (size.low, size.high) for size in program.sizes}
    found = interval(extent, ranges)
    if found is None:
        raise VerifyError(f"{what}: the extent {extent} is not made of numbers and sizes", where=where)
    if found[0] < 0 and (point := _extreme(program, f"{index_text(extent)} < 0")) is not None:
        value = extent.evaluate(point)
        raise VerifyError(f"{what} is {value}{_at(point)}", where=where, why="an extent cannot be negative")
    too_large = f"{index_text(extent)} > {limits.extent}"
    if found[1] > limits.extent and (point := _extreme(program, too_large)) is not None:
        raise LimitError(f"{what} is {extent.evaluate(point)}{_at(point)}, the limit is {limits.extent}", where=where)


def _extreme(program: Program, constraint: str) -> dict[str, int] | None:
    """Values of the sizes for which ``constraint`` holds; None when there are none."""
    names = [size.name for size in program.sizes]
    constraints = [*size_constraints(program.sizes), constraint]
    point = first_point(set_text(variables(names), constraints))
    return None if point is None else dict(zip(names, point, strict=True))


def _at(point: dict[str, int]) -> str:
    return " at " + ", ".join(f"{name}={value}" for name, value in point.items()) if point else ""


def _check_names(program: Program, statement: Statement) -> None:
    """Programs built by hand meet this first: every name is known, every access has its tensor's rank."""
    for access in (statement.out, *statement.reads()):
        if access.tensor not in program.dtypes:
            raise VerifyError(f"unknown tensor '{access.tensor}'", where=statement.place)
        rank = len(program.tensor(access.tensor).shape)
        if len(access.indices) != rank:
            raise VerifyError(f"'{access.tensor}' has {rank} dimensions, not as in {access}", where=statement.place)
    known = {size.name for size in program.sizes} | {loop.name for loop in statement.all_loops}
    if unknown := sorted(statement.names() - known):
        raise VerifyError(f"unknown loop or size '{unknown[0]}'", where=statement.place)


def _check_written(program: Program, statement: Statement) -> None:
    tensor = program.tensor(statement.out.tensor)
    if tensor.role in (Role.IN, Role.CONST):
        hint = f"declare it as out {tensor.name} or inout {tensor.name}"
        raise VerifyError(f"'{tensor.name}' is an input and cannot be written", where=statement.place, hint=hint)
    scatter = any(is_indirect(index) for index in statement.out.indices)
    if scatter and statement.combine is Combine.SET and tensor.role is not Role.INOUT:
        why = f"which elements of '{tensor.name}' it writes is not known, so the others may never be written"
        hint = f"inout {tensor.name}, or an op= such as +="
        raise VerifyError(
            f"a scatter with = into {tensor.role.value} '{tensor.name}'", where=statement.place, why=why, hint=hint
        )


def _check_value(dtypes: dict[str, DType], statement: Statement) -> None:
    out = dtypes[statement.out.tensor]
    try:
        own = statement_type(statement.value, dtypes, out)
        check_types(statement.value, dtypes, own)
    except ProgramError as error:
        raise VerifyError(error.what, where=statement.place, why=error.why, hint=error.hint) from None
    if statement.combine is Combine.SET:
        return
    narrowing = own.is_float and not out.is_float
    if narrowing or (out.kind is Kind.BOOL and own.kind is not Kind.BOOL):
        what = f"{statement.combine.value} of {own} values into '{statement.out.tensor}', which is {out}"
        hint = f"{out}({statement.value})"
        raise VerifyError(what, where=statement.place, why="contributions would be converted one by one", hint=hint)


def _check_index_types(dtypes: dict[str, DType], statement: Statement) -> None:
    indirect = [access for used in (statement.out, *statement.reads()) for access in used.reads()]
    conditional = [access for condition in statement.where for access in condition.index.reads()]
    for access in (*indirect, *conditional):
        if not dtypes[access.tensor].is_integer:
            what = f"'{access.tensor}' is used as an index but has dtype {dtypes[access.tensor]}"
            raise VerifyError(what, where=statement.place, hint="an integer dtype, e.g. i32")


def _check_index_sizes(program: Program, statement: Statement) -> None:
    """No part of an index may leave 64 bits on the way."""
    ranges = loop_ranges(program, statement)
    used: list[Index] = [c.index for c in statement.where]
    used += [n.index for n in walk(statement.value) if isinstance(n, Position)]
    used += [index for access in (statement.out, *statement.reads()) for index in access.indices]
    for index in used:
        if _reach(index, ranges) >= 1 << _INDEX_BITS:
            raise LimitError(f"index {index} does not fit 64 bits", where=statement.place)


def _reach(index: Index, ranges: dict[str, tuple[int, int]]) -> int:
    """At least the size of everything that adds up to ``index``."""
    total = abs(index.const)
    for atom, factor in index.terms:
        if isinstance(atom, str):
            total += abs(factor) * max(map(abs, ranges[atom]))
        elif isinstance(atom, Access):
            total += abs(factor)
        else:
            total += abs(factor) * max(_reach(atom.index, ranges), atom.divisor)
    return total
