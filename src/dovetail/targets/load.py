"""``load_target``: a TOML file, or the name of a shipped target, -> ``Target``.

Tables are in ``tables``, families in ``expand``, placeholders in ``template``. Shipped targets are loaded once per
process; files every time, since they may have been edited.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from dovetail.base.errors import ParseError, TargetError
from dovetail.ir.index import Index
from dovetail.ir.parse import parse_index
from dovetail.ir.program import Size
from dovetail.targets.expand import Machine, expand
from dovetail.targets.model import Instruction, Layout, Llvm, Memory, MemoryKind, State, Target, Unit
from dovetail.targets.tables import Entry, Raw, merge, read_raw, require_keys, unknown

SHIPPED = Path(__file__).parent


def load_target(name: str | Path) -> Target:
    """The target called ``name`` (one that is shipped), or described by the file at that path."""
    path = _find(name, None)
    return _shipped(path.stem) if path.parent == SHIPPED else build_target(_read(path, ()), path)


def shipped_targets() -> tuple[str, ...]:
    """Names of the targets that come with the package, sorted."""
    return tuple(sorted(path.stem for path in SHIPPED.glob("*.toml")))


def with_digest(target: Target, raw_digest: str) -> Target:
    """``target`` with the hash of ``raw_digest`` and of all that detection may have filled in."""
    facts = (raw_digest, target.llvm, target.units, target.memories, tuple(i.name for i in target.instructions))
    return replace(target, digest=hashlib.sha256(repr(facts).encode()).hexdigest()[:32])


def build_target(raw: Raw, path: Path) -> Target:
    """The target that merged tables describe."""
    require_keys(raw)
    entries = raw.entries
    units = tuple(_unit(entry) for entry in entries["unit"].values())
    memories = tuple(_memory(entry, entries["unit"]) for entry in entries["memory"].values())
    layouts = tuple(_layout(entry) for entry in entries["layout"].values())
    widths = _widths(raw, memories)
    machine = Machine(
        frozenset(entries["memory"]),
        frozenset(entries["unit"]),
        frozenset(entries["state"]),
        {layout.name: len(layout.elements) for layout in layouts},
        widths,
    )
    instructions = _instructions(raw, machine)
    _check_whole(raw, memories)
    target = Target(
        raw.top.text("name") or path.stem,
        raw.top.text("doc"),
        units,
        memories,
        instructions,
        layouts,
        tuple(_state(entry) for entry in entries["state"].values()),
        _llvm(raw.tables["llvm"]) if "llvm" in raw.tables else None,
        raw.top.number("frequency_hz"),
        widths,
        raw.parents,
        "" if path.parent == SHIPPED else str(path),
        by_name={instruction.name: instruction for instruction in instructions},
    )
    return with_digest(target, _digest(raw, instructions))


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


@lru_cache(maxsize=None)
def _shipped(name: str) -> Target:
    path = SHIPPED / f"{name}.toml"
    return build_target(_read(path, ()), path)


def _read(path: Path, children: tuple[Path, ...]) -> Raw:
    """The tables of a file over those of everything it inherits from."""
    if path in children:
        chain = " -> ".join(p.stem for p in (*children[children.index(path) :], path))
        raise TargetError(f"a cycle in 'inherits': {chain}", where=str(path), hint="let one of them inherit nothing")
    own = read_raw(_toml(path), _shown(path))
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


def _unit(entry: Entry) -> Unit:
    count = entry.values["count"]
    grid = tuple(int(str(n)) for n in count) if isinstance(count, list) else (int(entry.number("count")),)
    if not grid or 0 in grid:
        raise TargetError("a unit there are none of", where=entry.where("count"), hint="count = 1 or more")
    return Unit(entry.text("name"), grid, entry.text("index"))


def _memory(entry: Entry, units: dict[str, Entry]) -> Memory:
    kinds = {kind.value: kind for kind in MemoryKind}
    kind = entry.text("kind")
    if kind not in kinds:
        raise unknown("kind of memory", kind, kinds, entry.where("kind"))
    per = entry.text("per")
    if per and per not in units:
        raise unknown("unit", per, units, entry.where("per"))
    size, count, align = (int(entry.number(key, default)) for key, default in (("bytes", 0), ("count", 0), ("align", 1)))
    if kinds[kind] is MemoryKind.REGISTERS and (count == 0 or size % count):
        hint = "bytes = count * bytes of one register"
        raise TargetError(f"{size} bytes are not {count} registers", where=entry.where("count"), hint=hint)
    if align == 0 or align & (align - 1):
        raise TargetError(f"an alignment of {align}", where=entry.where("align"), hint="a power of two")
    rates = [entry.number(key) for key in ("bytes_per_cycle", "latency_cycles", "startup_cycles")]
    space = int(entry.number("address_space"))
    return Memory(entry.text("name"), kinds[kind], size, per, *rates, align, count, space)


def _layout(entry: Entry) -> Layout:
    names = entry.texts("elements")
    sizes = tuple(Size(name, 0, 0) for name in names)

    def index(key: str, text: str) -> Index:
        try:
            return parse_index(text, sizes, key)
        except ParseError as problem:
            where = f"{entry.where(key)}\n{problem.where}"
            raise TargetError(problem.what, where=where, hint=problem.hint) from None

    places = tuple(index("places", text) for text in entry.texts("places"))
    xors = []
    for item in entry.items("xor"):
        assert isinstance(item, list)
        if item[0] >= len(places):
            what = f"xor of dimension {item[0]} of a layout with {len(places)}"
            raise TargetError(what, where=entry.where("xor"))
        xors.append((int(item[0]), index("xor", str(item[1]))))
    units = tuple(index("units", text) for text in entry.texts("units"))
    return Layout(entry.text("name"), names, units, places, tuple(xors))


def _state(entry: Entry) -> State:
    return State(entry.text("name"), entry.text("enter"), entry.text("leave"), entry.texts("declares"))


def _llvm(entry: Entry) -> Llvm:
    return Llvm(
        entry.text("triple"),
        entry.text("cpu"),
        entry.texts("features"),
        entry.text("calling_convention"),
        entry.text("definitions"),
    )


def _widths(raw: Raw, memories: tuple[Memory, ...]) -> tuple[int, ...]:
    entry = raw.tables.get("vector")
    if entry is None:
        return ()
    widths = tuple(sorted({int(str(width)) for width in entry.items("widths")}))
    registers = next((m for m in memories if m.kind is MemoryKind.REGISTERS), None)
    for width in widths:
        if width < 8 or width & (width - 1):
            raise TargetError(f"a vector width of {width} bytes", where=entry.where("widths"), hint="a power of two, 8 up")
        if registers is None or width > registers.bytes // registers.count:
            found = "there are none" if registers is None else f"a register has {registers.bytes // registers.count}"
            raise TargetError(f"vectors of {width} bytes do not fit a register: {found}", where=entry.where("widths"))
    return widths


def _instructions(raw: Raw, machine: Machine) -> tuple[Instruction, ...]:
    found: dict[str, Instruction] = {}
    for entry in raw.entries["instruction"].values():
        file = entry.places.get("object", entry.place).file
        folder = Path(file).parent if "object" in entry.values else None
        for instruction in expand(entry, machine, folder):
            if instruction.name in found:
                raise TargetError(f"instruction '{instruction.name}' is described twice", where=str(entry.place))
            found[instruction.name] = instruction
    return tuple(found.values())


def _check_whole(raw: Raw, memories: tuple[Memory, ...]) -> None:
    kinds = [memory.kind for memory in memories]
    if kinds.count(MemoryKind.MAIN) != 1:
        hint = 'one [[memory]] with kind = "main", or inherits = "generic"'
        raise TargetError(f"{kinds.count(MemoryKind.MAIN)} main memories", where=str(raw.top.place), hint=hint)


def _digest(raw: Raw, instructions: tuple[Instruction, ...]) -> str:
    """Hash of all tables and of the object files they call into."""
    entries = {section: [entry.values for entry in found.values()] for section, found in raw.entries.items()}
    tables = {name: entry.values for name, entry in raw.tables.items()}
    state = hashlib.sha256(json.dumps([entries, tables], sort_keys=True).encode())
    for path in sorted({i.object for i in instructions if i.object is not None}):
        state.update(path.read_bytes())
    return state.hexdigest()
