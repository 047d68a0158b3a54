"""Patterns from a TOML file.

[[pattern]]
name   = "swish"
before = "mul(?x, sigmoid(?x))"
after  = "silu(?x)"
types  = "x: f32[?n, ?k]"
when   = ["?k % 8 == 0"]
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path

from dovetail.base.errors import PatternError
from dovetail.base.suggest import closest
from dovetail.rewrite.patterns.needle import needle
from dovetail.rewrite.patterns.pattern import Pattern, read_pattern
from dovetail.rewrite.user_rules import MOST_BYTES, TEXT, TEXTS, Check

KEYS: dict[str, Check] = {
    "name": TEXT, "before": TEXT, "after": TEXT, "types": TEXTS, "when": TEXTS, "program": TEXT, "call": TEXT,
    "error": TEXT, "doc": TEXT,
}  # fmt: skip
REQUIRED = ("name", "before")
Patterns = str | Path | Pattern | Iterable[Pattern]
"""A file of patterns, a pattern, or several."""


def gathered(patterns: Patterns | None) -> tuple[Pattern, ...]:
    """All patterns, read and checked; a PatternError where two have one name."""
    if patterns is None:
        return ()
    if isinstance(patterns, str | Path):
        return read_patterns(patterns)
    found = tuple(patterns) if isinstance(patterns, Iterable) else (patterns,)
    names: set[str] = set()
    for one in found:
        if not isinstance(one, Pattern):
            hint = "a file, a Pattern, or a list of them"
            raise PatternError(f"{type(one).__name__} is no pattern", hint=hint)
        check_pattern(one)
        if one.name in names:
            raise PatternError(f"two patterns are called '{one.name}'", hint="another name for one of them")
        names.add(one.name)
    return found


def check_pattern(pattern: Pattern) -> None:
    """Raise a PatternError unless the pattern can be looked for."""
    read = read_pattern(pattern)
    needle(read.before, read.name)


def read_patterns(path: str | Path) -> tuple[Pattern, ...]:
    """The patterns of a file, each read and checked; a PatternError says file, pattern and key."""
    file = str(path)
    try:
        with Path(path).open("rb") as opened:
            data = opened.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise PatternError(f"the patterns are longer than {MOST_BYTES} bytes", where=file)
        tables = tomllib.loads(data.decode("utf-8"))
    except tomllib.TOMLDecodeError as problem:
        raise PatternError(f"not a TOML file: {problem}", where=file) from None
    except (OSError, UnicodeDecodeError) as problem:
        raise PatternError(f"the patterns cannot be read: {problem}", where=file) from None
    return patterns_from(tables, file)


def patterns_from(tables: dict[str, object], file: str) -> tuple[Pattern, ...]:
    """The patterns of a file's tables."""
    for key in tables:
        if key != "pattern":
            raise PatternError(f"unknown key '{key}'", where=file, hint="[[pattern]] tables alone")
    items = tables.get("pattern", [])
    if not isinstance(items, list):
        raise PatternError("'pattern' is not a list of tables", where=file, hint="write [[pattern]]")
    found: dict[str, Pattern] = {}
    for number, item in enumerate(items, 1):
        place = f"{file}: [[pattern]] #{number}"
        pattern = _pattern(item, place)
        if pattern.name in found:
            raise PatternError(f"pattern '{pattern.name}' is described twice", where=place)
        try:
            check_pattern(pattern)
        except PatternError as problem:
            where = f"{file}\n{problem.where}" if problem.where else file
            raise PatternError(problem.what, where=where, why=problem.why, hint=problem.hint) from None
        found[pattern.name] = pattern
    return tuple(found.values())


def _pattern(item: object, place: str) -> Pattern:
    if not isinstance(item, dict):
        raise PatternError("expected a table", where=place)
    for key, value in item.items():
        if key not in KEYS:
            raise PatternError(f"unknown key '{key}'", where=place, hint=closest(key, KEYS))
        expected, accepts = KEYS[key]
        if not accepts(value):
            raise PatternError(f"'{key}' should be {expected}, not {value!r}", where=f"{place}, key '{key}'")
    for key in REQUIRED:
        if key not in item:
            raise PatternError(f"missing key '{key}'", where=place, hint=f'{key} = "..." in every [[pattern]]')
    texts = {key: str(value) for key, value in item.items() if KEYS[key] is TEXT}
    lists = {key: _values(value) for key, value in item.items() if KEYS[key] is TEXTS}
    return Pattern(
        name=texts["name"],
        before=texts["before"],
        after=texts.get("after", ""),
        types=lists.get("types", ()),
        when=lists.get("when", ()),
        program=texts.get("program", ""),
        call=texts.get("call", ""),
        error=texts.get("error", ""),
        doc=texts.get("doc", ""),
    )


def _values(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else (str(value),)
