"""``dovetail run model.onnx``: a model on inputs from files, or made up, with a table of times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from dovetail.base.errors import CallError, DovetailError, UnsupportedError
from dovetail.base.suggest import closest
from dovetail.cli.screen import heading, milliseconds, progress_bar, say, show_table
from dovetail.cli.timing import latency

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from dovetail.frontends.onnx.entries import HostValue
    from dovetail.model.opened import Function, Input

SUFFIXES = (".onnx", ".dovetail")
MOST_ROWS = 20
_LOOPS = ("scan", "lstm", "projected_lstm", "gru", "rnn")
_PASSES = ("re-roll", "scan")
"""Those that say something about loops."""


def is_model(path: str | None) -> bool:
    """Whether PROGRAM on the command line is a model file."""
    return path is not None and Path(path).suffix in SUFFIXES


def run_model(
    path: str,
    target: str,
    threads: int | None,
    inputs: list[str] | None,
    outputs: list[str] | None,
    shapes: list[str] | None,
    seed: int,
    profile: bool,
    patterns: str | None = None,
    dynamic: bool | None = None,
) -> None:
    """Run the model in ``path``: a table of times, and what came out."""
    from dovetail.cli.inputs import save

    model, feeds = ready(path, target, threads, inputs, shapes, seed, patterns, dynamic)
    files = _named(outputs, model.outputs, "--output")
    results = model.run(feeds)
    timed = latency(lambda: model.run(feeds))
    heading("latency")
    rows = [
        ("call, median", milliseconds(timed.median)),
        ("call, fastest", milliseconds(timed.fastest)),
        ("call, slowest", milliseconds(timed.slowest)),
    ]
    show_table(("", "time"), rows, right=("time",))
    if profile:
        _show_profile(model, feeds)
    heading("outputs")
    show_table(("name", "dtype", "shape", "least", "largest", "mean"), [_summary(n, a) for n, a in results.items()])
    for name, file in files.items():
        save(file, _array(name, results[name]))
        say(f"wrote {name} to {file}")
    heading("operators")
    say(model.report.splitlines()[0])
    with suppress(UnsupportedError):
        say(str(model.compiled(feeds).report).splitlines()[0])
    for line in model.report.splitlines()[1:]:
        if "host" in line:
            say(line)
    _show_recurrence(model, feeds)


def ready(
    path: str,
    target: str,
    threads: int | None,
    inputs: list[str] | None,
    shapes: list[str] | None,
    seed: int,
    patterns: str | None = None,
    dynamic: bool | None = None,
) -> tuple[Function, dict[str, HostValue]]:
    """The model, compiled for the inputs that go with it: from files, or made up."""
    from dovetail.model.opened import made_up, open_model

    with progress_bar("compile") as show:
        model = open_model(
            path,
            target,
            threads,
            progress=lambda done, total, title: show(done / total, title),
            patterns=patterns,
            dynamic=dynamic,
        )
        names = [given.name for given in model.inputs]
        feeds: dict[str, HostValue] = dict(made_up(model.inputs, shapes_of(shapes, model.inputs), seed))
        feeds |= {name: _load(name, file) for name, file in _named(inputs, names, "--input").items()}
        model.run(feeds)
    return model, feeds


def _named(given: list[str] | None, names: Sequence[str], option: str) -> dict[str, str]:
    """``["x=a.npy"]`` -> ``{"x": "a.npy"}``; a file alone belongs to the only one there is."""
    found: dict[str, str] = {}
    for item in given or []:
        name, equals, file = item.rpartition("=")
        if not equals:
            if len(names) != 1:
                raise CallError(f"{option} {item} says no name", why=f"there are {', '.join(names)}", hint="NAME=FILE")
            name = names[0]
        if name not in names:
            raise CallError(f"{option}: the model has no '{name}'", why=f"there are {', '.join(names)}")
        if name in found:
            raise DovetailError(f"{option} {name} is given twice")
        found[name] = file
    return found


def shapes_of(given: list[str] | None, inputs: Sequence[Input]) -> dict[str, tuple[int, ...]]:
    """``["ids=1x128"]`` -> ``{"ids": (1, 128)}``."""
    known = {i.name: i for i in inputs}
    found: dict[str, tuple[int, ...]] = {}
    for item in given or []:
        name, _, text = item.rpartition("=")
        extents = text.split("x")
        if name not in known:
            raise CallError(f"--shape: the model has no input '{name}'", hint=closest(name, known))
        if not all(e.isascii() and e.isdigit() and len(e) < 10 for e in extents):
            raise CallError(f"--shape {item} is not NAME=NUMBERxNUMBER", hint=f"--shape {name}=1x128")
        found[name] = tuple(map(int, extents))
    return found


def _load(name: str, path: str) -> HostValue:
    import numpy as np

    try:
        array = np.load(Path(path), allow_pickle=False)
    except OSError as problem:
        raise CallError(f"input '{name}': '{path}' cannot be read", why=problem.strerror) from None
    except (ValueError, EOFError) as problem:
        raise CallError(f"input '{name}': '{path}' is not a .npy file", why=str(problem)) from None
    if not isinstance(array, np.ndarray):
        raise CallError(f"input '{name}': '{path}' holds several arrays", hint="save one array with numpy.save")
    return array


def _show_profile(model: Function, feeds: Mapping[str, HostValue]) -> None:
    rows = model.compiled(feeds).profile(*feeds.values())
    total = sum(row.seconds for row in rows)
    slowest = sorted(rows, key=lambda row: -row.seconds)[:MOST_ROWS]
    heading(f"{len(slowest)} slowest of {len(rows)} steps, each run alone")
    names = ("step", "algorithm", "threads", "time", "share")
    cells = [
        (r.row.title, r.row.algorithm, r.row.threads, milliseconds(r.seconds), f"{r.seconds / total:.1%}")
        for r in slowest
    ]
    show_table(names, cells, right=names[2:])


def _show_recurrence(model: Function, feeds: Mapping[str, HostValue]) -> None:
    """What is a loop over steps, what was found to be one, and what was not and why; nothing where there is none."""
    try:
        report = model.compiled(feeds).report
    except UnsupportedError:
        return
    loops = [row.title for row in report.rows if any(op in _LOOPS for op in row.operators)]
    found = [note for note in report.notes if note.pass_ in _PASSES]
    if not loops and not found:
        return
    heading("recurrence")
    if loops:
        say(f"{len(loops)} of the steps that run are loops over time: {', '.join(loops)}")
    for note in found[:MOST_ROWS]:
        say(f"{note.what} ({note.why})" if note.why else note.what)


def _summary(name: str, value: HostValue) -> tuple[str, ...]:
    import numpy as np

    if not isinstance(value, np.ndarray):
        return (name, type(value).__name__, "", "", "", "")
    shape = " x ".join(map(str, value.shape)) or "scalar"
    if not value.size or value.dtype == object:
        return (name, str(value.dtype), shape, "", "", "")
    wide = value.astype(np.float64)
    return (name, str(value.dtype), shape, f"{wide.min():g}", f"{wide.max():g}", f"{wide.mean():g}")


def _array(name: str, value: HostValue) -> npt.NDArray[np.generic]:
    import numpy as np

    if not isinstance(value, np.ndarray) or value.dtype == object:
        raise CallError(f"output '{name}' is no array of numbers and cannot be written to a .npy file")
    return value
