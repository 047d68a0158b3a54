"""Canonical form: the same computation spelled two ways becomes one text.

Sound always: equal text means equal computation. Complete for a closed list: loop names and order, commutative operand
order, spelling of indices, unit loops, split-then-joined axes, names and order of temporaries, dead statements and
conditions that the bounds imply. Everything else (association, distribution, fusion) is rewriting.

    temp s: f32[4]; temp dead: f32[4]                     temp v0: f32[4]
    for a<2, b<2, n<1: s[2*a+b] = y[n,2*a+b]        ->    for d0<4: v0[d0] = y[0, d0]
    for i<4: dead[i] = s[i]                               for d0<4: z[d0] = v0[d0] * x[d0]
    for i<4: z[i] = x[i] * s[i]

Casts that the statement implies anyway are left out, too (``value_forms``). Names and sizes of in, const, out and inout
tensors, the order of what a caller gives and the order of what a caller gets are the interface and stay. The steps:
``live_groups``, values, loops (``loop_forms``), loop names and operands (``loop_order``), then the order of statements
and the names of temporaries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256

from dovetail.base.dtypes import DType
from dovetail.ir.index import variable
from dovetail.ir.loop_forms import MAX_ROUNDS, Group, SizeRanges, over_seq, plain_loops
from dovetail.ir.loop_order import name_loops, sort_operands
from dovetail.ir.program import Loop, Program, Role, Statement, Tensor
from dovetail.ir.statement_order import arrange
from dovetail.ir.value_forms import plain_value


def canonicalise(program: Program) -> Program:
    """The canonical program that computes the same; ``program`` must be valid."""
    loop, *steps, temp = _prefixes(program)
    sizes = {size.name: (size.low, size.high) for size in program.sizes}
    live = (_plain(group, program.dtypes, sizes) for group in live_groups(program))
    groups = [_with_steps(part, ".") for group in live for part in _parts(group)]
    arranged = arrange(groups, {t.name: f"~{t.dtype}{t.shape}" for t in program.temps}, loop)
    names = {old: f"{temp}{number}" for number, old in enumerate(arranged.temps)}
    groups = [tuple(s.rename(names) for s in group) for group in _apart(arranged.groups, *steps)]
    if arranged.tied:
        groups = [tuple(name_loops(s, {}, loop)[1] for s in group) for group in groups]
    statements = tuple(sort_operands(s, {})[1] for group in groups for s in group)
    temps = {t.name: t for t in program.temps}
    renamed = tuple(Tensor(Role.TEMP, new, temps[old].dtype, temps[old].shape) for old, new in names.items())
    return Program((*interface_order(program.tensors), *renamed), statements, program.sizes)


def digest(program: Program) -> str:
    """A name for what ``program`` computes: SHA-256 of its canonical text."""
    return sha256(str(canonicalise(program)).encode()).hexdigest()


def interface_order(tensors: Iterable[Tensor]) -> tuple[Tensor, ...]:
    """What a caller sees: up to each ``inout``, what is given before what is got."""
    found: list[Tensor] = []
    got: list[Tensor] = []
    for tensor in tensors:
        if tensor.role is Role.OUT:
            got.append(tensor)
        elif tensor.role is Role.INOUT:
            found += [*got, tensor]
            got = []
        elif tensor.role is not Role.TEMP:
            found.append(tensor)
    return (*found, *got)


def live_groups(program: Program) -> list[Group]:
    """Statements that reach something the caller sees, neighbours with the same ``seq`` loops together."""
    temps = {t.name for t in program.temps}
    writers: dict[str, list[Statement]] = {}
    for s in program.statements:
        writers.setdefault(s.out.tensor, []).append(s)
    needed = [name for name in writers if name not in temps]
    seen = set(needed)
    for name in needed:
        for read in (access.tensor for s in writers.get(name, ()) for access in s.reads()):
            if read not in seen:
                seen.add(read)
                needed.append(read)
    numbers = ([n for n in group if program.statements[n].out.tensor in seen] for group in program.groups())
    return [tuple(program.statements[n] for n in group) for group in numbers if group]


def _plain(group: Group, dtypes: Mapping[str, DType], sizes: SizeRanges) -> Group:
    """Values and loops in their forms; a loop that is gone may leave a value to simplify."""
    for _ in range(MAX_ROUNDS):
        group = plain_loops(tuple(plain_value(s, dtypes) for s in group), sizes)
        if all(plain_value(s, dtypes) is s for s in group):
            break
    return group


def _prefixes(program: Program) -> list[str]:
    """What loops, steps, steps of a neighbouring group, and temporaries are called: no name of the interface."""
    taken = {size.name for size in program.sizes} | {t.name for t in program.tensors if t.role is not Role.TEMP}
    return [_free(letter, taken) for letter in "dtsv"]


def _free(prefix: str, taken: set[str]) -> str:
    while any(name.startswith(prefix) and name[len(prefix) :].isdigit() for name in taken):
        prefix += "_"
    return prefix


def _parts(group: Group) -> Iterable[Group]:
    """A group that has lost its ``seq`` loops is as many groups as statements."""
    return [group] if group[0].seq else [(s,) for s in group]


def _with_steps(group: Group, prefix: str) -> Group:
    """``seq`` loops named by place."""
    seq = group[0].seq
    if not seq:
        return group
    new = tuple(Loop(f"{prefix}{k}", loop.extent) for k, loop in enumerate(seq))
    return over_seq(group, new, {a.name: variable(b.name) for a, b in zip(seq, new, strict=True)})


def _apart(groups: Iterable[Group], prefix: str, other: str) -> list[Group]:
    """Steps with their last names. Neighbouring groups with equal ``seq`` loops would be read as one: these differ."""
    found: list[Group] = []
    for group in groups:
        named = _with_steps(group, prefix)
        clash = found and named[0].seq and found[-1][0].seq == named[0].seq
        found.append(_with_steps(group, other) if clash else named)
    return found
