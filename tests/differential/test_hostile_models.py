"""Two thousand mutated model files, the same every time: none crashes, hangs, or ends in an error without a type."""

from __future__ import annotations

from benchmarks.hostile.driver import Task, run

COUNT = 2000


def test_mutated_files_end_in_success_or_a_typed_error() -> None:
    counts = run(Task(0, COUNT, seed=0, stage="import", jobs=2))
    assert counts.bad == []
    assert counts.outcomes.total() == COUNT
    assert counts.outcomes["typed"] > COUNT // 2, "mutations that break nothing test nothing"
    assert counts.outcomes["accepted"] > COUNT // 20, "mutations that break everything test the parser alone"
    assert counts.memory < 1 << 30
