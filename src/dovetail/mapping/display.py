"""Fits and misfits for people and for machines: names, table rows and JSON, all derived from the fit itself."""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.ir.expr import children
from dovetail.ir.fit import Fit, MappingResult, Misfit
from dovetail.ir.program import Combine, Program, Statement
from dovetail.mapping.typed import Typed, typed
from dovetail.targets.model import Target

_REDUCTIONS = {Combine.ADD: "sum", Combine.MUL: "product", Combine.MAX: "maximum", Combine.MIN: "minimum"}

Json = dict[str, "str | int | list[int] | list[str] | dict[str, list[str]] | None"]


@dataclass(frozen=True, slots=True)
class FitRow:
    """One line of the table that ``dovetail map`` prints."""

    statement: int
    covers: str
    instruction: str
    name: str
    loops: str
    operands: str
    adapters: str
    transformations: str


def fit_rows(result: MappingResult, program: Program, target: Target) -> tuple[FitRow, ...]:
    """A row for each fit, in the order of the result."""
    return tuple(_row(fit, program, target) for fit in result.fits)


def fit_json(result: MappingResult, program: Program, target: Target) -> dict[str, list[Json] | str]:
    """Everything in ``result`` as plain JSON values."""
    return {
        "target": target.name,
        "fits": [_fit_json(fit, program, target) for fit in result.fits],
        "misfits": [_misfit_json(misfit) for misfit in result.misfits],
        "stopped_by": result.stopped_by,
    }


def display_name(fit: Fit, program: Program, target: Target) -> str:
    """``f32 contraction, lanes over n`` or ``i32 contraction, 16x16x16 tiles over p*q, k, c``."""
    statement = program.statements[fit.statement]
    value = typed(statement.value, program.dtypes, program.dtypes[statement.out.tensor])
    node = next(n for n in value.walk() if n.path == (fit.node or ())) if fit.node is not None else value
    return f"{node.dtype} {_operation(fit, statement, node)}, {_where(fit, target)}"


def _row(fit: Fit, program: Program, target: Target) -> FitRow:
    return FitRow(
        fit.statement,
        _covers(fit, program.statements[fit.statement]),
        fit.instruction,
        display_name(fit, program, target),
        ", ".join(map(str, fit.loops)),
        ", ".join(map(str, fit.operands)),
        ", ".join(map(str, fit.adapters)),
        ", ".join(fit.transformations),
    )


def _covers(fit: Fit, statement: Statement) -> str:
    """The part of the statement that the instruction does."""
    if fit.node is None:
        return f"{statement.out} {statement.combine.value} {statement.value}"
    node = statement.value
    for step in fit.node:
        node = children(node)[step]
    return str(node)


def _operation(fit: Fit, statement: Statement, node: Typed) -> str:
    if fit.node is None and statement.combine is not Combine.SET:
        contracts = node.root == "mul" and statement.combine is Combine.ADD and bool(statement.reduced)
        return "contraction" if contracts else _REDUCTIONS[statement.combine]
    return {"read": "copy", "literal": "fill"}.get(node.root, node.root)


def _where(fit: Fit, target: Target) -> str:
    """How the instruction's loops lie over the statement's."""
    loops = [(bound, extent) for bound, extent in zip(fit.loops, _extents(fit, target), strict=True) if extent != "1"]
    if not loops:
        return "one element a call"
    over = ["*".join(bound.loops) or "1" for bound, _ in loops]
    if len(loops) == 1:
        return f"lanes over {over[0]}" if loops[0][0].loops else "one lane in use"
    return f"{'x'.join(extent for _, extent in loops)} tiles over {', '.join(over)}"


def _extents(fit: Fit, target: Target) -> list[str]:
    return [str(loop.extent) for loop in target.instruction(fit.instruction).program.statements[0].loops]


def _fit_json(fit: Fit, program: Program, target: Target) -> Json:
    return {
        "statement": fit.statement,
        "node": None if fit.node is None else list(fit.node),
        "covers": _covers(fit, program.statements[fit.statement]),
        "instruction": fit.instruction,
        "name": display_name(fit, program, target),
        "loops": {bound.needle: list(bound.loops) for bound in fit.loops},
        "operands": [str(operand) for operand in fit.operands],
        "adapters": [str(adapter) for adapter in fit.adapters],
        "transformations": list(fit.transformations),
    }


def _misfit_json(misfit: Misfit) -> Json:
    return {
        "statement": misfit.statement,
        "instruction": misfit.instruction,
        "reason": misfit.reason,
        "program_line": misfit.program_line,
        "target_field": misfit.target_field,
        "repair": misfit.repair,
    }
