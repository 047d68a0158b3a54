"""``load_target``: a TOML file, or the name of a shipped target, -> ``Target``.

Tables are in ``tables``, families in ``family``, placeholders in ``template``. Shipped targets are loaded once per
process; files every time, since they may have been edited.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from functools import cache
from pathlib import Path

from dovetail.base.errors import TargetError
from dovetail.targets.family import Family, Machine, Member
from dovetail.targets.model import InstructionSet, Memory, MemoryKind, Target
from dovetail.targets.parts import read_layout, read_llvm, read_memory, read_state, read_unit, read_widths
from dovetail.targets.tables import Raw, merge, read_raw, require_keys, unknown

SHIPPED = Path(__file__).parent


def load_target(name: str | Path) -> Target:
    """The target called ``name`` (one that is shipped), or described by the file at that path."""
    path = _find(name, None)
    return _shipped(path.stem) if path.parent == SHIPPED else build_target(_read(path, ()), path)


def shipped_targets() -> tuple[str, ...]:
    """Names of the targets that come with the package, sorted."""
    return tuple(sorted(path.stem for path in SHIPPED.glob("*.toml")))


def build_target(raw: Raw, path: Path) -> Target:
    """The target that merged tables describe."""
    require_keys(raw)
    entries = raw.entries
    units = tuple(read_unit(entry) for entry in entries["unit"].values())
    memories = tuple(read_memory(entry, entries["unit"]) for entry in entries["memory"].values())
    layouts = tuple(read_layout(entry) for entry in entries["layout"].values())
    widths = read_widths(raw, memories)
    machine = Machine(
        frozenset(entries["memory"]),
        frozenset(entries["unit"]),
        frozenset(entries["state"]),
        {layout.name: len(layout.elements) for layout in layouts},
        widths,
    )
    _check_whole(raw, memories)
    return Target(
        name=raw.top.text("name") or path.stem,
        doc=raw.top.text("doc"),
        units=units,
        memories=memories,
        by_name=_instructions(raw, machine),
        layouts=layouts,
        states=tuple(read_state(entry) for entry in entries["state"].values()),
        llvm=read_llvm(raw.tables["llvm"]) if "llvm" in raw.tables else None,
        frequency_hz=raw.top.number("frequency_hz"),
        vector_bytes=widths,
        parents=raw.parents,
        path="" if path.parent == SHIPPED else str(path),
        digest=_digest(raw),
    )


def _find(name: str | Path, beside: Path | None) -> Path:
    """The file a name or path stands for; ``beside`` is the folder of the file that mentions it."""
    text = str(name)
    if text.endswith(".toml") or "/" in text:
        path = (beside or Path()) / text
        if not path.is_file():
            raise TargetError(f"no target file '{text}'")
        return path
    for folder in (beside, SHIPPED):
        if folder is not None and (folder / f"{text}.toml").is_file():
            return folder / f"{text}.toml"
    raise unknown("target", text, shipped_targets(), "the targets that come with Dovetail, or a path to a .toml file")


@cache
def _shipped(name: str) -> Target:
    path = SHIPPED / f"{name}.toml"
    return build_target(_read(path, ()), path)


def _read(path: Path, children: tuple[Path, ...]) -> Raw:
    """The tables of a file over those of everything it inherits from."""
    if path in children:
        chain = " -> ".join(p.stem for p in (*children[children.index(path) :], path))
        raise TargetError(f"a cycle in 'inherits': {chain}", where=str(path), hint="let one of them inherit nothing")
    own = read_raw(_toml(path), _shown(path), path.parent == SHIPPED)
    parents = own.top.values.get("inherits", [])
    names = [parents] if isinstance(parents, str) else own.top.texts("inherits")
    merged: Raw | None = None
    lineage: list[str] = []
    for name in names:
        try:
            found = _find(name, path.parent)
        except TargetError as problem:
            raise TargetError(problem.what, where=own.top.where("inherits"), hint=problem.hint) from None
        parent = _read(found, (*children, path))
        lineage += [found.stem, *parent.parents]
        merged = parent if merged is None else merge(merged, parent)
    if merged is None:
        if own.top.texts("remove"):
            raise TargetError("'remove' in a target that inherits nothing", where=own.top.where("remove"))
        return own
    merged.top.values.pop("remove", None)
    merged.top.values.pop("name", None)
    result = merge(merged, own)
    result.parents = tuple(dict.fromkeys(lineage))
    return result


def _toml(path: Path) -> dict[str, object]:
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


def _check_whole(raw: Raw, memories: tuple[Memory, ...]) -> None:
    kinds = [memory.kind for memory in memories]
    if kinds.count(MemoryKind.MAIN) != 1:
        hint = 'one [[memory]] with kind = "main", or inherits = "generic"'
        raise TargetError(f"{kinds.count(MemoryKind.MAIN)} main memories", where=str(raw.top.place), hint=hint)


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
