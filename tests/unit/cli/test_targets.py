"""``dovetail targets``: list, show, check."""

import json
from pathlib import Path

from tests.unit.cli.command import dovetail

ADDER = """\
name = "adder"
doc = "A machine with one instruction of its own."

[[unit]]
name = "core"
count = 1

[[memory]]
name = "memory"
kind = "main"
bytes = 1099511627776

[[memory]]
name = "registers"
kind = "registers"
per = "core"
bytes = 512
count = 16

[llvm]
triple = ""

[[instruction]]
name = "add_one"
computes = "for l<4: y[l] = x[l] + 1"
operands = { y = "i32 @ registers", x = "i32 @ registers" }
cycles = 1
emit = '''
%y = add <4 x i32> %x, <i32 1, i32 1, i32 1, i32 NUMBER>
ret <4 x i32> %y
'''
"""


def test_every_shipped_target_is_listed_with_whether_it_runs_here() -> None:
    done = dovetail("targets")
    assert done.code == 0
    for name in ("host", "generic", "x86-64-v3", "x86-64-v4", "znver4"):
        assert f"\n{name} " in done.out
    listed = json.loads(dovetail("targets", "--json").out)
    assert {entry["name"]: entry["missing"] for entry in listed}["generic"] == []


def test_a_target_is_shown_with_units_memories_and_instructions() -> None:
    done = dovetail("targets", "show", "x86-64-v3")
    assert done.code == 0
    for part in ("inherits generic", "16 x 32 bytes", "fma.f32x8", "acc[l] += a[l] *"):
        assert part in done.out


def test_one_instruction_is_shown_in_full() -> None:
    done = dovetail("targets", "show", "x86-64-v3", "fma.f32x8")
    assert done.code == 0
    assert "for l<8: acc[l] += a[l] * b[l]" in done.out
    assert "@llvm.fma.v8f32" in done.out


def test_check_runs_emissions_and_finds_the_one_that_lies(tmp_path: Path) -> None:
    file = tmp_path / "adder.toml"
    file.write_text(ADDER.replace("NUMBER", "1"))
    right = dovetail("targets", "check", file)
    assert right.code == 0
    assert "all 1 instructions of 'adder' that were run do what they say" in right.out
    file.write_text(ADDER.replace("NUMBER", "2"))
    wrong = dovetail("targets", "check", file)
    assert wrong.code == 1
    assert "add_one: y: element 3 is " in wrong.out
    faults = dovetail("targets", "check", file, "--json").json["faults"]
    assert isinstance(faults, list)
    assert faults[0]["instruction"] == "add_one"


def test_a_file_that_is_wrong_is_a_users_error(tmp_path: Path) -> None:
    file = tmp_path / "bad.toml"
    file.write_text('name = "bad"\ninherits = "generik"\n')
    done = dovetail("targets", "check", file)
    assert done.code == 2
    assert done.err.startswith("error: ")
    assert "generic" in done.err
