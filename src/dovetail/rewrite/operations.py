"""A definition as a chain of single operations, each stored: what machines do that have an instruction for each.

map(\\r b -> max(dot(r, x) + b, 0), zip(w, b))     ->     let v1 = map(\\r -> dot(r, x), w) in
                                                         let v2 = map(add, zip(v1, b)) in
                                                         map(\\v -> max(v, 0), v2)
"""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.ir.functional.term import Let, Pattern, Var, free_names
from dovetail.ir.functional.types import Type
from dovetail.rewrite.outline import binders, filled, fission, store
from dovetail.rewrite.passes import next_part
from dovetail.rewrite.run import Run, at_path
from dovetail.rewrite.typed import Path


def to_operations(run: Run) -> None:
    """Fire rules until every stored value is one operation, or what no rule takes apart."""
    number = 0
    while number < len(stored := run.stored()):
        if not _take_out(run, stored[number]):
            number += 1


def _take_out(run: Run, value: Path) -> bool:
    """Take the next part out of a stored value; False where there is none to be taken out."""
    part = next_part(run.at(value))
    if part is None:
        return False
    mentioned = free_names(at_path(run.at(value), part))
    around = [where for where, names in binders(run.at(value), part) if mentioned.intersection(names)]
    if around:
        return fire_fission(run, value, around[-1], part)
    return store_part(run, value, part)


def store_part(run: Run, value: Path, part: Path) -> bool:
    """A part of a stored value stored before it."""
    node = value[:-1] if value and value[-1] == 0 and isinstance(run.at(value[:-1]), Let) else value
    way = (*value[len(node) :], *part)
    old, types, name = run.at(node), run.whole.types, run.fresh("v")
    if not run.fire(store(old, way, name), node, checked=False):
        return False
    if run.at(node) == Let(name, at_path(old, way), filled(old, way, Var(name))):
        run.with_types(_with_stored(types, node, way))
    return True


def _with_stored(types: Mapping[Path, Type], node: Path, way: Path) -> dict[Path, Type]:
    """The types of all parts after the one at ``way`` of ``node`` was stored: all are known, at other places."""
    found: dict[Path, Type] = {}
    part = (*node, *way)
    for path, kind in types.items():
        if path[: len(node)] != node:
            found[path] = kind
        elif path[: len(part)] == part:
            found[(*node, 0, *path[len(part) :])] = kind
        else:
            found[(*node, 1, *path[len(node) :])] = kind
    found[node] = types[node]
    found[(*node, 1, *way)] = types[part]
    return found


def fire_fission(run: Run, value: Path, function: Path, part: Path) -> bool:
    """A part of a function that is mapped, taken out of it; paths are those inside the stored value."""
    at = (*value, *function[:-1])
    state = run.saved()
    if function[-1:] != (0,) or not isinstance(run.at(at), Pattern):
        return False
    at = run.open(at)
    mapped = run.at(at)
    rule = fission(mapped, part[len(function) - 1 :]) if isinstance(mapped, Pattern) and mapped.name == "map" else None
    if rule is None or not run.fire(rule, at):
        run.back(state)
        return False
    run.tidy(value)
    return True
