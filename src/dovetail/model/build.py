"""From a graph with its data to one callable: passes, regions, programs, code, memory, steps."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from dovetail.base.errors import GraphError, TargetError
from dovetail.base.limits import DEFAULT_MODEL_LIMITS, ModelLimits
from dovetail.graph.grouping import regions
from dovetail.graph.optimise import optimise
from dovetail.ir.graph.bound import BoundGraph
from dovetail.ir.graph.verify import verify
from dovetail.ir.program import Program
from dovetail.model.assemble import Piece, assemble, check_arena, check_memory
from dovetail.model.compiled import CompiledModel
from dovetail.model.finished import Finished
from dovetail.model.in_place import may_take_over
from dovetail.model.kept import find, keep, model_key
from dovetail.model.parts import Part, from_bytes, to_bytes
from dovetail.model.programs import canonical_program
from dovetail.model.report import COMPILED, ModelReport, Note, Row
from dovetail.model.workers import Setting, compiled_parts
from dovetail.ops.table import OPERATORS
from dovetail.runtime.beside import symbols_beside
from dovetail.runtime.cache import Cache, open_cache
from dovetail.runtime.model_image import Machine
from dovetail.runtime.threads import thread_count
from dovetail.stored import Shelf
from dovetail.targets.host import missing_features
from dovetail.targets.load import load_target
from dovetail.targets.model import Target

WORTH_SECONDS = 0.25
"""A model that was made in less is not worth its place on disk."""
_KIND = "part"
Progress = Callable[[int, int, str], None]
"""(done, total, title) after each program."""


def compile_graph(
    bound: BoundGraph,
    target: str | Path | Target = "host",
    threads: int | None = None,
    *,
    cache: bool = True,
    progress: Progress | None = None,
    jobs: int | None = None,
    limits: ModelLimits = DEFAULT_MODEL_LIMITS,
) -> CompiledModel:
    """``bound`` as one function over arrays, its inputs and outputs in order; programs are certified or kept ones.

    ``jobs`` processes compile at the same time, as many as there are cores where nothing is said.
    """
    machine = target if isinstance(target, Target) else load_target(target)
    _check_target(machine)
    count = thread_count(threads, machine)
    store = open_cache() if cache else None
    if bound.graph.sizes:
        raise GraphError("a graph with run-time sizes is compiled for one shape at a time", hint="give them values")
    symbols = symbols_beside(machine.external_instructions)
    key = None if store is None else model_key(bound, machine, count, limits)
    kept = None if store is None or key is None else find(store, key, limits)
    if kept is not None:
        return CompiledModel(kept, symbols, store, key)
    begun = time.perf_counter()
    made = _finished(bound, Setting(machine, _name(target), count, store), limits, progress, jobs)
    finished = replace(made, beside=tuple(symbols))
    if store is not None and key is not None and time.perf_counter() - begun > WORTH_SECONDS:
        keep(store, key, finished)
        return CompiledModel(finished, symbols, store, key)
    return CompiledModel(finished, symbols, store)


def _finished(
    bound: BoundGraph, setting: Setting, limits: ModelLimits, progress: Progress | None, jobs: int | None
) -> Finished:
    """Passes, regions, programs, code, memory, steps."""
    check_memory(bound, verify(bound.graph, OPERATORS), limits)
    bound, records = optimise(bound, OPERATORS)
    types = verify(bound.graph, OPERATORS)
    check_memory(bound, types, limits)
    found = regions(bound.graph, OPERATORS, types)
    named = [canonical_program(bound.graph, r.nodes, OPERATORS, types) if r.kind == COMPILED else None for r in found]
    texts = ["" if one is None else str(one.program) for one in named]
    programs = {text: one.program for text, one in zip(texts, named, strict=True) if one is not None}
    parts = _compiled(programs, dict(zip(texts, (r.title for r in found), strict=True)), setting, progress, jobs)
    pieces = [
        Piece(region) if one is None else Piece(region, parts[text], one.names, may_take_over(one.program))
        for region, one, text in zip(found, named, texts, strict=True)
    ]
    image, constants = assemble(bound, types, pieces, _machine(setting.target), setting.threads)
    check_arena(image, constants, limits)
    rows = tuple(_row(piece, setting.threads) for piece in pieces)
    notes = tuple(Note(record.pass_, record.what, record.why) for record in records)
    report = ModelReport(rows, notes, image.arena_bytes, sum(array.nbytes for array in constants.arrays))
    objects = tuple({part.entry: part.code for part in parts.values()}.values())
    return Finished(image, objects, tuple(constants.arrays), report)


def _compiled(
    programs: Mapping[str, Program],
    titles: Mapping[str, str],
    setting: Setting,
    progress: Progress | None,
    jobs: int | None,
) -> dict[str, Part]:
    """The part of each program, by its text."""
    keys = {text: _key(program, setting) for text, program in programs.items()}
    found = {text: part for text, key in keys.items() if (part := _kept(key, setting.store)) is not None}
    missing = {text: program for text, program in programs.items() if text not in found}
    for text, part in compiled_parts(missing, setting, jobs):
        found[text] = part
        if setting.store is not None:
            setting.store.put(_KIND, keys[text], to_bytes(part))
        if progress is not None:
            progress(len(found), len(programs), titles[text])
    return found


def _key(program: Program, setting: Setting) -> dict[str, str]:
    return {**Shelf(setting.store, program, setting.target).key, "threads": str(setting.threads)}


def _kept(key: Mapping[str, str], store: Cache | None) -> Part | None:
    data = None if store is None else store.get(_KIND, key)
    return None if data is None else from_bytes(data)


def _row(piece: Piece, threads: int) -> Row:
    region, part = piece.region, piece.part
    operators = tuple(node.op for node in region.nodes)
    if part is None:
        return Row(region.title, region.kind, operators)
    return Row(region.title, region.kind, operators, part.algorithm, threads if part.parallel else 1)


def _name(target: str | Path | Target) -> str:
    """What another process finds the target by."""
    if isinstance(target, Target):
        return ""
    return str(target.absolute()) if isinstance(target, Path) else target


def _machine(target: Target) -> Machine:
    llvm = target.llvm
    assert llvm is not None
    return Machine(llvm.triple, tuple(sorted(target.features)), llvm.relax)


def _check_target(target: Target) -> None:
    if target.llvm is None:
        raise TargetError(
            f"'{target.name}' describes a machine for the simulator", hint="models run on processors: target 'host'"
        )
    missing = missing_features(target)
    if missing:
        why = f"it lacks {', '.join(missing)}"
        raise TargetError(f"this machine cannot run code for '{target.name}'", why=why, hint="target 'host'")
