"""``dovetail simulate``, and the other verbs on machines that are simulated."""

import json
from pathlib import Path

import pytest

from tests.unit.cli.command import ROWS, dovetail

PRODUCT = "in a: i8[40,50]  in b: i8[50,70]  out c: i32[40,70]\nfor i<40, j<70, k<50: c[i,j] += a[i,k] * b[k,j]\n"
ON = ("--target", "systolic16")


def test_cycles_are_shown_as_simulated_and_as_predicted() -> None:
    done = dovetail("simulate", "--text", PRODUCT, *ON)
    assert done.code == 0
    assert "on systolic16, simulated" in done.out
    assert "cycles simulated" in done.out and "predicted" in done.out
    for row in ("instruction matmul16", "unit array", "memory dram"):
        assert row in done.out


def test_a_check_runs_it_with_data() -> None:
    done = dovetail("simulate", "--text", PRODUCT, *ON, "--check")
    assert done.code == 0
    assert "check: exact: all 2800 elements equal the reference" in done.out
    assert dovetail("simulate", "--text", PRODUCT, *ON, "--functional") == done


def test_the_timeline_is_a_trace(tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    done = dovetail("simulate", "--text", PRODUCT, *ON, "--timeline", file)
    assert f"wrote {file}" in done.out
    assert any(event["name"] == "matmul16" for event in json.loads(file.read_text())["traceEvents"])
    assert dovetail("simulate", "--text", PRODUCT, *ON, "--timeline", tmp_path).code == 2


def test_json_has_all_numbers() -> None:
    found = dovetail("simulate", "--text", PRODUCT, *ON, "--json", "--check").json
    assert found["cycles"] == pytest.approx(found["predicted_cycles"], rel=0.1)
    assert found["agrees"] is True
    assert found["on_host"] == []
    for key in ("utilisation", "instructions", "units", "memories", "plan"):
        assert found[key], key


def test_a_plan_goes_out_and_comes_back(tmp_path: Path) -> None:
    written = dovetail("compile", "--text", PRODUCT, *ON, "--emit", "plan,nest", "-o", tmp_path / "product")
    assert written.code == 0
    assert "wrote" in written.out and "certificate" in written.out
    assert "call matmul16(" in (tmp_path / "product.nest").read_text()
    plan = ("--plan", tmp_path / "product.plan")
    assert dovetail("simulate", "--text", PRODUCT, *ON, *plan) == dovetail("simulate", "--text", PRODUCT, *ON)


def test_a_search_is_never_behind_the_default_plan(tmp_path: Path) -> None:
    found = dovetail(
        "simulate", "--text", PRODUCT, *ON, "--search", "1", "--save-plan", tmp_path / "best.json", "--check"
    )
    assert found.code == 0
    assert "searched " in found.out and "times as fast as the default plan" in found.out
    again = dovetail("simulate", "--text", PRODUCT, *ON, "--plan", tmp_path / "best.json", "--json").json["cycles"]
    default = dovetail("simulate", "--text", PRODUCT, *ON, "--json").json["cycles"]
    assert isinstance(again, float) and isinstance(default, float)
    assert again <= default


def test_a_plan_and_a_search_for_one_exclude_each_other(tmp_path: Path) -> None:
    dovetail("simulate", "--text", PRODUCT, *ON, "--save-plan", tmp_path / "plan.json")
    done = dovetail("simulate", "--text", PRODUCT, *ON, "--search", "1", "--plan", tmp_path / "plan.json")
    assert done.code == 2
    assert "a plan is given, and one is to be searched for" in done.err


def test_statements_on_the_host_are_listed_with_the_reason() -> None:
    done = dovetail("simulate", "--text", ROWS, *ON, "--size", "m=9", "--check")
    assert done.code == 0
    assert "statement 0 on the host: for i<9, j<5: c[i] += a[i, j]" in done.out
    assert "check: exact: all 9 elements" in done.out


def test_run_shows_cycles_instead_of_time() -> None:
    done = dovetail("run", "--text", PRODUCT, *ON, "--check")
    assert done.code == 0
    assert "cycles simulated" in done.out and "latency" not in done.out
    assert "40 x 70" in done.out
    assert "check: exact" in done.out


def test_verify_compares_every_element() -> None:
    done = dovetail("verify", "--text", PRODUCT, *ON)
    assert done.code == 0
    assert "exact: all 2800 elements" in done.out


def test_map_finds_the_instructions_of_a_simulated_machine() -> None:
    done = dovetail("map", "--text", PRODUCT, *ON)
    assert done.code == 0
    assert "matmul16" in done.out


ERRORS = {
    "no machine": (
        ("simulate", "--text", PRODUCT),
        "no machine is given\n  try: --target with a .toml file, or one of npu-mv, sw26010, systolic16",
    ),
    "a machine with code": (
        ("simulate", "--text", PRODUCT, "--target", "x86-64-v3"),
        "'x86-64-v3' is not simulated: its file has an [llvm] table",
    ),
    "no code": (
        ("compile", "--text", PRODUCT, *ON, "--emit", "s"),
        "there is no 's' for a simulated machine\n  try: --emit plan,nest",
    ),
    "no time": (
        ("bench", "--text", PRODUCT, *ON),
        "'systolic16' is simulated: it counts cycles, and has no time to measure\n  try: dovetail simulate",
    ),
    "no size": (("simulate", "--text", ROWS, *ON), "the value of size 'm' is not given"),
    "no size to compile": (
        ("compile", "--text", ROWS, *ON),
        "a plan for the simulated machine 'systolic16' needs the values of all run-time sizes",
    ),
    "no plan": (
        ("simulate", "--text", PRODUCT, *ON, "--plan", "nowhere.plan"),
        "the plan 'nowhere.plan' cannot be read",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_what_cannot_be_done_says_what_can(name: str) -> None:
    command, words = ERRORS[name]
    done = dovetail(*command)
    assert done.code == 2
    assert words in done.err
