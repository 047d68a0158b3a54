"""``dovetail compile``: what it shows and what it writes."""

from pathlib import Path

import pytest

from dovetail.ir.plan import plan_from_json
from dovetail.targets.host import missing_features
from dovetail.targets.load import load_target
from tests.unit.cli.command import MATMUL, dovetail


def test_plan_reasons_and_times_are_shown() -> None:
    done = dovetail("compile", "--text", MATMUL, "--threads", "1")
    assert done.code == 0
    for part in ("registers  ", "lanes      ", "\nplan\n", "do 0", "\ntime\n", "llvm"):
        assert part in done.out


def test_an_object_is_written_with_its_header_and_texts(tmp_path: Path) -> None:
    stem = tmp_path / "mm"
    done = dovetail("compile", "--text", MATMUL, "--threads", "1", "-o", stem)
    assert done.code == 0
    assert (tmp_path / "mm.o").read_bytes().startswith(b"\x7fELF")
    entry = next(line for line in (tmp_path / "mm.h").read_text().splitlines() if line.startswith("void k_"))
    symbol = entry.removeprefix("void ").split("(")[0]
    assert f"@{symbol}(" in (tmp_path / "mm.ll").read_text()
    assert f"{symbol}:" in (tmp_path / "mm.s").read_text()


def test_a_plan_that_was_written_can_be_used_again(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    assert dovetail("compile", "--text", MATMUL, "--threads", "1", "-o", first, "--emit", "plan,o,nest").code == 0
    plan = tmp_path / "first.plan"
    plan_from_json(plan.read_text())
    done = dovetail("compile", "--text", MATMUL, "--threads", "1", "--plan", plan, "-o", second, "--emit", "o")
    assert done.code == 0
    assert (tmp_path / "second.o").read_bytes() == (tmp_path / "first.o").read_bytes()


def test_a_plan_that_is_no_plan_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "bad.plan"
    file.write_text('{"body": 3}')
    done = dovetail("compile", "--text", MATMUL, "--plan", file)
    assert done.code == 2
    assert done.err.startswith("error: this is not a plan\n")


def test_code_for_a_machine_that_is_not_here_is_written_but_not_run(tmp_path: Path) -> None:
    absent = next((n for n in ("znver4", "x86-64-v4") if missing_features(load_target(n))), None)
    if absent is None:
        pytest.skip("this machine runs every target that is shipped")
    done = dovetail("compile", "--text", MATMUL, "--target", absent, "-o", tmp_path / "far", "--emit", "s")
    assert done.code == 0
    assert "not run, so not checked on code: this machine lacks " in done.err
    assert "zmm" in (tmp_path / "far.s").read_text()


def test_a_place_that_cannot_be_written_is_a_users_error(tmp_path: Path) -> None:
    done = dovetail("compile", "--text", MATMUL, "--threads", "1", "-o", tmp_path / "no" / "mm")
    assert done.code == 2
    assert "cannot be written\n  No such file or directory\n" in done.err
