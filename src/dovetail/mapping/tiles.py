"""Fits of the instructions that do whole tiles in memory: what a planner asks for besides single vectors."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from dovetail.ir.fit import Fit
from dovetail.ir.program import Program
from dovetail.mapping.find import find_mappings
from dovetail.targets.model import Target


def tile_fits(program: Program, target: Target) -> tuple[Fit, ...]:
    """Whole statements of ``program`` done by tile instructions of ``target``; at once () where it has none.

    Conditions are not asked about: a nest calls the instruction only for tiles of which every point is there.
    """
    only = _only_tiles(target)
    if only is None:
        return ()
    open_program = replace(program, statements=tuple(replace(s, where=()) for s in program.statements))
    return find_mappings(open_program, only, misfits=False, nodes=False).fits


@lru_cache(maxsize=16)
def _only_tiles(target: Target) -> Target | None:
    """The same machine with its tile instructions alone."""
    found = target.tile_instructions
    return replace(target, by_name={i.name: i for i in found}) if found else None
