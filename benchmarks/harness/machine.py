"""Where and of what a result is: the commit of the code and the model of the processor."""

import os
import platform
import subprocess
from pathlib import Path

from benchmarks.harness.processes import ROOT


def commit() -> str:
    """The checked-out commit, with ``-dirty`` where tracked files differ from it; "unknown" outside a checkout."""
    try:
        head = _git("rev-parse", "HEAD")
        changed = _git("status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return head + ("-dirty" if changed else "")


def cpu_model() -> str:
    """As the kernel names it, with the number of processors this process may use."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return f"{next(named, platform.processor() or platform.machine())}, {len(os.sched_getaffinity(0))} processors"


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
