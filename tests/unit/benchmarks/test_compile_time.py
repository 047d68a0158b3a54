"""Compile times: which of several runs counts."""

from pathlib import Path

import pytest

from benchmarks import compile_time
from benchmarks.compile_time import Times, cold_times, middle
from benchmarks.problems import Problem, Table
from benchmarks.shapes import Gemm

SMALL, LARGE = (Problem(Table.RUN_TIME, Gemm(m, m, m)) for m in (8, 512))


def test_the_middle_run_of_each_problem_counts() -> None:
    runs = [[Times(0.3), Times(0.1)], [Times(0.1), Times(0.2)], [Times(0.2), Times(9.0)]]
    assert middle(runs) == [Times(0.2), Times(0.2)]


def test_a_problem_that_failed_once_has_failed() -> None:
    assert middle([[Times(0.3)], [Times(None)], [Times(0.1)]]) == [Times(None)]


def test_small_problems_alone_are_compiled_again_each_time_with_an_empty_cache(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[tuple[list[Problem], Path]] = []

    def compile_all(chosen: list[Problem], threads: int, cache: Path) -> list[Times]:
        asked.append((list(chosen), cache))
        return [Times(0.9 / len(asked)) for _ in chosen]

    monkeypatch.setattr(compile_time, "compile_all", compile_all)
    found = cold_times([LARGE, SMALL], 2, tmp_path)
    assert [t.seconds for t in found] == pytest.approx([0.9, 0.45])
    assert [chosen for chosen, _ in asked] == [[LARGE, SMALL], [SMALL], [SMALL]]
    assert len({cache for _, cache in asked}) == 3
