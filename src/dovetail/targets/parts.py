"""Tables of units, memories, layouts, states and [llvm] -> their values, checked."""

from __future__ import annotations

from dovetail.base.errors import ParseError, TargetError
from dovetail.ir.index import Index
from dovetail.ir.parse import parse_index
from dovetail.ir.program import Size
from dovetail.targets.model import Layout, Llvm, Memory, MemoryKind, State, Unit
from dovetail.targets.tables import Entry, Raw, unknown


def read_unit(entry: Entry) -> Unit:
    count = entry.values["count"]
    grid = tuple(int(str(n)) for n in count) if isinstance(count, list) else (int(entry.number("count")),)
    if not grid or 0 in grid:
        raise TargetError("a unit there are none of", where=entry.where("count"), hint="count = 1 or more")
    return Unit(entry.text("name"), grid, entry.text("index"), entry.text("runs"))


def read_memory(entry: Entry, units: dict[str, Entry]) -> Memory:
    kinds = {kind.value: kind for kind in MemoryKind}
    kind = entry.text("kind")
    if kind not in kinds:
        raise unknown("kind of memory", kind, kinds, entry.where("kind"))
    per = entry.text("per")
    if per and per not in units:
        raise unknown("unit", per, units, entry.where("per"))
    size, count, align = int(entry.number("bytes")), int(entry.number("count")), int(entry.number("align", 1))
    if kinds[kind] is MemoryKind.REGISTERS and (count == 0 or size % count):
        hint = "bytes = count * bytes of one register"
        raise TargetError(f"{size} bytes are not {count} registers", where=entry.where("count"), hint=hint)
    if align == 0 or align & (align - 1):
        raise TargetError(f"an alignment of {align}", where=entry.where("align"), hint="a power of two")
    return Memory(
        entry.text("name"),
        kinds[kind],
        size,
        per,
        bytes_per_cycle=entry.number("bytes_per_cycle"),
        latency_cycles=entry.number("latency_cycles"),
        startup_cycles=entry.number("startup_cycles"),
        ahead_cycles=entry.number("ahead_cycles"),
        align=align,
        count=count,
        address_space=int(entry.number("address_space")),
    )


def read_layout(entry: Entry) -> Layout:
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


def read_state(entry: Entry) -> State:
    return State(entry.text("name"), entry.text("enter"), entry.text("leave"), entry.texts("declares"))


def read_llvm(entry: Entry) -> Llvm:
    return Llvm(
        entry.text("triple"),
        entry.text("cpu"),
        entry.texts("features"),
        entry.text("calling_convention"),
        entry.text("definitions"),
        entry.text("relax"),
    )


def read_widths(raw: Raw, memories: tuple[Memory, ...]) -> tuple[int, ...]:
    entry = raw.tables.get("vector")
    if entry is None:
        return ()
    widths = tuple(sorted({int(str(width)) for width in entry.items("widths")}))
    registers = next((m for m in memories if m.kind is MemoryKind.REGISTERS), None)
    for width in widths:
        if width < 8 or width & (width - 1):
            what = f"a vector width of {width} bytes"
            raise TargetError(what, where=entry.where("widths"), hint="a power of two, 8 or more")
        if registers is None or width > registers.bytes // registers.count:
            found = "there are none" if registers is None else f"a register has {registers.bytes // registers.count}"
            raise TargetError(f"vectors of {width} bytes do not fit a register: {found}", where=entry.where("widths"))
    return widths
