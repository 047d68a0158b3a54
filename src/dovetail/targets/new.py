"""The text of a new target file: the template under another name."""

from __future__ import annotations

import re

from dovetail.base.errors import TargetError
from dovetail.targets.files import SHIPPED, TEMPLATE, shipped_targets

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")


def new_target(name: str) -> str:
    """A target file for a machine called ``name``, complete and commented; a TargetError when it cannot be a name."""
    if not _NAME.fullmatch(name) or name.endswith((".toml", ".")):
        hint = "a letter, then letters, digits, _ - and . (64 at most), without .toml: my-chip"
        raise TargetError(f"'{name}' cannot be the name of a target", hint=hint)
    if name in ("host", TEMPLATE, *shipped_targets()):
        raise TargetError(f"there is a target '{name}' already", hint=f"another name, e.g. my-{name}")
    text = (SHIPPED / f"{TEMPLATE}.toml").read_text(encoding="utf-8")
    return text.replace(f'name = "{TEMPLATE}"', f'name = "{name}"', 1).replace(" FILE", f" {name}.toml")
