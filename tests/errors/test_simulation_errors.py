"""Every message a person who compiles for a simulated machine can meet: the machine, the program, the message.

What is wrong with a file alone is in ``target``; here a machine that is described well cannot run a program.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import dovetail
from dovetail.base.errors import DovetailError
from dovetail.simulated.kernel import SimulatedKernel

CASES = sorted((Path(__file__).parent / "simulate").glob("*.txt"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_what_a_machine_cannot_run_is_explained(
    case: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, update_golden: bool
) -> None:
    machine, program, expected = case.read_text().split("----\n")
    (tmp_path / "machine.toml").write_text(machine)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DovetailError) as caught:
        dovetail.compile(dovetail.program(program), "machine.toml")
    message = f"{type(caught.value).__name__}: {caught.value}\n"
    if update_golden:
        case.write_text("----\n".join([machine, program, message]))
        return
    assert message == expected


HOST = '[[unit]]\nname = "host"\ncount = 1\nruns = "generic"\n\n'


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_beside_a_host_the_same_words_are_listed(case: Path, tmp_path: Path) -> None:
    """Nothing moves to the host in silence; a zero that the host can set is no longer missing."""
    machine, program, expected = case.read_text().split("----\n")
    file = tmp_path / "machine.toml"
    file.write_text(machine.replace("[[unit]]", HOST + "[[unit]]", 1))
    kernel = dovetail.compile(dovetail.program(program), str(file))
    assert isinstance(kernel, SimulatedKernel)
    if case.stem == "edges-that-nothing-sets-to-zero":
        assert kernel.on_host == ()
        return
    (statement,) = kernel.on_host
    assert statement.reason.splitlines()[0] in expected


def test_there_are_cases() -> None:
    assert len(CASES) >= 8
