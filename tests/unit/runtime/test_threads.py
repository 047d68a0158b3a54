from __future__ import annotations

import pytest

from dovetail.base.errors import CallError
from dovetail.runtime.threads import thread_count
from dovetail.targets.load import load_target


def test_threads_are_what_is_asked_for_else_what_the_environment_says_else_the_cores(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    target = load_target("host")
    monkeypatch.delenv("DOVETAIL_THREADS", raising=False)
    assert thread_count(None, target) == target.units[0].count[0]
    monkeypatch.setenv("DOVETAIL_THREADS", "3")
    assert thread_count(None, target) == 3
    assert thread_count(2, target) == 2


@pytest.mark.parametrize("wanted", [0, -1, 513, True, 1.5])
def test_what_is_no_number_of_threads_is_refused(wanted: int) -> None:
    with pytest.raises(CallError, match="is no number of threads"):
        thread_count(wanted, load_target("host"))


@pytest.mark.parametrize("stated", ["0", "many", "-1", "1000"])
def test_an_environment_that_names_no_number_is_refused(stated: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOVETAIL_THREADS", stated)
    with pytest.raises(CallError, match=f"DOVETAIL_THREADS={stated} is no number"):
        thread_count(None, load_target("host"))
