"""Repetition: a chain of steps upwards from a value, of any length.

Each step is searched for by itself, and says what the step before it made. What lies between two steps is read by
the later one alone; where something else reads it the chain begins behind it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dovetail.ir.index import constant
from dovetail.rewrite.patterns.form import Chain, Hole
from dovetail.rewrite.patterns.index import GraphIndex
from dovetail.rewrite.patterns.needle import Needle, needle
from dovetail.rewrite.patterns.search import Search, Trail, put
from dovetail.rewrite.shape import Value


@dataclass(frozen=True, slots=True, eq=False)
class _Link:
    """One step of a chain, and those behind it, down to the last."""

    start: str
    later: _Link | None
    length: int
    holes: dict[str, str]
    """Of all steps so far, those that are the same at every step."""
    items: dict[str, str]
    settings: dict[str, Value]
    nodes: tuple[str, ...]

    def links(self) -> Iterator[_Link]:
        """First step first."""
        link: _Link | None = self
        while link is not None:
            yield link
            link = link.later


@dataclass(frozen=True, slots=True, eq=False)
class ChainRun:
    """A chain that was found."""

    chain: Chain
    link: _Link

    @property
    def start(self) -> str:
        return self.link.start

    def bind(self, search: Search, trail: Trail) -> bool:
        count, length = self.chain.count, constant(self.link.length)
        if search.settings.get(count, length) != length:
            return False
        if count not in search.settings:
            put(search.settings, count, length, trail)
        for name, value in self.link.holes.items():
            if name not in search.holes:
                put(search.holes, name, value, trail)
        for key, setting in self.link.settings.items():
            if key not in search.settings:
                put(search.settings, key, setting, trail)
        links = list(self.link.links())
        for name in self.link.items:
            put(search.items, name, tuple(link.items[name] for link in links), trail)
        for node in (node for link in links for node in link.nodes):
            if node in search.used:
                return False
            put(search.used, node, None, trail)
        return True


class ChainFinder:
    """``walked`` gathers values that some chain went through."""

    def __init__(self, index: GraphIndex) -> None:
        self.index = index
        self.walked: set[str] = set()
        self._known: dict[int, tuple[Needle, int]] = {}
        """By the identity of a chain: comparing forms takes longer than a step of the search."""
        self._inner: dict[Needle, Search] = {}
        """For each form of a step the search for it, between two uses of which nothing is bound."""

    def ending_at(self, search: Search, chain: Chain, value: str, uses: int | None) -> Iterator[ChainRun]:
        """All chains that end at ``value``, the longest first."""
        if uses is not None and self.index.uses.get(value, 0) != uses:
            return
        step, between = self._step(chain)
        found: list[_Link] = []
        waiting = [*self._steps(search, chain, step, value, None)][::-1]
        while waiting:
            link = waiting.pop()
            found.append(link)
            if self.index.uses.get(link.start, 0) == between:
                waiting += [*self._steps(search, chain, step, link.start, link)][::-1]
        found.sort(key=lambda link: -link.length)
        for link in found:
            if link.length >= chain.least:
                yield ChainRun(chain, link)

    def _step(self, chain: Chain) -> tuple[Needle, int]:
        """The step, and how often it reads the one before it."""
        found = self._known.get(id(chain))
        if found is None:
            step = needle(chain.step)
            found = self._known[id(chain)] = (step, step.reads[chain.step.parts.index(Hole(chain.previous))])
        return found

    def _steps(self, search: Search, chain: Chain, step: Needle, value: str, later: _Link | None) -> Iterator[_Link]:
        """Every way in which ``value`` is made by one step."""
        if search.miss is None and not step.may_be(step.sinks[0], value, self.index):
            return
        self.walked.add(value)
        inner = self._inner.get(step)
        if inner is None:
            inner = self._inner[step] = Search(self.index, step, self)
        inner.miss = search.miss if later is None else None
        inner.holes = dict(search.holes if later is None else later.holes)
        inner.settings = dict(search.settings if later is None else later.settings)
        own = step.form.items
        length = 1 if later is None else later.length + 1
        for _ in inner.solve((step.sinks[0], value, None)):
            holes = dict(inner.holes)
            start = holes.pop(chain.previous)
            items = {name: holes.pop(name) for name in own}
            yield _Link(start, later, length, holes, items, dict(inner.settings), tuple(inner.used))
