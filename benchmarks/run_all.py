"""All benchmarks, one after the other; ends with the last line of each. Run: python -m benchmarks.run_all"""

import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.shapes import SHAPES

RUNS = {
    "gemm": ("benchmarks.gemm",),
    "gemm, 1 thread": ("benchmarks.gemm", "--threads", "1", "--shapes", str(SHAPES / "square1024.json")),
    "conv": ("benchmarks.conv",),
    "conv, forms": ("benchmarks.conv", "--forms"),
    "conv, relaxed": ("benchmarks.conv", "--relaxed"),
    "recurrent": ("benchmarks.recurrent",),
    "run-time sizes": ("benchmarks.run_time_sizes",),
    "compile time": ("benchmarks.compile_time",),
    "accelerators": ("benchmarks.accelerators",),
}

JsonOption = Annotated[Path | None, typer.Option("--json", help="append the JSON lines of all benchmarks to this file")]


def main(json: JsonOption = None) -> None:
    """Exit with 1 where any benchmark failed on a shape."""
    arguments = () if json is None else ("--json", str(json))
    results = {name: _run(name, (*command, *arguments)) for name, command in RUNS.items()}
    print()
    for name, (_, last_line) in results.items():
        print(f"{name:16}{last_line}")
    raise typer.Exit(max(code for code, _ in results.values()))


def _run(name: str, command: tuple[str, ...]) -> tuple[int, str]:
    """Run one benchmark, show what it prints as it prints it, return its code and last line."""
    print(f"\n== {name}", flush=True)
    last_line = ""
    with subprocess.Popen([sys.executable, "-m", *command], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for text in process.stdout:
            print(text, end="", flush=True)
            last_line = text.strip() or last_line
    return process.returncode, last_line


if __name__ == "__main__":
    typer.run(main)
