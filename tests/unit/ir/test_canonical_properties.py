"""Random small programs, respelled at random: the canonical text stays, and so does what it computes."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.base.dtypes import DTYPES
from dovetail.ir.canonical import canonicalise
from dovetail.ir.evaluate import Array, evaluate
from dovetail.ir.expr import Apply, Cast, Expr, Literal, Position, Read, rebuild
from dovetail.ir.index import Access, Condition, Index, constant, variable
from dovetail.ir.parse import parse
from dovetail.ir.primitives import PRIMITIVES
from dovetail.ir.program import Combine, Loop, Program, Role, Statement, Tensor

DIMENSION = 24
"""Every tensor dimension: larger than any index that ``indices`` makes."""
NAMES = tuple("abcdefghijklmnopqrstuvw")
INT = DTYPES["i64"]


@st.composite
def indices(draw: st.DrawFn, loops: tuple[Loop, ...]) -> Index:
    """A sum of loops, at most 3 + 2*3 + 2, or a quotient or remainder of a plain sum of them.

    Not ``(2*i) % 3``, which may keep more than one form.
    """
    if not loops:
        return constant(draw(st.integers(0, 3)))
    first, second = (variable(draw(st.sampled_from(loops)).name) for _ in range(2))
    shape = draw(st.integers(0, 7))
    plain = first if first == second else first + second * draw(st.integers(0, 1))
    if shape == 0:
        return plain // draw(st.integers(2, 4))
    if shape == 1:
        return plain % draw(st.integers(2, 4))
    return first + second * draw(st.integers(0, 2)) + draw(st.integers(0, 2))


@st.composite
def values(draw: st.DrawFn, loops: tuple[Loop, ...], readable: tuple[str, ...], depth: int = 2) -> Expr:
    kind = draw(st.integers(0, 6 if depth else 3))
    if kind == 0:
        return Literal(draw(st.integers(-3, 3)))
    if kind == 1 and loops:
        index = draw(indices(loops))
        return Cast(INT, Literal(index.const)) if index.is_constant else Position(index)
    if kind <= 3:
        return Read(Access(draw(st.sampled_from(readable)), (draw(indices(loops)), draw(indices(loops)))))
    name = draw(st.sampled_from(("add", "mul", "sub", "max", "min")))
    arguments = values(loops, readable, depth - 1)
    left, right = draw(arguments), draw(arguments)
    plain = all(isinstance(e, Literal | Position) for e in (left, right))
    return left if plain else Apply(name, (left, right))


@st.composite
def statements(draw: st.DrawFn, tensor: str, readable: tuple[str, ...]) -> Statement:
    extents = draw(st.lists(st.sampled_from((1, 2, 3, 4)), max_size=4))
    loops = tuple(Loop(name, constant(extent)) for name, extent in zip(NAMES, extents, strict=False))
    out = Access(tensor, (draw(indices(loops)), draw(indices(loops))))
    where = tuple(Condition(draw(indices(loops)) - draw(st.integers(0, 3))) for _ in range(draw(st.integers(0, 1))))
    combine = draw(st.sampled_from((Combine.ADD, Combine.MAX)))
    return Statement(loops, out, combine, draw(values(loops, readable)), where)


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Up to three temporaries, each readable by all that follows, and an output."""
    tensors = [Tensor(Role.IN, name, INT, (constant(DIMENSION),) * 2) for name in ("in0", "in1")]
    found: list[Statement] = []
    for number in range(draw(st.integers(0, 3))):
        found.append(draw(statements(f"temp{number}", tuple(t.name for t in tensors))))
        tensors.append(Tensor(Role.TEMP, f"temp{number}", INT, (constant(DIMENSION),) * 2))
    found.append(draw(statements("result", tuple(t.name for t in tensors))))
    tensors.append(Tensor(Role.OUT, "result", INT, (constant(DIMENSION),) * 2))
    return Program(tuple(tensors), tuple(found))


@st.composite
def respelled(draw: st.DrawFn, program: Program) -> Program:
    """The same computation: loops, temporaries and operands renamed, reordered and split, with dead work added."""
    found = [draw(respelled_statement(s)) for s in program.statements]
    if draw(st.booleans()):
        at = draw(st.integers(0, len(found) - 1))
        found.insert(at, Statement((), Access("dead", (constant(0),) * 2), Combine.SET, Literal(1)))
    for _ in range(draw(st.integers(0, 6))):
        at = draw(st.integers(0, len(found) - 1))
        if at and not _conflict(found[at - 1], found[at]):
            found[at - 1 : at + 1] = [found[at], found[at - 1]]
    temps = draw(st.permutations([t.name for t in program.temps] + ["dead"]))
    names = dict(zip(temps, draw(st.permutations(["red", "green", "blue", "pink"])), strict=False))
    interface = tuple(t for t in program.tensors if t.role is not Role.TEMP)
    declared = tuple(Tensor(Role.TEMP, names[name], INT, (constant(DIMENSION),) * 2) for name in temps)
    return Program(declared + interface, tuple(s.rename(names) for s in found))


@st.composite
def respelled_statement(draw: st.DrawFn, s: Statement) -> Statement:
    loops: list[Loop] = []
    replaced: dict[str, Index] = {}
    fresh = iter(draw(st.permutations(NAMES)))
    for loop in s.loops:
        name = next(fresh)
        if loop.extent == constant(4) and draw(st.booleans()):
            inner = next(fresh)
            loops += [Loop(name, constant(2)), Loop(inner, constant(2))]
            replaced[loop.name] = variable(name) * 2 + variable(inner)
        else:
            loops.append(Loop(name, loop.extent))
            replaced[loop.name] = variable(name)
    if draw(st.booleans()):
        loops.append(Loop(next(fresh), constant(1)))
    s = s.substitute(replaced, tuple(draw(st.permutations(loops))))
    always = [Condition(variable(loop.name) + 1) for loop in loops if draw(st.booleans())]
    where = tuple(draw(st.permutations([*s.where, *always])))

    def swap(e: Expr) -> Expr:
        if isinstance(e, Apply) and PRIMITIVES[e.function].commutative and draw(st.booleans()):
            return Apply(e.function, (e.args[1], e.args[0]))
        return e

    return Statement(s.loops, s.out, s.combine, rebuild(s.value, swap), where)


def _conflict(a: Statement, b: Statement) -> bool:
    """Whether one reads what the other writes."""
    return a.out.tensor in _read(b) or b.out.tensor in _read(a)


def _read(s: Statement) -> set[str]:
    return {access.tensor for access in s.reads()}


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_respelling_does_not_change_the_canonical_text(data: st.DataObject) -> None:
    program = data.draw(programs())
    other = data.draw(respelled(program))
    assert str(canonicalise(program)) == str(canonicalise(other))


@settings(max_examples=150, deadline=None)
@given(programs())
def test_canonical_programs_are_their_own_canonical_form_and_read_back(program: Program) -> None:
    canonical = canonicalise(program)
    assert canonicalise(canonical) == canonical
    assert parse(str(canonical)) == canonical


@settings(max_examples=100, deadline=None)
@given(programs(), st.integers(0, 1000))
def test_canonical_programs_compute_what_the_original_does(program: Program, seed: int) -> None:
    generator = np.random.default_rng(seed)
    arrays = {t.name: generator.integers(-9, 9, (DIMENSION,) * 2) for t in program.inputs}
    assert _same(evaluate(program, arrays).values(), evaluate(canonicalise(program), arrays).values())


def _same(first: Iterable[Array], second: Iterable[Array]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
