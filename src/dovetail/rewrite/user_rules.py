"""Rules from a TOML file.

[[rule]]
name   = "scale-twice"
before = "map(\\\\v -> v * ?a, map(\\\\v -> v * ?b, ?x))"
after  = "map(\\\\v -> v * (?a * ?b), ?x)"
kind   = "relaxed"
error  = "one more rounding of each product"
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

from dovetail.base.errors import RuleError
from dovetail.base.suggest import closest
from dovetail.rewrite.rule import Rule
from dovetail.rewrite.rule_types import check_types
from dovetail.rewrite.rules import Rules

Check = tuple[str, Callable[[object], bool]]


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _are_texts(value: object) -> bool:
    return _is_text(value) or (isinstance(value, list) and all(map(_is_text, value)))


TEXT: Check = ("a text", _is_text)
TEXTS: Check = ("a text or a list of texts", _are_texts)
KEYS: dict[str, Check] = {
    "name": TEXT, "before": TEXT, "after": TEXT, "when": TEXTS, "types": TEXTS, "choose": TEXTS, "kind": TEXT,
    "level": TEXT, "error": TEXT, "doc": TEXT,
}  # fmt: skip
REQUIRED = ("name", "before", "after")
MOST_BYTES = 1 << 20


def read_rules(path: str | Path) -> Rules:
    """The rules of a file, each read and type-checked; a RuleError says file, rule and key."""
    file = str(path)
    try:
        with Path(path).open("rb") as opened:
            data = opened.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise RuleError(f"the rules are longer than {MOST_BYTES} bytes", where=file)
        tables = tomllib.loads(data.decode("utf-8"))
    except tomllib.TOMLDecodeError as problem:
        hint = "in \"...\" a backslash is written twice, in '...' once"
        raise RuleError(f"not a TOML file: {problem}", where=file, hint=hint) from None
    except (OSError, UnicodeDecodeError) as problem:
        raise RuleError(f"the rules cannot be read: {problem}", where=file) from None
    return rules_from(tables, file)


def rules_from(tables: dict[str, object], file: str) -> Rules:
    """The rules of a file's tables."""
    for key in tables:
        if key != "rule":
            raise RuleError(f"unknown key '{key}'", where=file, hint="[[rule]] tables alone")
    items = tables.get("rule", [])
    if not isinstance(items, list):
        raise RuleError("'rule' is not a list of tables", where=file, hint="write [[rule]]")
    rules: dict[str, Rule] = {}
    for number, item in enumerate(items, 1):
        place = f"{file}: [[rule]] #{number}"
        rule = _rule(item, place)
        if rule.name in rules:
            raise RuleError(f"rule '{rule.name}' is described twice", where=place)
        rules[rule.name] = _checked(rule, place)
    return Rules(tuple(rules.values()))


def _rule(item: object, place: str) -> Rule:
    if not isinstance(item, dict):
        raise RuleError("expected a table", where=place)
    if _is_text(item.get("name")):
        place += f" '{item['name']}'"
    for key, value in item.items():
        if key not in KEYS:
            raise RuleError(f"unknown key '{key}'", where=place, hint=closest(key, KEYS))
        expected, accepts = KEYS[key]
        if not accepts(value):
            raise RuleError(f"'{key}' should be {expected}, not {value!r}", where=f"{place}, key '{key}'")
    for key in REQUIRED:
        if key not in item:
            raise RuleError(f"missing key '{key}'", where=place, hint=f'{key} = "..." in every [[rule]]')
    texts = {key: str(value) for key, value in item.items() if KEYS[key] is TEXT}
    lists = {key: _values(value) for key, value in item.items() if KEYS[key] is TEXTS}
    return Rule(
        name=texts["name"],
        before=texts["before"],
        after=texts["after"],
        when=lists.get("when", ()),
        types=lists.get("types", ()),
        choose=lists.get("choose", ()),
        kind=texts.get("kind", "bit-exact"),
        level=texts.get("level", "algorithmic"),
        doc=texts.get("doc", ""),
        error=texts.get("error", ""),
    )


def _values(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else (str(value),)


def _checked(rule: Rule, place: str) -> Rule:
    try:
        check_types(rule)
    except RuleError as problem:
        where = "\n".join(filter(None, (place.partition(": ")[0], problem.where)))
        raise RuleError(problem.what, where=where, why=problem.why, hint=problem.hint) from None
    return rule
