"""One problem, measured by all systems in interleaved rounds."""

import math
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from statistics import median
from types import TracebackType
from typing import Self

from benchmarks.harness.child import LIMITS, Message
from benchmarks.harness.processes import Child, Crashed
from benchmarks.harness.ratios import LEAST_ROUNDS, MOST_ROUNDS, best_of, enough, per_round, spread
from benchmarks.problems import Task

WORKS = ("exact", "close")
REPEATS = 2


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one system did with a problem: its seconds per call in each round, or why there are none."""

    status: str
    how: str
    seconds: tuple[float, ...] = ()

    @property
    def works(self) -> bool:
        return bool(self.seconds)


@dataclass(frozen=True, slots=True)
class Row:
    """One measured problem; ``limits`` are (FLOP/s, bytes/s) of the machine in each round.

    ``ratio`` is None where there is nothing to compare, 0 where our result was wrong or none; ``tries`` are all
    ratios of a problem that was measured more than once.
    """

    problem: Task
    outcomes: Mapping[str, Outcome]
    limits: tuple[tuple[float, float], ...]
    subject: str
    best: str | None
    ratio: float | None
    spread: float
    tries: tuple[float, ...] = ()

    @property
    def rounds(self) -> int:
        return max((len(outcome.seconds) for outcome in self.outcomes.values()), default=0)

    @property
    def flops_per_second(self) -> float:
        return median(flops for flops, _ in self.limits)

    @property
    def bytes_per_second(self) -> float:
        return median(read_bytes for _, read_bytes in self.limits)

    def share(self, system: str) -> float:
        """Part of min(FMA, bandwidth) that a system reached, median over the rounds.

        The least time of a round is that of all multiply-adds at its FMA peak, or of every byte once from memory;
        a share is over 1 where the data sat in a cache.
        """
        shape = self.problem.shape
        floors = [max(shape.flops / flops, shape.bytes / read_bytes) for flops, read_bytes in self.limits]
        return median(per_round(self.outcomes[system].seconds, floors))


class Contest:
    """The children of all systems, ``subject`` first. Use as a context manager.

    The ratio is to the best of ``rivals``, all peers where nothing is said; the others are measured beside them.
    """

    def __init__(
        self,
        subject: str,
        peers: Sequence[str],
        threads: int,
        most_rounds: int = MOST_ROUNDS,
        rivals: Sequence[str] | None = None,
    ) -> None:
        self.subject, self._most_rounds = subject, most_rounds
        self._rivals = frozenset(peers if rivals is None else rivals)
        self._children = {name: Child(name, threads) for name in (subject, *peers)}
        self._limits = Child(LIMITS, threads)
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        for child in (*self._children.values(), self._limits):
            self._stack.enter_context(child)
        self.missing = {name: child.missing for name, child in self._children.items() if child.missing}
        self._children = {name: child for name, child in self._children.items() if not child.missing}
        if self._limits.missing:
            raise Crashed(f"the machine's limits cannot be measured: {self._limits.missing}")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stack.close()

    @property
    def versions(self) -> dict[str, str]:
        return {name: child.version for name, child in self._children.items()}

    def measure(self, problem: Task, worst_bar: float) -> Row:
        """One row; a ratio under ``worst_bar`` is measured twice more, and the middle value counts."""
        row = self._measure_once(problem)
        if row.ratio is None or not 0.0 < row.ratio < worst_bar:
            return row
        rows = [row, *(self._measure_once(problem) for _ in range(REPEATS))]
        counted = sorted(rows, key=_ratio_or_zero)[len(rows) // 2]
        return replace(counted, tries=tuple(_ratio_or_zero(each) for each in rows))

    def _measure_once(self, problem: Task) -> Row:
        prepared = {name: self._prepare(child, problem) for name, child in self._children.items()}
        running = [name for name, outcome in prepared.items() if outcome.status in WORKS]
        seconds: dict[str, list[float]] = {name: [] for name in running}
        limits: list[tuple[float, float]] = []
        while not self._done(seconds, len(limits)):
            peak = self._limits.time()
            limits.append((_number(peak, "flops"), _number(peak, "bytes")))
            for name in _rotated(list(seconds), len(limits)):
                try:
                    seconds[name].append(_number(self._children[name].time(), "seconds"))
                except Crashed as crash:
                    del seconds[name]
                    prepared[name] = Outcome("failed", str(crash))
        for name in seconds:
            self._children[name].release()
        outcomes = {
            name: Outcome(outcome.status, outcome.how, tuple(seconds.get(name, ())))
            for name, outcome in prepared.items()
        }
        return self._row(problem, outcomes, limits)

    def _prepare(self, child: Child, problem: Task) -> Outcome:
        try:
            answer = child.prepare(problem)
            outcome = Outcome(str(answer["status"]), str(answer["how"]))
            if outcome.status not in WORKS:
                child.release()
        except Crashed as crash:
            return Outcome("failed", str(crash))
        return outcome

    def _done(self, seconds: Mapping[str, Sequence[float]], rounds: int) -> bool:
        """Steady, out of rounds, or nothing to compare and the least number of rounds measured."""
        peers = {name: times for name, times in seconds.items() if name in self._rivals and times}
        best = best_of(peers)
        if best is None or self.subject not in seconds:
            return rounds >= min(LEAST_ROUNDS, self._most_rounds)
        return enough(per_round(seconds[self.subject], peers[best]), self._most_rounds)

    def _row(self, problem: Task, outcomes: Mapping[str, Outcome], limits: list[tuple[float, float]]) -> Row:
        peers = {name: o.seconds for name, o in outcomes.items() if name in self._rivals and o.works}
        best, ours = best_of(peers), outcomes.get(self.subject)
        ratio, ratio_spread = None, math.nan
        if ours is not None and not ours.works and ours.status != "unsupported":
            ratio = 0.0
        elif ours is not None and ours.works and best is not None:
            ratios = per_round(ours.seconds, peers[best])
            ratio, ratio_spread = median(ratios), spread(ratios)
        return Row(problem, outcomes, tuple(limits), self.subject, best, ratio, ratio_spread)


def _rotated(names: list[str], by: int) -> list[str]:
    """Each round begins with another system, so that none always follows the same one."""
    start = by % len(names) if names else 0
    return names[start:] + names[:start]


def _ratio_or_zero(row: Row) -> float:
    return row.ratio or 0.0


def _number(message: Message, key: str) -> float:
    value = message[key]
    assert isinstance(value, float | int)
    return float(value)
