from __future__ import annotations

import os
import signal
import subprocess
from dataclasses import replace
from typing import IO

import pytest

from dovetail.base.errors import CodegenError, PlanError, TargetError
from dovetail.ir.parse import parse
from dovetail.model import workers
from dovetail.model.workers import Setting, compiled_parts
from dovetail.targets.load import load_target

Child = subprocess.Popen[bytes]
PROGRAMS = {
    f"relu {n}": parse(f"in a0: f32[{n}]  out a1: f32[{n}]\nfor i<{n}: a1[i] = max(a0[i], 0)") for n in range(8, 12)
}


@pytest.fixture
def setting() -> Setting:
    return Setting(load_target("host"), "host", 1, None)


def test_each_program_comes_back_under_its_key(setting: Setting) -> None:
    found = dict(compiled_parts(PROGRAMS, setting, 2))
    assert found.keys() == PROGRAMS.keys()
    assert found == dict(compiled_parts(PROGRAMS, setting, 1))


def test_a_target_that_only_this_process_has_is_served_here(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_Crew", None)
    unnamed = Setting(setting.target, "", 1, None)
    assert len(dict(compiled_parts(PROGRAMS, unnamed, 4))) == len(PROGRAMS)


def test_an_error_of_a_program_keeps_its_class_and_words(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        workers, "receive", lambda stream: b'{"error": "PlanError", "parts": ["no plan", null, "why", null]}\n'
    )
    with pytest.raises(PlanError, match="no plan\n  why"):
        list(compiled_parts(PROGRAMS, setting, 2))


def test_a_process_that_dies_is_an_error_and_all_end(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    started = []
    start = subprocess.Popen

    def watched(command: list[str], stdin: int, stdout: int, stderr: IO[bytes], env: dict[str, str]) -> Child:
        child = start(command, stdin=stdin, stdout=stdout, stderr=stderr, env=env)
        started.append(child)
        os.kill(child.pid, signal.SIGKILL)
        return child

    monkeypatch.setattr(subprocess, "Popen", watched)
    with pytest.raises(CodegenError, match="ended with status -9"):
        list(compiled_parts(PROGRAMS, setting, 2))
    assert len(started) == 2
    assert all(child.returncode is not None for child in started)


def test_a_process_that_fails_tells_its_last_words(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Setting(setting.target, "no such target", 1, None)
    with pytest.raises(CodegenError, match="TargetError"):
        list(compiled_parts(PROGRAMS, broken, 2))


def test_a_target_that_has_changed_meanwhile_is_refused(setting: Setting) -> None:
    other = Setting(replace(setting.target, digest="another"), "host", 1, None)
    with pytest.raises(TargetError, match="has changed"):
        list(compiled_parts(PROGRAMS, other, 2))
