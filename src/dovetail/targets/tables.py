"""The tables of target files: which keys they may hold, and how a child's entries override its parents'.

A file is read into ``Raw``: one ``Entry`` per unit, memory, layout, state and instruction, by name. Every key keeps
the place it was written at, so that a message about a merged target points into the right file.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from dovetail.base.errors import TargetError

Value = object
Check = tuple[str, Callable[[Value], bool]]


def _is_text(value: Value) -> bool:
    return isinstance(value, str)


def _is_count(value: Value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_number(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def _all(check: Callable[[Value], bool]) -> Callable[[Value], bool]:
    return lambda value: isinstance(value, list) and all(check(item) for item in value)


def _is_text_table(value: Value) -> bool:
    return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())


def _is_pair_of_dtypes(value: Value) -> bool:
    return isinstance(value, str) or (_all(_is_text)(value) and isinstance(value, list) and len(value) == 2)


def _is_xor(value: Value) -> bool:
    return isinstance(value, list) and len(value) == 2 and _is_count(value[0]) and _is_text(value[1])


TEXT: Check = ("a text", _is_text)
FLAG: Check = ("true or false", lambda value: isinstance(value, bool))
COUNT: Check = ("a whole number, 0 or more", _is_count)
NUMBER: Check = ("a number, 0 or more", _is_number)
TEXTS: Check = ("a list of texts", _all(_is_text))
COUNTS: Check = ("a list of whole numbers", _all(_is_count))
NAMES: Check = ("a name or a list of names", lambda value: _is_text(value) or _all(_is_text)(value))
GRID: Check = ("a whole number or a list of them", lambda value: _is_count(value) or _all(_is_count)(value))
TEXT_TABLE: Check = ('a table of texts, e.g. { acc = "f32 @ registers" }', _is_text_table)
COST: Check = ('a number or an expression of the parameters, e.g. "4 + n / 8"', lambda v: _is_text(v) or _is_number(v))
DTYPES: Check = ('dtypes ["f32", "f64"], pairs [["f16", "f32"]] or ["i8 i16 -> f32"]', _all(_is_pair_of_dtypes))
LANES: Check = (
    '"vector", "wide" or a list of whole numbers, 1 or more',
    lambda value: value in ("vector", "wide") or _all(lambda item: _is_count(item) and item != 0)(value),
)
XORS: Check = ('a list of [dimension, "index"] pairs', _all(_is_xor))

TOP: dict[str, Check] = {
    "name": TEXT, "doc": TEXT, "inherits": NAMES, "remove": TEXTS, "frequency_hz": NUMBER,
}  # fmt: skip
TABLES: dict[str, dict[str, Check]] = {
    "llvm": {
        "triple": TEXT, "cpu": TEXT, "features": TEXTS, "calling_convention": TEXT, "definitions": TEXT,
        "relax": TEXT,
    },
    "vector": {"widths": COUNTS},
}  # fmt: skip
ENTRIES: dict[str, dict[str, Check]] = {
    "unit": {"name": TEXT, "count": GRID, "index": TEXT, "runs": TEXT},
    "memory": {
        "name": TEXT, "kind": TEXT, "bytes": COUNT, "per": TEXT, "bytes_per_cycle": NUMBER, "latency_cycles": NUMBER,
        "startup_cycles": NUMBER, "ahead_cycles": NUMBER, "align": COUNT, "count": COUNT, "address_space": COUNT,
    },
    "layout": {"name": TEXT, "elements": TEXTS, "places": TEXTS, "units": TEXTS, "xor": XORS},
    "state": {"name": TEXT, "enter": TEXT, "leave": TEXT, "declares": TEXTS},
    "instruction": {
        "name": TEXT, "computes": TEXT, "operands": TEXT_TABLE, "params": TEXT_TABLE, "where": TEXTS, "cycles": COST,
        "latency": COST, "unit": TEXT, "features": TEXTS, "emit": TEXT, "declares": TEXTS, "call": TEXT,
        "object": TEXT, "state": TEXT, "async": FLAG, "broadcast": TEXT, "dtypes": DTYPES, "lanes": LANES,
        "ulps": NUMBER, "along": COUNT,
    },
}  # fmt: skip
REQUIRED = {
    "unit": ("count",),
    "memory": ("kind", "bytes"),
    "layout": ("elements", "places"),
    "state": ("enter", "leave"),
    "instruction": ("computes", "operands"),
}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a key was written: a file and a table in it; ``shipped`` with the package or a user's own."""

    file: str
    table: str
    shipped: bool = False

    def __str__(self) -> str:
        return f"{self.file}: {self.table}" if self.table else self.file


@dataclass(slots=True)
class Entry:
    """The keys of one table, each with the place it came from."""

    place: Place
    values: dict[str, Value]
    places: dict[str, Place] = field(default_factory=dict)

    def where(self, key: str = "") -> str:
        place = self.places.get(key, self.place)
        return f"{place}, key '{key}'" if key else str(place)

    def text(self, key: str, default: str = "") -> str:
        return str(self.values.get(key, default))

    def number(self, key: str, default: float = 0) -> float:
        value = self.values.get(key, default)
        assert isinstance(value, int | float)
        return value

    def items(self, key: str) -> list[Value]:
        value = self.values.get(key, [])
        assert isinstance(value, list)
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        return tuple(str(item) for item in self.items(key))

    def table(self, key: str) -> dict[str, str]:
        value = self.values.get(key, {})
        assert isinstance(value, dict)
        return value

    def overridden_by(self, child: Entry) -> Entry:
        """This entry with the child's keys in place of its own."""
        places = {key: self.places.get(key, self.place) for key in self.values}
        places |= dict.fromkeys(child.values, child.place)
        return Entry(child.place, {**self.values, **child.values}, places)


@dataclass(slots=True)
class Raw:
    """A target's tables before they mean anything; ``entries`` by section, then name."""

    top: Entry
    tables: dict[str, Entry]
    entries: dict[str, dict[str, Entry]]


def read_raw(data: dict[str, Value], file: str, *, shipped: bool) -> Raw:
    """The tables of one file, with every key known and of the right type."""
    known = {**TOP, **TABLES, **ENTRIES}
    for key in data:
        if key not in known:
            raise unknown("key", key, known, file)
    top = Entry(Place(file, "", shipped), {key: value for key, value in data.items() if key in TOP})
    _check(top, TOP)
    tables = {
        name: _table(data[name], Place(file, f"[{name}]", shipped), TABLES[name]) for name in TABLES if name in data
    }
    entries = {section: _section(data.get(section, []), section, file, shipped) for section in ENTRIES}
    return Raw(top, tables, entries)


def _section(items: Value, section: str, file: str, shipped: bool) -> dict[str, Entry]:
    if not isinstance(items, list):
        raise TargetError(f"'{section}' is not a list of tables", where=file, hint=f"write [[{section}]]")
    found: dict[str, Entry] = {}
    for number, item in enumerate(items, 1):
        place = Place(file, f"[[{section}]] #{number}", shipped)
        if not isinstance(item, dict) or not isinstance(item.get("name"), str) or not item["name"]:
            raise TargetError("missing key 'name'", where=str(place), hint=f'name = "..." in every [[{section}]]')
        place = Place(file, f"{place.table} '{item['name']}'", shipped)
        if item["name"] in found:
            raise TargetError(f"{section} '{item['name']}' is described twice", where=str(place))
        found[item["name"]] = _table(item, place, ENTRIES[section])
    return found


def _table(data: Value, place: Place, schema: dict[str, Check]) -> Entry:
    if not isinstance(data, dict):
        raise TargetError("expected a table", where=str(place))
    entry = Entry(place, data)
    _check(entry, schema)
    return entry


def _check(entry: Entry, schema: dict[str, Check]) -> None:
    for key, value in entry.values.items():
        if key not in schema:
            raise unknown("key", key, schema, str(entry.place))
        expected, accepts = schema[key]
        if not accepts(value):
            raise TargetError(f"'{key}' should be {expected}, not {value!r}", where=entry.where(key))


def merge(parent: Raw, child: Raw) -> Raw:
    """The child over the parent: entries by name and then key by key, tables key by key, ``remove`` taken away."""
    removed = child.top.texts("remove")
    names = {name for section in parent.entries.values() for name in section}
    for name in removed:
        if name not in names:
            raise unknown("entry to remove", name, names, child.top.where("remove"))
    entries = {
        section: _override(_without(parent.entries[section], removed), child.entries[section]) for section in ENTRIES
    }
    return Raw(parent.top.overridden_by(child.top), _override(parent.tables, child.tables), entries)


def _without(entries: dict[str, Entry], removed: tuple[str, ...]) -> dict[str, Entry]:
    return {name: entry for name, entry in entries.items() if name not in removed}


def _override(parents: dict[str, Entry], children: dict[str, Entry]) -> dict[str, Entry]:
    merged = dict(parents)
    for name, entry in children.items():
        merged[name] = parents[name].overridden_by(entry) if name in parents else entry
    return merged


def require_keys(raw: Raw) -> None:
    """Raise unless every entry of the merged target has the keys it cannot do without."""
    for section, keys in REQUIRED.items():
        for entry in raw.entries[section].values():
            for key in keys:
                if key not in entry.values:
                    expected = ENTRIES[section][key][0]
                    raise TargetError(f"missing key '{key}'", where=str(entry.place), hint=f"{key} = {expected}")


def unknown(what: str, name: str, known: Iterable[str], where: str) -> TargetError:
    """The error for a name that is not one of ``known``, with the closest that is."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, 1)
    if close:
        hint = f"did you mean '{close[0]}'?"
    else:
        hint = f"one of {', '.join(names)}" if names else f"describe it; the target has no {what} yet"
    return TargetError(f"unknown {what} '{name}'", where=where, hint=hint)
