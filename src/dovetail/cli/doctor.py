"""``dovetail doctor``: what this machine is, what is installed, what works, what it can do at best."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Annotated

import typer

from dovetail import __version__
from dovetail.base.errors import DovetailError
from dovetail.cli.options import AsJson, Threads
from dovetail.cli.screen import heading, say, show_json, show_table

PACKAGES = ("llvmlite", "islpy", "numpy", "ml_dtypes", "typer", "rich")
OPTIONAL = ("egglog", "onnx", "torch", "onnxruntime", "openvino")
PROBE = "in x: f32[1024] out y: f32[1024] for i<1024: y[i] = x[i] + 1"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line: what was looked at, what was found, whether that is well."""

    what: str
    found: str
    well: bool = True


def doctor(
    threads: Threads = None,
    measure: Annotated[bool, typer.Option(help="Measure FMA peak and memory bandwidth (a second or two).")] = True,
    as_json: AsJson = False,
) -> None:
    """Say what this machine is and what works on it.

    \b
    Example:
      dovetail doctor

    Looks at the processor, the packages, the target chosen for it and why, compiles and runs a first kernel on one
    and on all cores, and measures what the machine can do at best. Exits with 1 when something does not work.
    """
    sections: dict[str, list[Finding]] = {
        "machine": _machine(),
        "installed": _installed(),
        "works": [_probe(what, look) for what, look in _LOOKS],
    }
    if measure:
        sections["at best"] = _limits(threads)
    if as_json:
        show_json({name: [asdict(finding) for finding in findings] for name, findings in sections.items()})
    else:
        _show(sections)
    if not all(finding.well for findings in sections.values() for finding in findings):
        raise typer.Exit(1)


def _show(sections: dict[str, list[Finding]]) -> None:
    say(f"dovetail {__version__}")
    for name, findings in sections.items():
        heading(name)
        show_table(("", "", ""), ((f.what, _mark(name, f), f.found) for f in findings))


def _mark(section: str, finding: Finding) -> str:
    return "FAILED" if not finding.well else "ok" if section == "works" else ""


def _machine() -> list[Finding]:
    from dovetail.targets.load import load_target

    target = load_target("host")
    caches = ", ".join(f"{cache.name} {cache.bytes // 1024} KiB" for cache in target.caches)
    registers = target.registers
    vectors = f"{registers.count} registers of {max(target.vector_bytes, default=8)} bytes" if registers else "none"
    return [
        Finding("processor", _processor()),
        Finding("system", f"{platform.system()} {platform.machine()}"),
        Finding("cores", f"{target.units[0].count[0]} physical, {len(os.sched_getaffinity(0))} usable threads"),
        Finding("vectors", vectors),
        Finding("caches", caches or "unknown"),
    ]


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or platform.machine())


def _installed() -> list[Finding]:
    found = [Finding("Python", platform.python_version())]
    for name in PACKAGES:
        version = _installed_version(name)
        found.append(Finding(name, version or "missing: pip install dovetail brings it", bool(version)))
    absent = []
    for name in OPTIONAL:
        version = _installed_version(name)
        if version:
            found.append(Finding(name, f"{version} (optional)"))
        else:
            absent.append(name)
    return found + ([Finding("not installed", f"{', '.join(absent)} (optional)")] if absent else [])


def _installed_version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _probe(what: str, look: Callable[[], str]) -> Finding:
    try:
        return Finding(what, look())
    except DovetailError as error:
        return Finding(what, error.message(), well=False)


def _target() -> str:
    from dovetail.targets.load import load_target

    target = load_target("host")
    return f"{target.parents[0] if target.parents else target.name}: {target.reason}"


def _just_in_time() -> str:
    return _run(1)


def _pool() -> str:
    from dovetail.targets.load import load_target

    return _run(max(2, load_target("host").units[0].count[0]))


def _run(threads: int) -> str:
    import numpy as np

    from dovetail.pipeline import compile, program

    kernel = compile(program(PROBE), "host", threads)
    x = np.arange(1024, dtype=np.float32)
    if not np.array_equal(kernel(x), x + 1):
        raise DovetailError(
            "a kernel that adds one to each of 1024 elements is wrong", hint="dovetail targets check host"
        )
    noun = "thread" if threads == 1 else "threads"
    return f"a first kernel ran on {threads} {noun}; compiled in {sum(kernel.seconds.values()) * 1e3:.0f} ms"


def _llvm() -> str:
    from dovetail.runtime.jit import compiler_identity

    known = compiler_identity()
    return f"LLVM {known['llvm']} for {known['triple']}"


def _cache() -> str:
    from dovetail.runtime.cache import open_cache

    stats = open_cache().stats()
    if stats.directory is None:
        return f"not used: {stats.refusal}"
    return f"{stats.directory}: {stats.entries} entries, {stats.bytes / 2**20:.1f} MiB"


_LOOKS: tuple[tuple[str, Callable[[], str]], ...] = (
    ("target", _target),
    ("code generator", _llvm),
    ("compile and run", _just_in_time),
    ("thread pool", _pool),
    ("cache", _cache),
)


def _limits(threads: int | None) -> list[Finding]:
    from dovetail.runtime.peak import Peak, vectors_of
    from dovetail.runtime.threads import thread_count
    from dovetail.targets.load import load_target

    target = load_target("host")
    found = []
    for count in sorted({1, threads or thread_count(None, target)}):
        limits = Peak(vectors_of(target), count)
        rounds = [limits.measure() for _ in range(3)]
        flops, read = max(f for f, _ in rounds), max(r for _, r in rounds)
        noun = "thread" if count == 1 else "threads"
        found.append(Finding(f"{count} {noun}", f"{flops / 1e9:.1f} GFLOP/s (f32 FMA), {read / 1e9:.1f} GB/s read"))
    return found
