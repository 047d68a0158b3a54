"""From a graph with its data to one callable: passes, regions, programs, code, memory, steps."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from dovetail.base.errors import GraphError, TargetError
from dovetail.base.limits import DEFAULT_MODEL_LIMITS, ModelLimits
from dovetail.graph.grouping import Region, regions
from dovetail.graph.optimise import optimise
from dovetail.ir.graph.bound import BoundGraph
from dovetail.ir.graph.graph import Type
from dovetail.ir.graph.verify import Operators, verify
from dovetail.model.assemble import Piece, assemble, check_arena, check_memory
from dovetail.model.build_parts import parts_of
from dovetail.model.compiled import CompiledModel
from dovetail.model.finished import Finished
from dovetail.model.general import Family, Shapes
from dovetail.model.in_place import may_take_over
from dovetail.model.kept import find, keep, model_key
from dovetail.model.packed import Packed, digest
from dovetail.model.programs import Named, canonical_program
from dovetail.model.report import COMPILED, ModelReport, Note, Row
from dovetail.model.stated import Stated
from dovetail.model.workers import Setting
from dovetail.runtime.beside import symbols_beside
from dovetail.runtime.cache import open_cache
from dovetail.runtime.model_image import Machine
from dovetail.runtime.threads import thread_count
from dovetail.targets.host import missing_features
from dovetail.targets.load import load_target
from dovetail.targets.model import Target

if TYPE_CHECKING:
    from dovetail.rewrite.patterns.pattern import Pattern

WORTH_SECONDS = 0.25
"""A model that was made in less is not worth its place on disk."""
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
    shapes: Shapes | None = None,
    patterns: tuple[Pattern, ...] = (),
) -> CompiledModel:
    """``bound`` as one function over arrays, its inputs and outputs in order; programs are certified or kept ones.

    ``jobs`` processes compile at the same time, as many as there are cores where nothing is said. ``shapes`` knows what
    was compiled for the same model before: code with run-time sizes is shared with that. ``patterns`` are put in place
    first.
    """
    machine = target if isinstance(target, Target) else load_target(target)
    _check_target(machine)
    count = thread_count(threads, machine)
    store = open_cache() if cache else None
    if bound.graph.sizes:
        raise GraphError("a graph with run-time sizes is compiled for one shape at a time", hint="give them values")
    symbols = symbols_beside(machine.external_instructions)
    stated = _stated(bound, patterns, machine)
    bound = stated.bound
    packed = None if shapes is None else shapes.packed
    key = None if store is None else model_key(bound, machine, count, limits, packed.digest if packed else digest)
    family = None if shapes is None else shapes.family(bound.graph)
    shares = family is not None and family.shares
    kept = None if store is None or key is None else find(store, key, limits)
    if kept is None and store is not None and key is not None and shares:
        key = {**key, "sizes": "at run time"}
        kept = find(store, key, limits)
    if family is not None:
        family.graphs += 1
    if kept is not None:
        if family is not None:
            family.unread = bound
        return CompiledModel(kept, symbols, store, key)
    begun = time.perf_counter()
    setting = Setting(machine, _name(target), count, store)
    made = _finished(stated, setting, limits, progress, jobs, _Sharing(family, shares, packed))
    finished = replace(made, beside=tuple(symbols))
    worth = time.perf_counter() - begun > WORTH_SECONDS and (family is None or not shares or family.graphs == 1)
    if store is not None and key is not None and worth:
        keep(store, key, finished)
        return CompiledModel(finished, symbols, store, key)
    return CompiledModel(finished, symbols, store)


@dataclass(frozen=True, slots=True)
class _Sharing:
    """What a graph shares with the same one in other shapes: code if ``shares``, and packed constants."""

    family: Family | None
    shares: bool
    packed: Packed | None


def _stated(bound: BoundGraph, patterns: tuple[Pattern, ...], target: Target) -> Stated:
    """The graph with patterns in place; what looks for them is loaded when there are some."""
    if not patterns:
        return Stated(bound)
    found: Stated = import_module("dovetail.model.mapped").stated(bound, patterns, target)
    return found


def _finished(
    stated: Stated,
    setting: Setting,
    limits: ModelLimits,
    progress: Progress | None,
    jobs: int | None,
    sharing: _Sharing,
) -> Finished:
    """Passes, regions, programs, code, memory, steps."""
    operators = stated.operators
    check_memory(stated.bound, verify(stated.bound.graph, operators), limits)
    bound, records = optimise(stated.bound, operators)
    types = verify(bound.graph, operators)
    check_memory(bound, types, limits)
    near_bytes = _near_bytes(setting.target, setting.threads)
    found, named = _programs(bound, types, operators, near_bytes)
    texts = ["" if one is None else str(one.program) for one in named]
    programs = {text: one.program for text, one in zip(texts, named, strict=True) if one is not None}
    titles = dict(zip(texts, (r.title for r in found), strict=True))

    def done(count: int, text: str) -> None:
        if progress is not None:
            progress(count, len(programs), titles[text])

    family = sharing.family
    if sharing.shares and family is not None and family.unread is not None:
        _look(family.unread, family, operators, near_bytes)
    parts = parts_of(programs, setting, jobs, family, sharing.shares, done)
    pieces = [
        Piece(region) if one is None else Piece(region, parts[text], one.names, may_take_over(one.program))
        for region, one, text in zip(found, named, texts, strict=True)
    ]
    image, constants = assemble(bound, types, pieces, _machine(setting.target), setting.threads, sharing.packed)
    check_arena(image, constants, limits)
    rows = tuple(_row(piece, setting.threads) for piece in pieces)
    own = (*stated.notes, *_called(stated, pieces))
    notes = (*own, *(Note(record.pass_, record.what, record.why) for record in records))
    report = ModelReport(rows, notes, image.arena_bytes, sum(array.nbytes for array in constants.arrays))
    objects = tuple({part.entry: part.code for part in parts.values()}.values())
    return Finished(image, objects, tuple(constants.arrays), report)


def _called(stated: Stated, pieces: Sequence[Piece]) -> tuple[Note, ...]:
    """What became of the calls that patterns ask for."""
    if not stated.calls:
        return ()
    code = {node.op: piece.part.code for piece in pieces if piece.part is not None for node in piece.region.nodes}
    found: tuple[Note, ...] = import_module("dovetail.model.mapped").called(stated.calls, code)
    return found


def show(
    bound: BoundGraph,
    shapes: Shapes,
    target: str | Path | Target = "host",
    threads: int | None = None,
    patterns: tuple[Pattern, ...] = (),
) -> None:
    """Tells ``shapes`` of a graph in a shape that is not compiled now."""
    machine = target if isinstance(target, Target) else load_target(target)
    stated = _stated(bound, patterns, machine)
    near_bytes = _near_bytes(machine, thread_count(threads, machine))
    _look(stated.bound, shapes.family(stated.bound.graph), stated.operators, near_bytes)


def _look(bound: BoundGraph, family: Family, operators: Operators, near_bytes: int) -> None:
    family.unread = None
    optimised, _ = optimise(bound, operators)
    _, named = _programs(optimised, verify(optimised.graph, operators), operators, near_bytes)
    family.look(one.program for one in named if one is not None)


def _programs(
    bound: BoundGraph, types: Mapping[str, Type], operators: Operators, near_bytes: int
) -> tuple[tuple[Region, ...], list[Named | None]]:
    """Regions of a graph, and the programs of those that are compiled."""
    found = regions(bound.graph, operators, types, near_bytes=near_bytes)
    return found, [
        canonical_program(bound.graph, region.nodes, operators, types) if region.kind == COMPILED else None
        for region in found
    ]


def _near_bytes(target: Target, threads: int) -> int:
    """What the units at work keep in caches of their own."""
    return threads * sum(cache.bytes for cache in target.caches[:2])


def _row(piece: Piece, threads: int) -> Row:
    region, part = piece.region, piece.part
    operators = tuple(node.op for node in region.nodes)
    if part is None:
        return Row(region.title, region.kind, operators)
    return Row(region.title, region.kind, operators, part.algorithm, threads if part.parallel else 1, part.values)


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
