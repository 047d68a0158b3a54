"""Who writes which element, and whether it is there when it is read.

Each element is written once, or by statements that all use the same ``op=``; what is read was written before, by an
earlier statement or an earlier step; an ``out`` that is not of an ``op=`` is written everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod

from dovetail.base.errors import VerifyError
from dovetail.ir.domain import (
    domain,
    element_constraints,
    index_text,
    is_indirect,
    loop_ranges,
    size_constraints,
    static_conditions,
    variables,
)
from dovetail.ir.index import Access, Index
from dovetail.ir.interval import interval
from dovetail.ir.program import Combine, Program, Role, Statement, Tensor
from dovetail.poly.sets import first_collision, first_meeting, first_missing, map_text, set_text

_HERE, _THERE = "a", "b"


def check_flow(program: Program) -> None:
    """Raise a VerifyError for elements written twice, read too early, or never written."""
    groups = {number: group for group in program.groups() for number in group}
    writers: dict[str, list[int]] = {}
    for number, statement in enumerate(program.statements):
        writers.setdefault(statement.out.tensor, []).append(number)
    for numbers in writers.values():
        apart = _side_by_side(program, [program.statements[number] for number in numbers])
        for at, number in enumerate(numbers):
            _check_once(program, program.statements[number])
            for earlier in () if apart else numbers[:at]:
                _check_apart(program, program.statements[earlier], program.statements[number])
    for number, statement in enumerate(program.statements):
        for access in dict.fromkeys(statement.reads()):
            tensor = program.tensor(access.tensor)
            written = writers.get(tensor.name, [])
            if number in written:
                _check_own_read(program, statement, access)
            if tensor.role in (Role.OUT, Role.TEMP):
                _check_read(program, number, access, written, groups[number])
    for tensor in program.outputs:
        if tensor.role is Role.OUT:
            _check_covered(program, tensor, [program.statements[n] for n in writers.get(tensor.name, [])])


def _check_once(program: Program, statement: Statement) -> None:
    """``=`` reaches each element from one point only."""
    if statement.combine is not Combine.SET or _plainly_injective(program, statement):
        return
    out = statement.out
    loops = [loop.name for loop in statement.all_loops]
    if any(is_indirect(index) for index in out.indices):
        ranges = loop_ranges(program, statement)
        if missing := [name for name in loops if ranges[name][1] > 0 and name not in out.names()]:
            raise _twice(statement, f"loop {missing[0]} is not in {out}", missing)
        return
    sizes = [size.name for size in program.sizes]
    image = [f"v_{name}" for name in sizes] + [index_text(index) for index in out.indices]
    pair = first_collision(map_text(variables([*sizes, *loops]), image, domain(program, statement)))
    if pair is not None:
        one, other = (dict(zip([*sizes, *loops], point, strict=True)) for point in pair)
        differing = [name for name in loops if one[name] != other[name]]
        element = ", ".join(str(index.evaluate(one)) for index in out.indices)
        why = f"{out.tensor}[{element}] is written at {_point(one, loops)} and at {_point(other, loops)}"
        raise _twice(statement, why, [name for name in differing if name not in out.names()])


def _twice(statement: Statement, why: str, missing: Sequence[str]) -> VerifyError:
    steps = [loop.name for loop in statement.seq if loop.name in missing]
    if steps:
        hint = f"give '{statement.out.tensor}' a dimension for the steps: {statement.out.tensor}[{steps[0]} + 1, ...]"
    elif missing:
        hint = f"+=, *=, max= or min= to reduce over {missing[0]}, or index '{statement.out.tensor}' by it"
    else:
        hint = "+=, *=, max= or min= to reduce, or indices that differ"
    return VerifyError(
        f"= writes an element of '{statement.out.tensor}' more than once", where=statement.place, why=why, hint=hint
    )


def _plainly_injective(program: Program, statement: Statement) -> bool:
    """Whether each loop that runs more than once can be read off a dimension of its own."""
    ranges = loop_ranges(program, statement)
    running = {loop.name for loop in statement.all_loops if ranges[loop.name][1] > 0}
    found = set()
    for index in statement.out.indices:
        inside = index.names() & running
        if len(inside) == 1 and not is_indirect(index):
            found |= {name for name in inside if index.coefficient(name) and _once(index, name)}
    return running <= found


def _once(index: Index, name: str) -> bool:
    """Whether ``name`` occurs in ``index`` as itself only, not inside a quotient or remainder."""
    return all(
        atom == name or isinstance(atom, str) or name not in atom.index.names()
        for atom, _ in index.terms
        if not isinstance(atom, Access)
    )


def _check_apart(program: Program, one: Statement, other: Statement) -> None:
    """Two writers of a tensor use the same ``op=`` or write different elements."""
    if one.combine is other.combine and one.combine is not Combine.SET:
        return
    tensor = program.tensor(one.out.tensor)
    if Combine.SET not in (one.combine, other.combine) and tensor.role is not Role.INOUT:
        raise VerifyError(
            f"'{tensor.name}' is written with {one.combine.value} and with {other.combine.value}",
            where=f"{one.place}\n{other.place}",
            why="they start from different values",
            hint="write into a temp first",
        )
    if _apart_by_intervals(program, one, other):
        return
    pair = first_meeting(_write_map(program, one, _HERE), _write_map(program, other, _THERE))
    if pair is None:
        return
    names = [size.name for size in program.sizes]
    one_point = dict(zip([*names, *(loop.name for loop in one.all_loops)], pair[0], strict=True))
    other_point = dict(zip([*names, *(loop.name for loop in other.all_loops)], pair[1], strict=True))
    raise VerifyError(
        f"two statements write the same element of '{tensor.name}'",
        where=f"{one.place}\n{other.place}",
        why=f"{_element(one.out, one_point)}: the first at {_point(one_point, [lo.name for lo in one.all_loops])}, "
        f"the second at {_point(other_point, [lo.name for lo in other.all_loops])}",
        hint="write the first result into a temp, or use the same op= in both",
    )


def _side_by_side(program: Program, writers: Sequence[Statement]) -> bool:
    """Whether all of them use ``=``, and along one dimension each writes a stretch of its own."""
    if len(writers) < 2 or any(w.combine is not Combine.SET for w in writers):
        return False
    ranges = [loop_ranges(program, w) for w in writers]
    for dim in range(len(writers[0].out.indices)):
        found = [interval(w.out.indices[dim], r) for w, r in zip(writers, ranges, strict=True)]
        stretches = sorted(stretch for stretch in found if stretch is not None)
        if len(stretches) == len(writers) and all(a[1] < b[0] for a, b in pairwise(stretches)):
            return True
    return False


def _apart_by_intervals(program: Program, one: Statement, other: Statement) -> bool:
    first, second = loop_ranges(program, one), loop_ranges(program, other)
    for a, b in zip(one.out.indices, other.out.indices, strict=True):
        x, y = interval(a, first), interval(b, second)
        if x is not None and y is not None and (x[1] < y[0] or y[1] < x[0]):
            return True
    return False


def _write_map(program: Program, statement: Statement, mark: str) -> str:
    """{ sizes, loops -> sizes, element }."""
    return _access_map(program, statement, statement.out, mark)


def _access_map(program: Program, statement: Statement, access: Access, mark: str, seq: bool = False) -> str:
    """{ sizes, loops -> sizes, (steps,) element }; an indirect index reaches its whole dimension."""
    loops = [loop.name for loop in statement.all_loops]
    marks = dict.fromkeys(loops, mark)
    shape = program.tensor(access.tensor).shape
    elements = [f"e{dim}" for dim in range(len(shape))]
    sizes = variables(size.name for size in program.sizes)
    steps = variables((loop.name for loop in statement.seq), mark) if seq else []
    constraints = [*domain(program, statement, mark), *element_constraints(access, shape, elements, marks)]
    image = [*sizes, *steps, *elements]
    return map_text([*sizes, *variables(loops, mark)], image, constraints)


def _check_own_read(program: Program, statement: Statement, access: Access) -> None:
    """A statement may read what it writes only at the very point that writes it (or in another step)."""
    if access.tensor != statement.out.tensor:
        return
    if access == statement.out and (_plainly_injective(program, statement) or any(map(is_indirect, access.indices))):
        return
    one = _access_map(program, statement, access, _HERE, seq=True)
    other = _access_map(program, statement, statement.out, _THERE, seq=True)
    names = [*(size.name for size in program.sizes), *(loop.name for loop in statement.all_loops)]
    identity = map_text(variables(names), variables(names), [])
    pair = first_meeting(one, other, identity)
    if pair is not None:
        loops = [loop.name for loop in statement.all_loops]
        here, there = (dict(zip(names, point, strict=True)) for point in pair)
        raise VerifyError(
            f"{access} may be written before or after it is read",
            where=statement.place,
            why=f"{_element(access, here)} is read at {_point(here, loops)} and written at {_point(there, loops)}; "
            "'for' has no order",
            hint="put the loop that carries the order under seq, or read from another tensor",
        )


def _check_read(program: Program, number: int, access: Access, written: list[int], group: tuple[int, ...]) -> None:
    """What ``access`` reads is there: written before, or of an ``op=`` that starts at its neutral element."""
    statement, tensor = program.statements[number], program.tensor(access.tensor)
    stepping = bool(statement.seq)
    before = [n for n in written if n < group[0] or (stepping and n in group)]
    if not before:
        later = (
            f"it is written later, by {program.statements[written[0]].place}" if written else "no statement writes it"
        )
        hint = "put the writing statement first" if written else f"write it, or declare it as in {tensor.name}"
        raise VerifyError(f"'{tensor.name}' is read before it is written", where=statement.place, why=later, hint=hint)
    if any(program.statements[n].combine is not Combine.SET for n in written):
        return
    for n in before:
        writer = program.statements[n]
        if (n < group[0] and _covers_whole(program, writer, tensor)) or (
            n in group and n < number and _covers_step(program, writer, access, tensor)
        ):
            return
    if not _fill(tensor, [program.statements[n] for n in before if n < group[0]]):
        _prove_read(program, number, access, before, group)


def _prove_read(program: Program, number: int, access: Access, before: list[int], group: tuple[int, ...]) -> None:
    statement, tensor = program.statements[number], program.tensor(access.tensor)
    steps = [loop.name for loop in statement.seq]
    sizes = [size.name for size in program.sizes]
    elements = [f"e{dim}" for dim in range(len(tensor.shape))]
    shown = [*variables(sizes), *variables(steps, _HERE), *elements]
    marks = dict.fromkeys((loop.name for loop in statement.all_loops), _HERE)
    inner = variables((loop.name for loop in statement.loops), _HERE)
    constraints = [*domain(program, statement, _HERE), *element_constraints(access, tensor.shape, elements, marks)]
    parts = []
    for n in before:
        writer = program.statements[n]
        order = [_earlier(steps, or_same=n < number)] if n in group else []
        if (part := _written(program, writer, shown, elements, order)) is not None:
            parts.append(part)
    point = first_missing(set_text(shown, constraints, inner), tuple(parts))
    if point is None:
        return
    values = dict(zip([*sizes, *steps], point, strict=False))
    element = f"{tensor.name}[{', '.join(map(str, point[len(values) :]))}]"
    at = f" at {_point(values, list(values))}" if values else ""
    why = (
        "the statements before it, and earlier steps, do not write it"
        if steps
        else "the statements before it do not write it"
    )
    raise VerifyError(f"{access} reads {element}{at} before it is written", where=statement.place, why=why)


def _written(
    program: Program, writer: Statement, shown: list[str], elements: list[str], order: list[str]
) -> str | None:
    """The elements ``writer`` is sure to write; None when data decides."""
    if len(static_conditions(writer)) < len(writer.where) or any(map(is_indirect, writer.out.indices)):
        return None
    loops = [loop.name for loop in writer.all_loops]
    shape = program.tensor(writer.out.tensor).shape
    found = element_constraints(writer.out, shape, elements, dict.fromkeys(loops, _THERE))
    return set_text(shown, [*domain(program, writer, _THERE), *found, *order], variables(loops, _THERE))


def _earlier(steps: list[str], or_same: bool) -> str:
    """The writer's step comes before the reader's."""
    here, there = variables(steps, _HERE), variables(steps, _THERE)
    cases = [
        " and ".join([*(f"{there[n]} = {here[n]}" for n in range(at)), f"{there[at]} < {here[at]}"])
        for at in range(len(steps))
    ]
    if or_same:
        cases.append(" and ".join(f"{t} = {h}" for t, h in zip(there, here, strict=True)))
    return "(" + " or ".join(f"({case})" for case in cases) + ")"


def _covers_whole(program: Program, writer: Statement, tensor: Tensor) -> bool:
    """Whether ``writer`` plainly writes every element: a loop of its own over each dimension, no conditions."""
    extents = {loop.name: loop.extent for loop in writer.all_loops}
    return _covers(program, writer, tensor, extents, set(extents))


def _covers_step(program: Program, writer: Statement, access: Access, tensor: Tensor) -> bool:
    """Whether an earlier statement of the same step plainly writes all that ``access`` can read in this step."""
    extents = {loop.name: loop.extent for loop in writer.loops}
    steps = {loop.name for loop in writer.seq}
    same = {
        dim
        for dim, (index, read) in enumerate(zip(writer.out.indices, access.indices, strict=True))
        if index == read
        and not is_indirect(index)
        and index.names() & extents.keys() == frozenset()
        and index.names() <= steps
    }
    return _covers(program, writer, tensor, extents, set(extents), frozenset(same))


def _covers(
    program: Program,
    writer: Statement,
    tensor: Tensor,
    extents: dict[str, Index],
    free: set[str],
    settled: frozenset[int] = frozenset(),
) -> bool:
    if writer.where:
        return False
    for dim, (index, extent) in enumerate(zip(writer.out.indices, tensor.shape, strict=True)):
        if dim in settled or (index == Index() and extent == Index((), 1)):
            continue
        name = next((n for n in free if index == Index(((n, 1),)) and extents[n] == extent), None)
        if name is None:
            return False
        free.discard(name)
    ranges = {size.name: (size.low, size.high) for size in program.sizes}
    return all((interval(extents[name], ranges) or (0, 0))[0] > 0 for name in free)


def _fill(tensor: Tensor, writers: Sequence[Statement]) -> bool:
    """Whether writers by ``=``, which are apart and inside the tensor, have as many points as it has elements."""
    loops = [loop.extent for writer in writers for loop in writer.all_loops]
    if any(w.combine is not Combine.SET or w.where or any(map(is_indirect, w.out.indices)) for w in writers):
        return False
    if not all(extent.is_constant for extent in (*loops, *tensor.shape)):
        return False
    points = sum(prod(loop.extent.const for loop in writer.all_loops) for writer in writers)
    return points == prod(extent.const for extent in tensor.shape)


def _check_covered(program: Program, tensor: Tensor, writers: list[Statement]) -> None:
    """An ``out`` written with ``=`` is written everywhere."""
    if not writers:
        raise VerifyError(f"out '{tensor.name}' is never written", where=str(tensor))
    if any(w.combine is not Combine.SET for w in writers) or any(_covers_whole(program, w, tensor) for w in writers):
        return
    if _fill(tensor, writers):
        return
    sizes = [size.name for size in program.sizes]
    elements = [f"e{dim}" for dim in range(len(tensor.shape))]
    inside = [f"0 <= {e} < {index_text(extent)}" for e, extent in zip(elements, tensor.shape, strict=True)]
    shown = [*variables(sizes), *elements]
    whole = set_text(shown, [*size_constraints(program.sizes), *inside])
    parts = [part for w in writers if (part := _written(program, w, shown, elements, [])) is not None]
    point = first_missing(whole, tuple(parts))
    if point is not None:
        values = dict(zip(sizes, point, strict=False))
        at = f" at {_point(values, sizes)}" if sizes else ""
        element = f"{tensor.name}[{', '.join(map(str, point[len(sizes) :]))}]"
        raise VerifyError(
            f"{element}{at} is never written",
            where="\n".join(w.place for w in writers),
            why=f"'{tensor.name}' is an out written with =, so every element must be written",
            hint=f"loops over the whole tensor, or inout {tensor.name}",
        )


def _element(access: Access, values: dict[str, int]) -> str:
    parts = ["..." if is_indirect(i) else str(i.evaluate(values)) for i in access.indices]
    return f"{access.tensor}[{', '.join(parts)}]"


def _point(values: dict[str, int], names: Sequence[str]) -> str:
    return ", ".join(f"{name}={values[name]}" for name in names) or "its only point"
