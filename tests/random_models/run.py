"""Compiles random models and counts what became of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from dovetail.ir.graph.bound import BoundGraph
from dovetail.model.build import compile_graph
from tests.random_models.grow import Array
from tests.random_models.judge import Verdict, judged


@dataclass(slots=True)
class Count:
    """Models that were right, outputs of theirs, and what was wrong."""

    right: int = 0
    outputs: int = 0
    exact: int = 0
    mistrusted: int = 0
    wrong: list[Verdict] = field(default_factory=list)

    def add(self, verdict: Verdict) -> None:
        if verdict.problem:
            self.wrong.append(verdict)
            return
        self.right += 1
        self.outputs += verdict.outputs
        self.exact += verdict.exact
        self.mistrusted += verdict.mistrusted

    def __str__(self) -> str:
        outputs = f"outputs={self.outputs} exact={self.exact} mistrusted={self.mistrusted}"
        return f"right={self.right} wrong={len(self.wrong)} {outputs} n={self.right + len(self.wrong)}"


def counted(seeds: Iterable[int]) -> Count:
    """All models of ``seeds``; every other one runs on two threads."""
    count = Count()
    for seed in seeds:
        count.add(judged(seed, _on(1 + seed % 2)))
    return count


def _on(threads: int) -> Callable[[BoundGraph], Callable[..., Sequence[Array]]]:
    return lambda model: compile_graph(model, threads=threads, cache=False, jobs=1)
