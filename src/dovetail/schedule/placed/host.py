"""Statements on the processor beside a machine: each becomes an instruction of its own, ``host.<statement number>``.

An instruction's meaning is a program, so this one's is the statement itself, over operands in main memory. Ordered
(``seq``) loops stay outside, one call for each step: a dimension that only steps and numbers index is part of the
operand's place, and a step that the statement uses in any other way is a parameter.

    seq t<8: for i<64, j<64: h[t+1, i] += w[i, j] * h[t, j]
 -> host.0 = for i<64, j<64: h[i] += w[i, j] * h_1[j]      called as  host.0(h[t+1, 0], w[0, 0], h[t, 0])

What an ``op=`` starts from is there before: ``host.<number>.start`` fills the tensor with the neutral element, once,
before all steps.

Cycles are those of scalar code: points times the cycles of the scalar instructions that one point needs, as the target
that the unit ``runs`` states them: a load of each element read, the arithmetic and conversions, a comparison for each
condition, what the ``op=`` adds, and a store. Addresses and loops are free.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256

from dovetail.base.errors import MappingError
from dovetail.ir.expr import Expr, Literal, Position, Read, rebuild
from dovetail.ir.index import ZERO, Access, Condition, Index, affine, variable
from dovetail.ir.instruction_function import dense_strides
from dovetail.ir.nest import Call, Place
from dovetail.ir.program import Combine, Loop, Program, Role, Size, Statement, Tensor
from dovetail.schedule.placed.host_cost import ScalarCost
from dovetail.targets.load import load_target
from dovetail.targets.model import Instruction, Operand, Target


def host_target(
    program: Program, target: Target, statements: Sequence[int], reasons: Mapping[int, str] | None = None
) -> Target:
    """``target`` with the instructions that run ``statements`` of ``program`` (no run-time sizes) on its host unit.

    A MappingError where there is no host, with the statement's one of ``reasons``, which say why nothing else runs it.
    """
    if not statements:
        return target
    host = target.host
    if host is None:
        raise _nowhere_to_run(program, target, statements[0], reasons or {})
    cost = ScalarCost(load_target(host.runs))
    made: dict[str, Instruction] = {}
    for number in sorted(set(statements)):
        for instruction in _instructions(program, number, target, cost):
            made[instruction.name] = replace(instruction, unit=host.name)
    text = "\n".join([target.digest, *(f"{i.name} {i.program} {i.cycles}" for i in made.values())])
    return replace(target, by_name={**target.by_name, **made}, digest=sha256(text.encode()).hexdigest())


def host_call(
    program: Program, number: int, steps: Mapping[str, Index] | None = None, buffers: Mapping[str, str] | None = None
) -> Call:
    """The call that runs a statement, at ``steps`` of its ``seq`` loops (by name; their own names where left out).

    ``buffers`` names the storage of tensors whose buffer is not called as they are."""
    hosted, at = _hosted(program, number), steps or {}
    operands = tuple(
        Place((buffers or {}).get(s.tensor, s.tensor), tuple(ZERO if i is None else i.substitute(at) for i in s.fixed))
        for s in hosted.slices
    )
    params = tuple((s.name, (at.get(s.name, variable(s.name)),)) for s in hosted.sizes)
    return Call(f"host.{number}", operands, params)


def host_start(program: Program, number: int, buffers: Mapping[str, str] | None = None) -> Call | None:
    """The call that must come before all steps of a statement; None when it adds to what others have begun, or writes
    its elements once and for all."""
    if not _needs_start(program, number):
        return None
    tensor = program.tensor(program.statements[number].out.tensor)
    place = Place((buffers or {}).get(tensor.name, tensor.name), (ZERO,) * len(tensor.shape))
    return Call(f"host.{number}.start", (place,))


# -- instructions


def _instructions(program: Program, number: int, target: Target, cost: ScalarCost) -> Sequence[Instruction]:
    memory, source = target.main.name, f"{target.path or target.name}: statement {number} on the host"
    hosted = _hosted(program, number)
    operands = tuple(Operand(s.name, program.tensor(s.tensor).dtype, memory, "", s.strides) for s in hosted.slices)
    cycles = repr(float(cost.statement(hosted.program)))
    found = [Instruction(f"host.{number}", hosted.program, operands, cycles=cycles, latency=cycles, source=source)]
    if _needs_start(program, number):
        start = _start_program(program, number)
        tensor = start.tensors[0]
        cycles = repr(float(cost.statement(start)))
        held = (Operand(tensor.name, tensor.dtype, memory),)
        found.append(Instruction(f"host.{number}.start", start, held, cycles=cycles, latency=cycles, source=source))
    return found


def _start_program(program: Program, number: int) -> Program:
    """``for d0<64: y[d0] = 0``"""
    tensor = program.tensor(program.statements[number].out.tensor)
    writers = [s.combine for s in program.statements if s.out.tensor == tensor.name]
    combine = next((c for c in writers if c is not Combine.SET), Combine.ADD)
    loops = tuple(Loop(f"d{n}", extent) for n, extent in enumerate(tensor.shape))
    out = Access(tensor.name, tuple(variable(loop.name) for loop in loops))
    filled = Statement(loops, out, Combine.SET, Literal(combine.neutral(tensor.dtype)))
    return Program((replace(tensor, role=Role.OUT),), (filled,))


def _needs_start(program: Program, number: int) -> bool:
    tensor = program.tensor(program.statements[number].out.tensor)
    writers = [n for n, s in enumerate(program.statements) if s.out.tensor == tensor.name]
    if tensor.role is Role.INOUT or writers[0] != number:
        return False
    several = (program.statements[n] for n in writers)
    return any(s.combine is not Combine.SET or any(True for _ in s.out.reads()) for s in several)


# -- a statement over operands


@dataclass(frozen=True, slots=True)
class _Slice:
    """An operand: a part of a tensor in which some dimensions are ``fixed`` (None: it has the whole dimension)."""

    name: str
    tensor: str
    fixed: tuple[Index | None, ...]
    strides: tuple[int, ...]
    """Of the dimensions it has."""


@dataclass(frozen=True, slots=True)
class _Hosted:
    program: Program
    slices: tuple[_Slice, ...]

    @property
    def sizes(self) -> tuple[Size, ...]:
        return self.program.sizes


def _hosted(program: Program, number: int) -> _Hosted:
    statement = program.statements[number]
    operands = _Operands(program, frozenset(loop.name for loop in statement.seq))
    plain = replace(
        statement,
        out=operands.access(statement.out),
        where=tuple(Condition(operands.index(c.index), c.equal) for c in statement.where),
        value=rebuild(statement.value, operands.value),
        seq=(),
    )
    used = plain.names()
    sizes = tuple(Size(x.name, 0, max(0, x.extent.const - 1)) for x in statement.seq if x.name in used)
    slices = tuple(operands.slices.values())
    return _Hosted(Program(_tensors(program, plain, slices), (plain,), sizes), slices)


def _tensors(program: Program, statement: Statement, slices: Sequence[_Slice]) -> tuple[Tensor, ...]:
    read = {access.tensor for access in statement.reads()}
    joins = statement.combine is not Combine.SET or statement.out.tensor in read
    found = []
    for s in slices:
        tensor = program.tensor(s.tensor)
        role = Role.IN if s.name != statement.out.tensor else Role.INOUT if joins else Role.OUT
        shape = tuple(e for e, index in zip(tensor.shape, s.fixed, strict=True) if index is None)
        found.append(Tensor(role, s.name, tensor.dtype, shape))
    return tuple(found)


@dataclass(slots=True)
class _Operands:
    """Accesses of a statement turned into accesses of operands, in the order in which they are met."""

    program: Program
    steps: frozenset[str]
    slices: dict[tuple[str, tuple[Index | None, ...]], _Slice] = field(default_factory=dict)

    def access(self, access: Access) -> Access:
        fixed = tuple(
            i if i.names() <= self.steps and not any(True for _ in i.reads()) else None for i in access.indices
        )
        key = (access.tensor, fixed)
        if key not in self.slices:
            tensor = self.program.tensor(access.tensor)
            strides = dense_strides([e.const for e in tensor.shape])
            kept = tuple(s for s, index in zip(strides, fixed, strict=True) if index is None)
            self.slices[key] = _Slice(self.fresh(access.tensor), access.tensor, fixed, kept)
        indices = tuple(self.index(i) for i, index in zip(access.indices, fixed, strict=True) if index is None)
        return Access(self.slices[key].name, indices)

    def index(self, index: Index) -> Index:
        return index.map_atoms(lambda a: affine(((self.access(a), 1),)) if isinstance(a, Access) else None)

    def value(self, e: Expr) -> Expr:
        if isinstance(e, Read):
            return Read(self.access(e.access))
        return Position(self.index(e.index)) if isinstance(e, Position) else e

    def fresh(self, tensor: str) -> str:
        taken = {s.name for s in self.slices.values()} | {t.name for t in self.program.tensors if t.name != tensor}
        name, number = tensor, 0
        while name in taken:
            number += 1
            name = f"{tensor}_{number}"
        return name


def _nowhere_to_run(program: Program, target: Target, number: int, reasons: Mapping[int, str]) -> MappingError:
    return MappingError(
        f"no instruction of '{target.name}' runs statement {number}, and there is no host unit to run it",
        where=program.statements[number].place,
        why=reasons.get(number),
        hint=f'[[unit]] name = "host", count = 1, runs = "generic" in {target.path or target.name}',
    )
