"""The machine we run on, as a target: the best shipped one whose features are all here, with what was measured.

A target is chosen by features, never by name alone: a hypervisor may hide instructions that the processor's model
has. Where something cannot be found out, a stated default stands in for it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import llvmlite.binding as llvm

from dovetail.targets.files import Tables, read_target, shipped_tables, shipped_targets
from dovetail.targets.model import Target
from dovetail.targets.topology import Cache, counted_on, find_caches, find_cores

_FALLBACK = "generic"


@dataclass(frozen=True, slots=True)
class Host:
    """What was found out about a machine. ``notes`` say where it came from and what stood in for the unknown."""

    triple: str
    cpu: str
    features: frozenset[str]
    absent: frozenset[str] = frozenset()
    """Features LLVM knows of that this machine lacks."""
    cores: int = 1
    caches: tuple[Cache, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def architecture(self) -> str:
        return self.triple.split("-")[0]


def detect_host() -> Target:
    """The target that stands for this machine; its ``reason`` says why."""
    host = find_host()
    return replace(read_target("host", host_tables), reason=choose(host)[1])


def missing_features(target: Target) -> tuple[str, ...]:
    """What this machine lacks to run the target's code; empty when it can. Architectures count as features."""
    return missing_on(find_host(), target)


def missing_on(host: Host, target: Target) -> tuple[str, ...]:
    """What ``host`` lacks to run the target's code."""
    architecture = target.llvm.triple.split("-")[0] if target.llvm else "llvm"
    if architecture not in ("", host.architecture):
        return (architecture,)
    return tuple(sorted(target.features - host.features))


def host_tables() -> Tables:
    """This machine as the tables of a target file that inherits from the one chosen for it."""
    return tables_for(find_host())


def tables_for(host: Host) -> Tables:
    """A machine as the tables of a target file."""
    parent, reason = choose(host)
    without = host.absent | {name[1:] for name in _features(parent) if name.startswith("-")}
    signs = [*(f"+{name}" for name in sorted(host.features - without)), *(f"-{name}" for name in sorted(without))]
    tables: Tables = {
        "name": "host",
        "doc": reason,
        "inherits": parent,
        "llvm": {"triple": host.triple, "cpu": host.cpu, "features": signs},
        "unit": [{"name": "core", "count": host.cores}],
    }
    if host.caches:
        described = _cache_names(parent)
        tables["memory"] = [_cache_table(cache, host.cores, described) for cache in host.caches]
        unused = sorted(described - {cache.name for cache in host.caches})
        if unused:
            tables["remove"] = unused
    return tables


def choose(host: Host) -> tuple[str, str]:
    """The shipped target that stands for a machine, and why that one."""
    fitting, lacking = [], []
    for name in shipped_targets():
        table = shipped_tables(name).get("llvm")
        if name == _FALLBACK or not isinstance(table, dict) or not str(table.get("triple", "")):
            continue
        if str(table["triple"]).split("-")[0] != host.architecture:
            continue
        wanted = {feature.removeprefix("+") for feature in _features(name) if not feature.startswith("-")}
        missing = sorted(wanted - host.features)
        level = str(table.get("cpu", "")) == name and name.startswith(host.architecture.replace("_", "-"))
        if missing:
            lacking.append(f"{name} needs {', '.join(missing[:3])}{' and more' if len(missing) > 3 else ''}")
        elif level or table.get("cpu") == host.cpu:
            fitting.append((not level, len(wanted), name))
    notes = "; ".join(host.notes)
    if not fitting:
        why = "; ".join(lacking) or f"no shipped target describes {host.architecture or 'this architecture'}"
        return _FALLBACK, "; ".join(filter(None, (f"{host.cpu}: scalar code, because {why}", notes)))
    best = max(fitting)[2]
    return best, "; ".join(filter(None, (f"{host.cpu}: every feature of {best} is here", *lacking, notes)))


@cache
def find_host() -> Host:
    """This machine, looked at once per process."""
    triple = str(llvm.get_process_triple())
    notes: list[str] = []
    try:
        known = dict(llvm.get_host_cpu_features())
    except RuntimeError:
        known = {}
        notes.append("LLVM cannot tell this processor's features")
    cores, core_note = find_cores()
    caches, cache_note = find_caches(triple.split("-")[0])
    counted = tuple(counted_on(cache, cores) for cache in caches)
    for shown, mine in zip(caches, counted, strict=True):
        if mine != shown:
            cache_note += f"; of {shown.bytes >> 20} MiB of {shown.name} {mine.bytes >> 20} are counted on"
    return Host(
        triple,
        str(llvm.get_host_cpu_name()),
        frozenset(name for name, here in known.items() if here),
        frozenset(name for name, here in known.items() if not here),
        cores,
        counted,
        (*notes, core_note, cache_note),
    )


def _features(name: str) -> list[str]:
    """The features a shipped target names itself."""
    table = shipped_tables(name).get("llvm", {})
    return [str(feature) for feature in table.get("features", [])] if isinstance(table, dict) else []


def _cache_table(cache: Cache, cores: int, described: set[str]) -> Tables:
    """A cache with its size; one that the parent target does not describe gets the rates of an L3."""
    table: Tables = {"name": cache.name, "kind": "cache", "bytes": cache.bytes, "align": cache.line_bytes}
    table["per"] = "core" if cores == 1 or (cache.level < 3 and cache.sharers <= 2) else ""
    if cache.name not in described:
        table |= {"bytes_per_cycle": 16, "latency_cycles": 50}
    return table


def _cache_names(name: str) -> set[str]:
    """Caches that a shipped target describes, with those it inherits."""
    tables = shipped_tables(name)
    memories = tables.get("memory", [])
    assert isinstance(memories, list)
    own = {str(memory["name"]) for memory in memories if str(memory["name"]).startswith("L")}
    parent = tables.get("inherits")
    return own | (_cache_names(parent) if isinstance(parent, str) else set())
