"""The text of one LLVM function while it grows, with arithmetic moved out of the loops it does not depend on.

Each open loop is a scope with a prologue: lines that stand before the loop's own. ``pure`` puts an operation into
the prologue of the innermost scope its operands need, once; ``local`` keeps it where it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

Lines = list["str | Lines"]
LOCAL = 1 << 30
"""Scope number of values that may change or trap, and so stay where they were asked for."""


@dataclass(slots=True)
class Scope:
    """An open loop body, or the function itself."""

    prologue: Lines
    known: dict[str, str] = field(default_factory=dict)


class FunctionText:
    """Builds a function's body block by block; ``text`` is the result."""

    def __init__(self) -> None:
        self.header: Lines = []
        prologue: Lines = []
        self.lines: Lines = [self.header, prologue]
        self.block = "entry"
        self._scopes = [Scope(prologue)]
        self._levels: dict[str, int] = {}
        self._count = 0

    def text(self) -> str:
        flat: list[str] = []
        _flatten(self.lines, flat)
        return "\n".join(flat)

    def fresh(self, prefix: str = "t") -> str:
        self._count += 1
        return f"%{prefix}{self._count}"

    def level(self, value: str) -> int:
        """Number of the scope ``value`` belongs to; constants and arguments belong to the function."""
        return self._levels.get(value, 0)

    def pure(self, operation: str, *operands: str) -> str:
        """The value of ``operation``, which depends on nothing but ``operands``."""
        level = max([self.level(o) for o in operands], default=0)
        if level == LOCAL:
            return self.local(operation)
        scope = self._scopes[level]
        name = scope.known.get(operation)
        if name is None:
            name = self.fresh()
            scope.known[operation] = name
            scope.prologue.append(f"  {name} = {operation}")
            if level:
                self._levels[name] = level
        return name

    def local(self, operation: str) -> str:
        """The value of ``operation``, computed here."""
        name = self.fresh()
        self.lines.append(f"  {name} = {operation}")
        self._levels[name] = LOCAL
        return name

    def do(self, operation: str) -> None:
        """An operation without a value."""
        self.lines.append(f"  {operation}")

    def start_block(self, label: str) -> None:
        self.lines.append(f"{label[1:]}:")
        self.block = label[1:]

    @contextmanager
    def loop_body(self, label: str, variable: str) -> Iterator[Lines]:
        """Open a loop's block and scope; yields the place for the phi of ``variable``, known at the end."""
        self.start_block(label)
        phi: Lines = []
        prologue: Lines = []
        self.lines += [phi, prologue]
        self._scopes.append(Scope(prologue))
        self._levels[variable] = len(self._scopes) - 1
        yield phi
        self._scopes.pop()


def _flatten(lines: Lines, into: list[str]) -> None:
    for line in lines:
        if isinstance(line, str):
            into.append(line)
        else:
            _flatten(line, into)
