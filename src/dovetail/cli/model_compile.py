"""``dovetail compile model.onnx -o model.dovetail``: a whole model as a file that loads in no time."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from dovetail.base.errors import DovetailError
from dovetail.cli.model_run import ready
from dovetail.cli.screen import heading, milliseconds, say, show_table

if TYPE_CHECKING:
    from dovetail.model.compiled import CompiledModel

KINDS = (".dovetail", ".o", ".so")


def compile_model(
    path: str,
    target: str,
    threads: int | None,
    shapes: list[str] | None,
    output: str | None,
    patterns: str | None = None,
) -> None:
    """Compile the model in ``path`` and write it to ``output``, whose name says as what."""
    file = Path(output or f"{Path(path).stem}.dovetail")
    if file.suffix not in KINDS:
        raise DovetailError(f"'{file}' does not say what to write", hint=f"a name that ends in {', '.join(KINDS)}")
    begun = time.perf_counter()
    model, feeds = ready(path, target, threads, None, shapes, 0, patterns)
    compiled = model.compiled(feeds)
    took = time.perf_counter() - begun
    report = compiled.report
    say(model.report.splitlines()[0])
    heading("model")
    rows = [
        ("compiled steps", str(report.count("compiled"))),
        ("views, without code", str(report.count("view"))),
        ("work memory", f"{report.arena_bytes / 2**20:.1f} MiB"),
        ("constants, laid out", f"{report.constant_bytes / 2**20:.1f} MiB"),
        ("time to compile", milliseconds(took)),
    ]
    show_table(("", ""), rows)
    for written in _write(compiled, file):
        say(f"wrote {written}, {written.stat().st_size} bytes")


def _write(compiled: CompiledModel, file: Path) -> list[Path]:
    """The files that were written."""
    from dovetail.model.export import export

    try:
        if file.suffix == ".dovetail":
            compiled.save(file)
            return [file]
        return export(compiled, file)
    except OSError as problem:
        raise DovetailError(f"'{file}' cannot be written", why=problem.strerror) from None
