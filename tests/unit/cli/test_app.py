"""What all verbs have in common: help, version, where programs come from, and how errors look."""

import subprocess
import sys
from pathlib import Path

import pytest

from dovetail import __version__
from dovetail.cli.screen import plain
from tests.unit.cli.command import MATMUL, dovetail

VERBS = ("map", "compile", "run", "bench", "verify", "simulate", "targets", "doctor", "explain", "rules")


def test_the_version_is_the_packages() -> None:
    assert dovetail("--version").out == f"dovetail {__version__}\n"


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_of_every_verb_has_an_example(verb: str) -> None:
    done = dovetail(verb, "--help")
    assert done.code == 0
    assert f"Example:\n    dovetail {verb}" in done.out


def test_the_main_help_lists_every_verb() -> None:
    listed = dovetail("--help").out.split("Commands:")[1]
    assert {line.split()[0] for line in listed.strip().splitlines()} == set(VERBS)


def test_help_loads_no_compiler() -> None:
    probe = "import sys; from dovetail.cli import app; print(*sorted({m.split('.')[0] for m in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True).stdout.split()
    assert {"llvmlite", "islpy", "numpy"}.isdisjoint(loaded)


def test_the_module_is_the_command() -> None:
    run = subprocess.run([sys.executable, "-m", "dovetail", "--version"], capture_output=True, text=True, check=True)
    assert run.stdout == f"dovetail {__version__}\n"


def test_a_program_comes_from_a_file_standard_input_or_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "matmul.dt"
    file.write_text(MATMUL)
    from_file = dovetail("verify", file, "--threads", "1")
    assert from_file.code == 0
    assert dovetail("verify", "-", "--threads", "1", stdin=MATMUL) == from_file
    assert dovetail("verify", "--text", MATMUL, "--threads", "1") == from_file


def test_a_term_is_taken_for_the_program_it_stands_for() -> None:
    body = r"map(\r -> map(\k -> reduce(add, 0, map(mul, zip(r, k))), transpose(b)), a)"
    term = f"def product(a: f32[13, 9], b: f32[9, 11]) -> c = {body}"
    done = dovetail("verify", "--text", term, "--threads", "1")
    assert done.code == 0
    assert "143" in done.out


ERRORS = {
    "no program": (
        ("run",),
        "error: no program is given\n  try: a file, - for standard input, or --text 'in x: f32[8] ...'\n",
    ),
    "two programs": (
        ("run", "-", "--text", MATMUL),
        "error: two programs are given: a file and --text\n"
        "  try: a file, - for standard input, or --text 'in x: f32[8] ...'\n",
    ),
    "no file": (
        ("map", "missing.dt"),
        "error: the program 'missing.dt' cannot be read\n  No such file or directory\n"
        "  try: a file, - for standard input, or --text 'in x: f32[8] ...'\n",
    ),
    "caret": (
        ("run", "--text", "in x: f32[4] out y: f32[4]\nfor i<4: y[i] = x[i"),
        "error: expected ']', found 'end of text'\n  --text:2:20\n    for i<4: y[i] = x[i\n                       ^\n",
    ),
    "size unknown": (
        ("run", "--text", "size m in 1..512 in x: f32[m] out y: f32[m] for i<m: y[i] = x[i]"),
        "error: the value of size 'm' is not given\n  the program declares size m in 1..512\n  try: --size m=512\n",
    ),
    "size no number": (("run", "--text", MATMUL, "--size", "m=x"), "error: --size m=x is not a whole number\n"),
    "size no pair": (("run", "--text", MATMUL, "--size", "7"), "error: --size 7 is not NAME=VALUE\n"),
    "size twice": (
        ("run", "--text", MATMUL, "--size", "m=7", "--size", "m=8"),
        "error: --size m is given twice\n",
    ),
    "no such widening": (
        ("map", "--text", MATMUL, "--allow", "anything"),
        "error: --allow anything is not known\n  try: --allow identity or finite\n",
    ),
    "no such artefact": (
        ("compile", "--text", MATMUL, "--threads", "1", "--emit", "exe"),
        "error: there is no artefact 'exe'\n  try: ll, s, o, h, plan, nest\n",
    ),
    "no such instruction": (
        ("targets", "show", "generic", "fmaa"),
        "error: target 'generic' has no instruction 'fmaa'\n  try: dovetail targets show generic lists them\n",
    ),
    "no such input": (
        ("run", "--text", MATMUL, "--input", "d=d.npy"),
        "error: 'd' is not an input of the program\n  its inputs: a, b\n",
    ),
    "no such output": (
        ("run", "--text", MATMUL, "--output", "d=d.npy"),
        "error: 'd' is not an output of the program\n  its outputs: c\n",
    ),
    "no plan": (
        ("compile", "--text", MATMUL, "--plan", "missing.plan"),
        "error: the plan 'missing.plan' cannot be read\n  [Errno 2] No such file or directory: 'missing.plan'\n",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_a_users_error_says_what_where_why_and_what_to_try(case: str) -> None:
    arguments, expected = ERRORS[case]
    done = dovetail(*arguments)
    assert (done.err, done.code) == (expected, 2)


def test_a_target_that_does_not_exist_is_a_users_error() -> None:
    done = dovetail("map", "--text", MATMUL, "--target", "x86-64-v33")
    assert done.code == 2
    assert done.err.startswith("error: ")
    assert "x86-64-v3" in done.err


def test_an_unknown_option_is_a_users_error() -> None:
    assert dovetail("map", "--frobnicate").code == 2


def test_a_program_that_is_not_text_is_refused() -> None:
    done = dovetail("run", "-", stdin=b"in x\xff")
    assert (done.err, done.code) == ("error: the program '-' is not text\n  byte 4 is not UTF-8\n", 2)


def test_control_characters_of_a_program_do_not_reach_the_terminal() -> None:
    done = dovetail("run", "-", stdin="in a\x1b[31m\x9b\u202e: f32[4]")
    assert done.code == 2
    assert not any(c in done.err for c in "\x1b\x9b\u202e")
    assert "\\x1b[31m\\x9b\\u202e" in done.err


def test_text_that_shows_stays_as_it_is() -> None:
    assert plain("größe [bold] 1²\nnext") == "größe [bold] 1²\nnext"
    assert plain("a\tb\rc\u2028d\ue000") == "a\\tb\\rc\\u2028d\\ue000"
