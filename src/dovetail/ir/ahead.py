"""What a program computes from its constants and from numbers alone, taken out of it, to be computed once.

   const w: f32[8]  temp u: f32[8]  in x: f32[8]  out y: f32[8]
   for i<8: u[i] = w[i] * w[i]
   for i<8: y[i] = x[i] * u[i]

-> ahead: const w: f32[8]  out u: f32[8]               for i<8: u[i] = w[i] * w[i]
   main:  const u: f32[8]  in x: f32[8]  out y: f32[8]   for i<8: y[i] = x[i] * u[i]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dovetail.ir.program import Loop, Program, Role, Statement, Tensor


def split_ahead(program: Program) -> tuple[Program | None, Program]:
    """The part of ``program`` that needs no input, and the rest, for which the outputs of the first are constants.

    None and ``program`` itself where there is no such part. Tensors keep their names; a constant that only the first
    part reads is no tensor of the second. Whatever depends on run-time sizes or writes an output stays.
    """
    early = _early_temporaries(program)
    if not early:
        return None, program
    first = [s for s in program.statements if s.out.tensor in early]
    rest = [s for s in program.statements if s.out.tensor not in early]
    used, wanted = _tensors_read(first), _tensors_read(rest)
    outputs = early & wanted
    ahead = Program(
        tuple(
            replace(t, role=Role.OUT) if t.name in outputs else t
            for t in program.tensors
            if t.name in early or t.name in used
        ),
        tuple(first),
    )
    main = Program(
        tuple(replace(t, role=Role.CONST) if t.name in outputs else t for t in _kept(program, early, used, wanted)),
        tuple(rest),
        program.sizes,
    )
    return ahead, main


def _kept(program: Program, early: frozenset[str], used: frozenset[str], wanted: frozenset[str]) -> Iterator[Tensor]:
    """Tensors of the rest: not the early ones that it does not read, nor constants that only the first part read."""
    for tensor in program.tensors:
        is_spent = tensor.name in early or (tensor.role is Role.CONST and tensor.name in used)
        if tensor.name in wanted or not is_spent:
            yield tensor


def _early_temporaries(program: Program) -> frozenset[str]:
    """Temporaries that are computed ahead: no input is behind them."""
    sized = frozenset(s.name for s in program.sizes)
    early = {t.name for t in program.temps if _is_fixed(t)} & {s.out.tensor for s in program.statements}
    fixed = {t.name for t in program.tensors if t.role is Role.CONST and _is_fixed(t)}
    while True:
        staying = {s.out.tensor for s in program.statements if _must_stay(s, early, fixed | early, sized)}
        staying |= _read_too_early(program, early) | _bound_by_order(program, early)
        if not staying & early:
            return frozenset(early)
        early -= staying


def _must_stay(statement: Statement, early: set[str], known: set[str], sized: frozenset[str]) -> bool:
    names = statement.names().union(*(loop.extent.names() for loop in statement.all_loops))
    unknown = any(access.tensor not in known for access in statement.reads())
    return statement.out.tensor not in early or bool(names & sized) or unknown


def _read_too_early(program: Program, early: set[str]) -> set[str]:
    """Temporaries of which something is read before all of it is written."""
    last = {s.out.tensor: number for number, s in enumerate(program.statements)}
    return {
        access.tensor
        for number, s in enumerate(program.statements)
        if s.out.tensor not in early
        for access in s.reads()
        if access.tensor in early and number < last[access.tensor]
    }


def _bound_by_order(program: Program, early: set[str]) -> set[str]:
    """Temporaries written in steps together with what stays, or that keep two rows of steps apart."""
    found: set[str] = set()
    before: tuple[Loop, ...] = ()
    between: set[str] = set()
    for group in program.groups():
        written = {program.statements[n].out.tensor for n in group}
        if written <= early:
            between |= written
            continue
        found |= written & early
        steps = program.statements[group[0]].seq
        found |= between if steps and steps == before else set()
        before, between = steps, set()
    return found


def _tensors_read(statements: list[Statement]) -> frozenset[str]:
    return frozenset(access.tensor for s in statements for access in s.reads())


def _is_fixed(tensor: Tensor) -> bool:
    return all(extent.is_constant for extent in tensor.shape)
