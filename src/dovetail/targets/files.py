"""Target files -> ``Target``: finding them, what they inherit, and putting the parts together.

Tables are in ``tables``, families in ``family``, placeholders in ``template``.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from dovetail.base.errors import TargetError
from dovetail.targets.family import Family, Machine, Member
from dovetail.targets.model import InstructionSet, Memory, MemoryKind, Target, Unit
from dovetail.targets.parts import read_layout, read_llvm, read_memory, read_state, read_unit, read_widths
from dovetail.targets.places import check_places
from dovetail.targets.tables import Raw, merge, read_raw, require_keys, unknown

SHIPPED = Path(__file__).parent
TEMPLATE = "template"
"""A shipped file that is there to be copied; not a machine."""
Tables = dict[str, object]


def read_target(name: str | Path, host: Callable[[], Tables]) -> Target:
    """The target called ``name``, or described by the file at that path.

    ``host`` gives the tables of the machine we run on; they are what "host" stands for, here and in ``inherits``.
    """
    sources = _lineage(_find(name, None, host), (), host)
    raw = sources[0].raw
    for source in sources[1:]:
        raw = merge(raw, source.raw)
    return _build(raw, sources)


def shipped_targets() -> tuple[str, ...]:
    """Names of the targets that come with the package, sorted."""
    return tuple(sorted(path.stem for path in SHIPPED.glob("*.toml") if path.stem != TEMPLATE))


@cache
def shipped_tables(name: str) -> Tables:
    """The tables of one shipped file, without what it inherits."""
    return _toml(SHIPPED / f"{name}.toml")


@dataclass(frozen=True, slots=True)
class _Source:
    """One file (or "host", which has none) and its own tables."""

    name: str
    path: Path | None
    raw: Raw


def _build(raw: Raw, sources: list[_Source]) -> Target:
    """The target that merged tables describe; ``sources`` start with the farthest ancestor."""
    own = sources[-1]
    require_keys(raw)
    entries = raw.entries
    units = tuple(read_unit(entry) for entry in entries["unit"].values())
    memories = tuple(read_memory(entry, entries["unit"]) for entry in entries["memory"].values())
    layouts = tuple(read_layout(entry) for entry in entries["layout"].values())
    widths = read_widths(raw, memories)
    machine = Machine(
        frozenset(entries["memory"]),
        {unit.name: len(unit.count) for unit in units},
        frozenset(entries["state"]),
        {layout.name: len(layout.elements) for layout in layouts},
        widths,
    )
    _check_whole(raw, units, memories)
    instructions = _instructions(raw, machine)
    check_places(instructions.values, units, memories, layouts, raw.entries["memory"])
    return Target(
        name=own.raw.top.text("name") or own.name,
        doc=raw.top.text("doc"),
        units=units,
        memories=memories,
        by_name=instructions,
        layouts=layouts,
        states=tuple(read_state(entry) for entry in entries["state"].values()),
        llvm=read_llvm(raw.tables["llvm"]) if "llvm" in raw.tables else None,
        frequency_hz=raw.top.number("frequency_hz"),
        vector_bytes=widths,
        parents=tuple(source.name for source in reversed(sources[:-1])),
        path="" if own.path is None or own.path.parent == SHIPPED else str(own.path),
        digest=_digest(raw),
    )


def _lineage(own: _Source, children: tuple[str, ...], host: Callable[[], Tables]) -> list[_Source]:
    """A source after everything it inherits from, each once, in the order in which they override each other."""
    key = str(own.path or own.name)
    if key in children:
        chain = " -> ".join(Path(child).stem for child in (*children[children.index(key) :], key))
        raise TargetError(
            f"a cycle in 'inherits': {chain}",
            where=own.raw.top.where("inherits"),
            hint="let one of them inherit nothing",
        )
    parents = own.raw.top.values.get("inherits", [])
    names = [parents] if isinstance(parents, str) else own.raw.top.texts("inherits")
    if own.raw.top.texts("remove") and not names:
        raise TargetError("'remove' in a target that inherits nothing", where=own.raw.top.where("remove"))
    found: dict[str, _Source] = {}
    for name in names:
        try:
            parent = _find(name, own.path.parent if own.path else SHIPPED, host)
        except TargetError as problem:
            if problem.where is not None:
                raise
            raise TargetError(problem.what, where=own.raw.top.where("inherits"), hint=problem.hint) from None
        for source in _lineage(parent, (*children, key), host):
            found.setdefault(str(source.path or source.name), source)
    return [*found.values(), own]


def _find(name: str | Path, beside: Path | None, host: Callable[[], Tables]) -> _Source:
    """The source a name or path stands for; ``beside`` is the folder of the file that mentions it."""
    text = str(name)
    if text == "host":
        return _Source("host", None, read_raw(host(), "host", shipped=True))
    if text.endswith(".toml") or "/" in text:
        path = (beside or Path()) / text
        if not path.is_file():
            raise TargetError(f"no target file '{text}'")
        return _read(path)
    for folder in (beside, SHIPPED):
        if folder is not None and (folder / f"{text}.toml").is_file():
            return _read(folder / f"{text}.toml")
    problem = unknown("target", text, ("host", *shipped_targets()), "")
    raise TargetError(problem.what, hint=problem.hint)


def _read(path: Path) -> _Source:
    shipped = path.parent == SHIPPED
    tables = shipped_tables(path.stem) if shipped else _toml(path)
    return _Source(path.stem, path, read_raw(tables, _shown(path), shipped=shipped))


def _toml(path: Path) -> Tables:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as problem:
        raise TargetError(f"not a TOML file: {problem}", where=_shown(path)) from None
    except (OSError, UnicodeDecodeError) as problem:
        raise TargetError(f"the file cannot be read: {problem}", where=_shown(path)) from None


def _shown(path: Path) -> str:
    return path.name if path.parent == SHIPPED else str(path)


def _instructions(raw: Raw, machine: Machine) -> InstructionSet:
    """All instructions. Those of a user's file are built, and so checked, at once; tests check the shipped ones."""
    members: list[Member] = []
    names: set[str] = set()
    for entry in raw.entries["instruction"].values():
        folder = Path(entry.places.get("object", entry.place).file).parent if "object" in entry.values else None
        for member in Family(entry, machine, folder).members():
            if member.name in names:
                raise TargetError(f"instruction '{member.name}' is described twice", where=str(entry.place))
            names.add(member.name)
            members.append(member)
    found = InstructionSet(members)
    for member in members:
        if not member.family.entry.place.shipped:
            found[member.name]
    return found


def _check_whole(raw: Raw, units: tuple[Unit, ...], memories: tuple[Memory, ...]) -> None:
    for unit in units:
        if unit.runs and unit.runs not in shipped_targets():
            raise unknown("target", unit.runs, shipped_targets(), raw.entries["unit"][unit.name].where("runs"))
    kinds = [memory.kind for memory in memories]
    if kinds.count(MemoryKind.MAIN) != 1:
        hint = 'one [[memory]] with kind = "main", or inherits = "generic"'
        count = kinds.count(MemoryKind.MAIN) or "no"
        raise TargetError(f"a target with {count} main memory", where=str(raw.top.place), hint=hint)


def _digest(raw: Raw) -> str:
    """Hash of all tables and of the object files they call into."""
    entries = {section: [entry.values for entry in found.values()] for section, found in raw.entries.items()}
    tables = {name: entry.values for name, entry in raw.tables.items()}
    state = hashlib.sha256(json.dumps([entries, tables]).encode())
    for entry in raw.entries["instruction"].values():
        if "object" in entry.values:
            folder = Path(entry.places.get("object", entry.place).file).parent
            state.update((folder / entry.text("object")).read_bytes())
    return state.hexdigest()[:32]
