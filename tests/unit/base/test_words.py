"""Words from outside are fit for a terminal."""

import pytest

from dovetail.base.errors import DovetailError
from dovetail.base.words import LONGEST, LONGEST_LINE, fit_to_print, printable


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("conv1", "conv1"),
        ("a\nb", "a\\nb"),
        ("\x1b[2J", "\\x1b[2J"),
        ("\u202eabc", "\\u202eabc"),
        ("\ud800", "\\ud800"),
        ("Größe", "Größe"),
    ],
)
def test_a_name_is_shown_without_what_steers_a_terminal(name: str, shown: str) -> None:
    assert printable(name) == shown


def test_a_long_name_is_cut() -> None:
    assert len(printable("n" * 1000)) == LONGEST


def test_a_message_keeps_its_lines_and_tabs() -> None:
    assert fit_to_print("a\n\tb") == "a\n\tb"


def test_whatever_an_error_says_is_fit_to_print() -> None:
    message = str(DovetailError("no \x1b[2J", where="at \x00", why="x" * 5000, hint="\u2028"))
    assert message.splitlines()[:2] == ["no \\x1b[2J", "  at \\x00"]
    assert max(map(len, message.splitlines())) == LONGEST_LINE
    assert all(line.isprintable() for line in message.split("\n"))
