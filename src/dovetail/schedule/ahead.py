"""What depends on constants alone is computed once, when they are known, and not at each call.

    in x  const w  temp u  out y                 const w  out u            ahead:  for i<8: u[i] = w[i] * w[i]
    for i<8: u[i] = w[i] * w[i]             ->
    for i<8: y[i] = u[i] * x[i]                  in x  const u  out y      main:   for i<8: y[i] = u[i] * x[i]

To the main program the temporaries on the cut are constants like all others, so they are laid out as its plan wants.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from dovetail.ir.plan import Plan
from dovetail.ir.program import Program, Role, Tensor
from dovetail.schedule.flats import flat_of, flats, is_of

GROWTH = 8
"""How much larger than its constants a result may be: one that is merely spread out is better made when it is used."""


@dataclass(frozen=True, slots=True)
class Split:
    """``ahead`` computes constants of ``main`` from constants of the whole program; None: there is nothing to do."""

    ahead: Program | None
    main: Program


def split_ahead(program: Program) -> Split:
    """``program`` as what is computed once and what is computed at each call."""
    if not any(t.role is Role.CONST for t in program.tensors) or not program.temps:
        return Split(None, program)
    early = _early(program)
    later = [n for n in range(len(program.statements)) if n not in early]
    needed = {a.tensor for n in later for a in program.statements[n].reads()}
    made = {program.statements[n].out.tensor for n in early}
    cut = made & needed
    if not cut or not later or any(_grows(program, early, name) for name in cut):
        return Split(None, program)
    return Split(_ahead(program, early, cut), _main(program, later, made, cut))


def planned_part(program: Program, plan: Plan) -> Program:
    """The part of ``program`` that ``plan`` runs: all of it, or what is left for each call."""
    main = split_ahead(program).main
    if main is program or any(is_of(plan, flat) for flat in flats(main)):
        return main
    return program if any(is_of(plan, flat) for flat in (program, *flats(program))) else main


def flat_part(program: Program, plan: Plan) -> Program:
    """What ``plan`` runs of ``program``, collapsed in the way that the plan is of."""
    return flat_of(flats(planned_part(program, plan)), plan)


def _early(program: Program) -> set[int]:
    """Statements that read constants, or what such statements wrote, and nothing else."""
    known = {t.name for t in program.tensors if t.role is Role.CONST and _is_fixed(t)}
    early: set[int] = set()
    for group in program.groups():
        statements = [program.statements[n] for n in group]
        written = {s.out.tensor for s in statements}
        read = {a.tensor for s in statements for a in s.reads()}
        fixed = all(loop.extent.is_constant for s in statements for loop in s.all_loops)
        temps = all(program.tensor(t).role is Role.TEMP and _is_fixed(program.tensor(t)) for t in written)
        if fixed and temps and read and read <= known | written:
            early |= set(group)
            known |= written
    return _whole(program, early)


def _whole(program: Program, early: set[int]) -> set[int]:
    """Without statements whose tensor others write as well, later, and without what depends on those."""
    while True:
        late = {s.out.tensor for n, s in enumerate(program.statements) if n not in early}
        kept = {
            n
            for n in early
            if not late & {program.statements[n].out.tensor, *(a.tensor for a in program.statements[n].reads())}
        }
        if kept == early:
            return early
        early = kept


def _is_fixed(tensor: Tensor) -> bool:
    return all(extent.is_constant for extent in tensor.shape)


def _grows(program: Program, early: set[int], name: str) -> bool:
    """Whether a result is much larger than the constants it is made of."""
    writers: dict[str, list[int]] = {}
    for number in early:
        writers.setdefault(program.statements[number].out.tensor, []).append(number)
    seen, wanted = {name}, [name]
    while wanted:
        found = {a.tensor for n in writers.get(wanted.pop(), ()) for a in program.statements[n].reads()}
        wanted += found - seen
        seen |= found
    sources = sum(_bytes(t) for t in program.tensors if t.name in seen and t.role is Role.CONST)
    return _bytes(program.tensor(name)) > GROWTH * sources


def _bytes(tensor: Tensor) -> int:
    return prod(extent.const for extent in tensor.shape) * tensor.dtype.bytes


def _ahead(program: Program, early: set[int], cut: set[str]) -> Program:
    statements = tuple(program.statements[n] for n in sorted(early))
    used = {a.tensor for s in statements for a in (s.out, *s.reads())}
    roles = {
        t.name: Role.OUT if t.name in cut else Role.IN if t.role is Role.CONST else t.role for t in program.tensors
    }
    tensors = tuple(replace(t, role=roles[t.name]) for t in program.tensors if t.name in used)
    return Program(tensors, statements)


def _role(tensor: Tensor, cut: set[str]) -> Role:
    if tensor.name in cut:
        return Role.OUT
    return Role.IN if tensor.role is Role.CONST else tensor.role


def _main(program: Program, later: list[int], made: set[str], cut: set[str]) -> Program:
    """Constants that are not needed any more are gone; those on the cut come last."""
    statements = tuple(program.statements[n] for n in later)
    used = {a.tensor for s in statements for a in (s.out, *s.reads())}
    kept = tuple(t for t in program.tensors if t.name not in made and (t.role is not Role.CONST or t.name in used))
    new = tuple(replace(t, role=Role.CONST) for t in program.tensors if t.name in cut)
    return Program((*kept, *new), statements, program.sizes)
