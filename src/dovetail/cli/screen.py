"""Everything the command line prints goes through here; nothing of a user's input reaches the terminal raw."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from dovetail.base.errors import DovetailError

PIPE_COLUMNS = 120
"""Width of tables that go into a file or another program."""
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
"""Unicode categories that steer a terminal or do not show: controls, text direction, line separators."""


def plain(text: object) -> str:
    """``text`` with everything that does not simply show written as an escape; lines stay lines."""
    return "".join(
        c if c == "\n" or unicodedata.category(c) not in _HIDDEN else c.encode("unicode_escape").decode("ascii")
        for c in str(text)
    )


def say(text: object = "", style: str = "") -> None:
    """A line or more of text."""
    _console().print(Text(plain(text), style=style), soft_wrap=True)


def heading(text: object) -> None:
    say()
    say(text, "bold")


def show_table(columns: Sequence[str], rows: Iterable[Sequence[object]], right: Iterable[str] = ()) -> None:
    """A table; the columns named in ``right`` are numbers."""
    numbers = set(right)
    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold", show_header=any(columns))
    for name in columns:
        drawn.add_column(name, justify="right" if name in numbers else "left", overflow="fold")
    for row in rows:
        drawn.add_row(*(Text(plain(cell)) for cell in row))
    _console().print(drawn)


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[float, str], None]]:
    """A bar while something goes on, where the error stream is a terminal; it is told how far it is (0 to 1) and what
    to say of it."""
    columns = (TextColumn(plain(what)), BarColumn(), TextColumn("{task.fields[said]}"), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=1.0, said="")
        yield lambda done, said: bar.update(task, completed=done, said=plain(said))


def show_json(value: object) -> None:
    """One JSON document, ASCII only."""
    _console().print(Text(json.dumps(value, indent=2)), soft_wrap=True)


def show_error(error: DovetailError) -> None:
    """``error: ...`` on the error stream."""
    console = Console(stderr=True, highlight=False, markup=False, emoji=False)
    first, _, rest = plain(error.message()).partition("\n")
    console.print(Text.assemble(("error: ", "bold red"), first), soft_wrap=True)
    if rest:
        console.print(Text(rest), soft_wrap=True)


def note(text: object) -> None:
    """Something beside the result, on the error stream."""
    Console(stderr=True, highlight=False, markup=False).print(Text(plain(text), style="dim"), soft_wrap=True)


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def percent(share: float) -> str:
    return f"{share:.0%}"


def _console() -> Console:
    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = PIPE_COLUMNS
    return console
