"""A single operation in the form that instructions have: plain maps around one plain reduction, casts outside.

map(\\k -> map(\\row -> map(\\win -> sums of sums of products of win and k, row), windows), w)         a convolution

map(split(q), map(\\k -> map(\\win -> sum of products of win and k, all windows as rows), w as rows))
"""

from __future__ import annotations

from collections.abc import Iterator

from dovetail.ir.functional.term import Lambda, Pattern, Scalar, Term, Var, children, free_names
from dovetail.rewrite.operations import fire_fission
from dovetail.rewrite.outline import binders
from dovetail.rewrite.passes import is_view, without_casts
from dovetail.rewrite.run import Run, at_path
from dovetail.rewrite.tables.nests import ROWS, SUMS
from dovetail.rewrite.typed import Path
from dovetail.rewrite.unit_sites import LAYOUT


def straighten(run: Run, value: Path) -> bool:
    """Fire rules until the value of a stored operation is straight; whether any fired."""
    fired = False
    while any(_straightened(run, value, at) for at in list(below(run.at(value)))):
        run.tidy(value)
        fired = True
    return fired


def below(term: Term, path: Path = ()) -> Iterator[Path]:
    """All places in a term, outermost first."""
    yield path
    for number, child in enumerate(children(term)):
        yield from below(child, (*path, number))


def _straightened(run: Run, value: Path, at: Path) -> bool:
    """Whether one rule fired at a place of the value."""
    term = run.at((*value, *at))
    if not isinstance(term, Pattern) or is_view(term):
        return False
    if term.name == "reduce":
        return any(run.fire(rule, (*value, *at)) for rule in SUMS) or _operands_off(run, value, at, term)
    if term.name != "map" or len(term.args) != 2:
        return False
    function = term.args[0]
    if is_view(function):
        return False
    if not isinstance(function, Lambda):
        return run.fire(ROWS, (*value, *at))
    core = _core(function.body, (*at, 0, 0))
    return core != (*at, 0, 0) and fire_fission(run, value, (*at, 0), core)


def _core(term: Term, path: Path) -> Path:
    """Where the work is below casts and changes of layout."""
    while True:
        inner, path = without_casts(term, path)
        if not isinstance(inner, Pattern):
            return path
        if inner.name in LAYOUT and inner.name not in ("zip", "tuple", "array") and not is_view(inner):
            number = len(inner.args) - 1
        elif inner.name == "map" and len(inner.args) == 2 and is_view(inner.args[0]) and not is_view(inner):
            number = 1
        else:
            return path
        term, path = inner.args[number], (*path, number)


def _operands_off(run: Run, value: Path, at: Path, term: Pattern) -> bool:
    """An operand of a sum of products that is rearranged for each element, rearranged for all of them before."""
    if len(term.args) < 3 or not isinstance(data := term.args[2], Pattern) or data.name != "map" or len(data.args) < 2:
        return False
    operands = data.args[1]
    parts = operands.args if isinstance(operands, Pattern) and operands.name == "zip" else (operands,)
    for number, part in enumerate(parts):
        if isinstance(part, Var) or not is_view(part):
            continue
        path = (*at, 2, 1, number) if len(parts) > 1 else (*at, 2, 1)
        around = [b for b, names in binders(run.at(value), path) if free_names(part).intersection(names)]
        if around and fire_fission(run, value, around[-1], path):
            return True
    return False


def operation_of(term: Term) -> Scalar | Pattern | None:
    """The primitive, or the reduction, that the value of a single operation is about."""
    for at in below(term):
        inner, _ = without_casts(at_path(term, at))
        if isinstance(inner, Pattern) and inner.name in ("reduce", "scan", "call"):
            return inner
        if isinstance(inner, Scalar):
            return inner
    return None
