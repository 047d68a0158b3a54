"""What became of a model: a row for each step, and what passes over its graph did and did not do."""

from __future__ import annotations

from dataclasses import dataclass

COMPILED, HOST, VIEW = "compiled", "host", "view"


@dataclass(frozen=True, slots=True)
class Row:
    """One region of the graph. A view has no code: its result is its operand's bytes."""

    title: str
    kind: str
    operators: tuple[str, ...]
    algorithm: str = ""
    threads: int = 0
    sizes: tuple[int, ...] = ()
    """Of code that takes sizes at run time, what it is run with; empty for code that is for this shape alone."""


@dataclass(frozen=True, slots=True)
class Timing:
    """How long a step takes; views take no time and have none."""

    row: Row
    seconds: float


@dataclass(frozen=True, slots=True)
class Note:
    """A line of a pass: what it did or left alone, and why."""

    pass_: str
    what: str
    why: str


@dataclass(frozen=True, slots=True)
class ModelReport:
    """``rows`` in the order in which they run."""

    rows: tuple[Row, ...]
    notes: tuple[Note, ...] = ()
    arena_bytes: int = 0
    constant_bytes: int = 0

    def count(self, kind: str) -> int:
        return sum(row.kind == kind for row in self.rows)

    @property
    def on_host(self) -> tuple[str, ...]:
        """Operators that are not compiled, each once."""
        return tuple(dict.fromkeys(op for row in self.rows if row.kind == HOST for op in row.operators))

    def __str__(self) -> str:
        counts = f"{self.count(COMPILED)} compiled, {self.count(HOST)} on the host, {self.count(VIEW)} views"
        sized = sum(bool(row.sizes) for row in self.rows)
        counts += f"; {sized} with run-time sizes" if sized else ""
        lines = [f"{row.kind:8}  {row.title}{_shown(row.sizes)}" for row in self.rows]
        return "\n".join([counts, *lines, *(f"{n.pass_}: {n.what}" for n in self.notes)])


def _shown(sizes: tuple[int, ...]) -> str:
    return f"  (run-time sizes {', '.join(map(str, sizes))})" if sizes else ""
