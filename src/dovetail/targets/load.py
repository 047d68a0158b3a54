"""``load_target``: the name of a shipped target, "host", or a TOML file -> ``Target``."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from dovetail.targets.files import read_target, shipped_targets
from dovetail.targets.host import detect_host, host_tables
from dovetail.targets.model import Target


def load_target(name: str | Path) -> Target:
    """The target called ``name`` (shipped, or "host"), or described by the file at that path.

    Named ones are loaded once per process; files every time, since they may have been edited.
    """
    return _named(str(name)) if str(name) in ("host", *shipped_targets()) else read_target(name, host_tables)


def host_target(target: Target) -> Target | None:
    """The target whose scalar instructions run what none of ``target`` fits; None when it has no such unit."""
    return load_target(target.host.runs) if target.host else None


@cache
def _named(name: str) -> Target:
    return detect_host() if name == "host" else read_target(name, host_tables)
