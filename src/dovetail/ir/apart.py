"""A product of a tensor with itself as a product of two tensors, which a caller gives the same bytes.

    in x: f32[8, 6]                                            in x: f32[8, 6]  in x_again: f32[8, 6]
    for i<8, j<8, k<3: y[i, j] += x[i, k] * x[j, k + 3]   ->   for ...: y[i, j] += x[i, k] * x_again[j, k + 3]

Each of the two can then lie in memory as its side of the product wants it.
"""

from __future__ import annotations

from dataclasses import replace

from dovetail.ir.expr import Apply, Expr, Read, rename
from dovetail.ir.program import Combine, Program, Role, Statement, Tensor


def apart(program: Program) -> tuple[Program, dict[str, str]]:
    """The program with inputs of its own for second factors, and for each of those the input that it is."""
    inputs = {t.name: t for t in program.tensors if t.role is Role.IN}
    taken = {t.name for t in program.tensors} | {size.name for size in program.sizes}
    taken |= {loop.name for s in program.statements for loop in s.all_loops}
    found: dict[str, str] = {}
    statements = []
    for statement in program.statements:
        name = _squared(statement)
        if name in inputs:
            again = next((new for new, old in found.items() if old == name), "") or _fresh(f"{name}_again", taken)
            found[again] = name
            statement = replace(statement, value=_second(statement.value, name, again))
        statements.append(statement)
    if not found:
        return program, {}
    tensors: list[Tensor] = []
    for tensor in program.tensors:
        tensors.append(tensor)
        tensors += [replace(tensor, name=new) for new, old in found.items() if old == tensor.name]
    return replace(program, tensors=tuple(tensors), statements=tuple(statements)), found


def _squared(statement: Statement) -> str:
    """The tensor of which a sum of products reads two different elements; nothing for other statements."""
    value = statement.value
    if statement.combine is not Combine.ADD or statement.seq or not statement.reduced:
        return ""
    if not isinstance(value, Apply) or value.function != "mul":
        return ""
    first, second = value.args
    if not (isinstance(first, Read) and isinstance(second, Read)) or first == second:
        return ""
    return first.access.tensor if first.access.tensor == second.access.tensor else ""


def _second(value: Expr, name: str, again: str) -> Expr:
    assert isinstance(value, Apply), "a sum of products"
    first, second = value.args
    return Apply(value.function, (first, rename(second, {name: again})))


def _fresh(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name
