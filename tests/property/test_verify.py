"""``verify`` refuses exactly what a point-by-point run over every value of the sizes trips over."""

from dataclasses import replace
from itertools import product

from hypothesis import event, given, settings
from hypothesis import strategies as st

from dovetail.base.errors import VerifyError
from dovetail.ir.expr import Read, rebuild, walk
from dovetail.ir.fill import fill
from dovetail.ir.index import Access
from dovetail.ir.program import Combine, Loop, Program, Statement
from dovetail.ir.verify import verify
from tests.property.interpreter import Violation, interpret
from tests.property.programs import Case, programs


@st.composite
def perhaps_wrong(draw: st.DrawFn) -> Program:
    """A valid program with one thing changed: an index, an extent, a condition, an ``op``, a statement, the order."""
    program = draw(programs(indirect=False)).program
    number = draw(st.sampled_from(_steps_first(program)))
    statement = program.statements[number]
    change = draw(
        st.sampled_from(("read", "read", "index", "extent", "condition", "op", "statement", "order", "steps"))
    )
    statements = list(program.statements)
    if change == "read" and (found := [n for n in walk(statement.value) if isinstance(n, Read) and n.access.indices]):
        chosen = draw(st.sampled_from(found))
        moved = Read(_shifted(draw, chosen.access))
        statements[number] = replace(statement, value=rebuild(statement.value, lambda n: moved if n == chosen else n))
    elif change == "index" and statement.out.indices:
        statements[number] = replace(statement, out=_shifted(draw, statement.out))
    elif change == "extent" and statement.loops:
        statements[number] = _longer(draw, statement)
    elif change == "condition" and statement.where:
        statements[number] = replace(statement, where=statement.where[1:])
    elif change == "op":
        statements[number] = replace(statement, combine=draw(st.sampled_from((Combine.SET, Combine.MAX))))
    elif change == "statement":
        statements.append(statement)
    elif change == "order":
        statements.insert(0, statements.pop(number))
    else:
        statements[number] = replace(statement, seq=())
    return replace(program, statements=tuple(statements))


def _steps_first(program: Program) -> list[int]:
    """Statement numbers; those under ``seq`` first, since they are rare and shrinking prefers them."""
    return sorted(range(len(program.statements)), key=lambda n: not program.statements[n].seq)


def _shifted(draw: st.DrawFn, access: Access) -> Access:
    dim = draw(st.integers(0, len(access.indices) - 1))
    by = draw(st.sampled_from((-1, 1)))
    return Access(access.tensor, tuple(i + by if d == dim else i for d, i in enumerate(access.indices)))


def _longer(draw: st.DrawFn, statement: Statement) -> Statement:
    at = draw(st.integers(0, len(statement.loops) - 1))
    by = draw(st.sampled_from((-1, 1)))
    loop = statement.loops[at]
    return replace(
        statement, loops=(*statement.loops[:at], Loop(loop.name, loop.extent + by), *statement.loops[at + 1 :])
    )


@settings(max_examples=400, deadline=None)
@given(perhaps_wrong())
def test_verify_refuses_what_a_run_trips_over_and_nothing_else(program: Program) -> None:
    unknown = {n for s in program.statements for n in s.names()} - {
        name
        for s in program.statements
        for name in (*(lo.name for lo in s.all_loops), *(z.name for z in program.sizes))
    }
    refused = None
    try:
        verify(program)
    except VerifyError as error:
        refused = error
    if unknown or (refused and ("unknown loop" in refused.what or "values into" in refused.what)):
        return
    wrong = _first_violation(program)
    event("refused" if refused else "accepted")
    assert (refused is None) == (wrong is None), f"verify: {refused}\nrun: {wrong}\n{program}"


def _first_violation(program: Program) -> str | None:
    for values in product(*(range(size.low, size.high + 1) for size in program.sizes)):
        sizes = {size.name: value for size, value in zip(program.sizes, values, strict=True)}
        if any(loop.extent.evaluate(sizes) < 0 for s in program.statements for loop in s.all_loops):
            return "negative extent"
        case = Case(program, sizes)
        try:
            interpret(program, fill(program, 1, case.sizes), sizes)
        except Violation as violation:
            return f"{violation} with {sizes}"
    return None
