import math
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace, TracebackType
from typing import Self, cast

import numpy as np
import pytest

from benchmarks.harness import rounds
from benchmarks.harness.child import Message, SystemWorker
from benchmarks.harness.limits import Limits
from benchmarks.harness.processes import Child, Crashed
from benchmarks.harness.ratios import summarise
from benchmarks.harness.report import Bars, Setting, heading, line, notes, record
from benchmarks.harness.rounds import Contest
from benchmarks.problems import Operands, Problem, Table
from benchmarks.shapes import Conv, Gemm
from benchmarks.systems import Candidate, SystemModule, Unsupported

PROBLEM = Problem(Table.RUN_TIME, Gemm(8, 8, 8))


class FakeChild:
    """A child whose seconds per call are read off a script, by system."""

    scripts: dict[str, Iterator[float]]
    answers: dict[str, Message]

    def __init__(self, system: str, threads: int) -> None:
        self.system, self.version, self.missing = system, "1.0", ""
        self.released = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        return None

    def prepare(self, problem: Problem) -> Message:
        return self.answers.get(self.system, {"status": "exact", "how": "fake"})

    def time(self) -> Message:
        if self.system == "limits":
            return {"flops": 1e9, "bytes": 1e9}
        seconds = next(self.scripts[self.system])
        if math.isnan(seconds):
            raise Crashed("out of memory")
        return {"seconds": seconds}

    def release(self) -> None:
        self.released += 1


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> type[FakeChild]:
    monkeypatch.setattr(rounds, "Child", FakeChild)
    monkeypatch.setattr(FakeChild, "answers", {}, raising=False)
    return FakeChild


def forever(*values: float) -> Iterator[float]:
    """The values, the last of them again and again."""
    yield from values
    while True:
        yield values[-1]


def test_the_ratio_is_taken_against_the_best_peer_after_seven_steady_rounds(fakes: type[FakeChild]) -> None:
    fakes.scripts = {"dovetail": forever(1.0), "slow": forever(3.0), "fast": forever(2.0)}
    with Contest("dovetail", ("slow", "fast"), 1) as contest:
        row = contest.measure(PROBLEM, worst_bar=0.8)
    assert (row.ratio, row.best, row.rounds, row.tries) == (2.0, "fast", 7, ())
    assert row.share("dovetail") == pytest.approx(2 * 8**3 / 1e9)


def test_a_shape_under_the_worst_bar_is_measured_twice_more_and_the_middle_counts(fakes: type[FakeChild]) -> None:
    fakes.scripts = {"dovetail": forever(*[2.0] * 7, *[1.0] * 7, *[1.25] * 7), "peer": forever(1.0)}
    with Contest("dovetail", ("peer",), 1) as contest:
        row = contest.measure(PROBLEM, worst_bar=0.8)
    assert row.tries == (0.5, 1.0, 0.8)
    assert row.ratio == 0.8


def test_a_peer_that_crashes_in_a_round_is_left_out_and_reported(fakes: type[FakeChild]) -> None:
    fakes.scripts = {"dovetail": forever(1.0), "frail": forever(0.1, math.nan), "peer": forever(2.0)}
    with Contest("dovetail", ("frail", "peer"), 1) as contest:
        row = contest.measure(PROBLEM, worst_bar=0.8)
    assert (row.best, row.ratio) == ("peer", 2.0)
    assert notes(row) == ["    frail: failed: out of memory"]
    assert "FAILED" in line(row, ["dovetail", "frail", "peer"])


def test_our_wrong_result_is_shown_and_counts_as_zero(fakes: type[FakeChild]) -> None:
    fakes.answers = {"dovetail": {"status": "wrong", "how": "off by 1"}}
    fakes.scripts = {"peer": forever(2.0)}
    with Contest("dovetail", ("peer",), 1) as contest:
        row = contest.measure(PROBLEM, worst_bar=0.8)
    assert row.ratio == 0.0
    assert "WRONG" in line(row, ["dovetail", "peer"])


def test_a_peers_wrong_result_does_not_make_it_the_best(fakes: type[FakeChild]) -> None:
    fakes.answers = {"cheat": {"status": "wrong", "how": "off by 1"}}
    fakes.scripts = {"dovetail": forever(1.0), "cheat": forever(0.1), "peer": forever(2.0)}
    with Contest("dovetail", ("cheat", "peer"), 1) as contest:
        row = contest.measure(PROBLEM, worst_bar=0.8)
    assert row.best == "peer"


def test_a_record_names_commit_machine_and_every_system(fakes: type[FakeChild]) -> None:
    fakes.scripts = {"dovetail": forever(1.0), "peer": forever(2.0)}
    with Contest("dovetail", ("peer",), 1) as contest:
        row = contest.measure(PROBLEM, worst_bar=0.8)
        data = record(row, Setting("abc", "a processor", 1, contest.versions))
    assert (data["commit"], data["machine"], data["best"], data["ratio"]) == ("abc", "a processor", "peer", 2.0)
    assert set(cast(dict[str, object], data["systems"])) == {"dovetail", "peer"}


def test_heading_and_rows_have_their_columns_under_each_other(fakes: type[FakeChild]) -> None:
    fakes.scripts = {"dovetail": forever(1.0), "peer": forever(2.0)}
    with Contest("dovetail", ("peer",), 1) as contest:
        row = contest.measure(PROBLEM, worst_bar=0.8)
    assert len(heading(["dovetail", "peer"])) == len(line(row, ["dovetail", "peer"]))


def test_bars_say_which_of_them_are_missed() -> None:
    bars = Bars(geomean=1.0, worst=0.8, wins=0.6)
    assert bars.verdict(summarise([1.1, 1.0])) == "bars met"
    assert bars.verdict(summarise([1.6, 0.7])) == "bars missed: worst >= 0.80, wins >= 60%"


def module(scale: float, exact: bool = True) -> SystemModule:
    """A system that multiplies, and scales what it got."""

    def prepare(problem: Problem, inputs: Operands, threads: int) -> tuple[Candidate, ...]:
        if isinstance(problem.shape, Conv):
            raise Unsupported("no convolution")
        result = (inputs.first @ inputs.second * np.float32(scale)).astype(np.float32)
        return (Candidate("product", lambda: None, lambda: result),)

    return cast(SystemModule, SimpleNamespace(VERSION="0", EXACT=exact, prepare=prepare))


@pytest.mark.parametrize(("scale", "exact", "status"), [(1, True, "exact"), (2, True, "wrong"), (2, False, "wrong")])
def test_a_worker_checks_the_result_of_its_system(scale: float, exact: bool, status: str) -> None:
    worker = SystemWorker(module(scale, exact), threads=1)
    assert worker.prepare(PROBLEM.to_json())["status"] == status


def test_a_worker_says_what_its_system_cannot_do() -> None:
    shape = Conv(1, 1, 1, (3,), (1,), (3,), (1,), (0,), (1,))
    answer = SystemWorker(module(1), threads=1).prepare(Problem(Table.CONV, shape).to_json())
    assert answer == {"status": "unsupported", "how": "no convolution"}


def test_a_child_is_stopped_whenever_it_is_not_asked() -> None:
    with Child("numpy", 1) as child:
        assert child.version.startswith("numpy")
        assert child.prepare(PROBLEM)["status"] == "exact"
        assert cast(float, child.time()["seconds"]) > 0
        assert child._process is not None
        state = Path(f"/proc/{child._process.pid}/stat").read_text().rpartition(")")[2].split()[0]
        assert state == "T"


def test_a_child_that_dies_reports_its_last_words_and_is_started_again() -> None:
    with Child("numpy", 1) as child:
        with pytest.raises(Crashed, match="AssertionError"):
            child.time()
        assert child.prepare(PROBLEM)["status"] == "exact"


def test_the_limits_of_the_machine_are_positive_and_finite() -> None:
    flops, read_bytes = Limits(threads=1).measure()
    assert 1e8 < flops < 1e13
    assert 1e8 < read_bytes < 1e13
