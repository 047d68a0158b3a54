"""Parts of a term that cannot be typed yet, and wait for the types they depend on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dovetail.base.errors import TermError
from dovetail.ir.functional.solve import Equations
from dovetail.ir.functional.term import Literal, Term
from dovetail.ir.functional.type_errors import Path, misuse
from dovetail.ir.functional.types import Type, Unknown


@dataclass(frozen=True, slots=True)
class Waiting:
    """Something to type as soon as enough is known of the types ``on``."""

    path: Path
    term: Term
    attempt: Callable[[bool], str | bool]
    on: tuple[Type, ...]


class Deferred(Equations):
    """Equations, and what is tried again whenever more is known."""

    def __init__(self) -> None:
        super().__init__()
        self.pending: dict[int, Waiting] = {}
        self.asleep: dict[str, dict[int, None]] = {}
        self.root: Term = Literal(None)
        """The term that is typed, for messages."""

    def wait(self, path: Path, term: Term, attempt: Callable[[bool], str | bool], on: tuple[Type, ...]) -> None:
        """Try ``attempt`` now and when more is known of the types ``on``; what it says in words is an error."""
        waiting = Waiting(path, term, attempt, on)
        if not self._tried(waiting, False):
            self.count += 1
            self.pending[self.count] = waiting
            self._sleep(self.count)

    def _sleep(self, number: int) -> None:
        for kind in self.pending[number].on:
            kind = self.known(kind)
            if isinstance(kind, Unknown):
                self.asleep.setdefault(kind.name, {})[number] = None

    def wake(self) -> None:
        """Try what waits for types of which more is known."""
        while self.news:
            for number in self.asleep.pop(self.news.pop(), ()):
                if number not in self.pending:
                    continue
                if self._tried(self.pending[number], False):
                    del self.pending[number]
                else:
                    self._sleep(number)

    def finish(self) -> None:
        """Try all that waits until nothing changes; numbers take a type of their own."""
        again = True
        while again:
            done = [number for number, waiting in self.pending.items() if self._tried(waiting, True)]
            for number in done:
                del self.pending[number]
            again = bool(done)

    def _tried(self, waiting: Waiting, default: bool) -> bool:
        done = waiting.attempt(default)
        if isinstance(done, str):
            raise self.misuse(waiting.path, waiting.term, done)
        return done

    def misuse(self, path: Path, term: Term, what: str) -> TermError:
        return misuse(self.root, path, term, what)
