"""``dovetail doctor``: what it finds, and that it says so when something is broken."""

import pytest

from dovetail.cli import doctor
from tests.unit.cli.command import dovetail


def test_machine_packages_and_what_works_are_listed() -> None:
    found = dovetail("doctor", "--no-measure", "--json").json
    assert set(found) == {"machine", "installed", "works"}
    works = found["works"]
    assert isinstance(works, list)
    assert {f["what"] for f in works} == {"target", "code generator", "compile and run", "thread pool", "cache"}
    assert all(f["well"] for f in works)


def test_the_table_has_the_processor_and_the_reason_for_the_target() -> None:
    done = dovetail("doctor", "--no-measure")
    assert done.code == 0
    assert "processor" in done.out
    assert "every feature of" in done.out or "generic" in done.out


def test_a_missing_package_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "PACKAGES", ("surely-not-installed",))
    done = dovetail("doctor", "--no-measure")
    assert done.code == 1
    assert "FAILED" in done.out
