"""Patterns of models: those people write are matched, those that take for ever are refused."""

from __future__ import annotations

import pytest

from dovetail.base.errors import LimitError, UnsupportedError
from dovetail.frontends.onnx.host.patterns import pattern_of
from dovetail.frontends.onnx.model import OnnxNode

NODE = OnnxNode("RegexFullMatch", "", ("x",), ("y",))


@pytest.mark.parametrize(
    ("pattern", "word", "expected"),
    [
        (r"www\.[\w.-]+\.\bcom\b", "www.google.com", True),
        (r"www\.[\w.-]+\.\bcom\b", "www.google.org", False),
        (r"(\W|^)[\w.\-]{0,25}@(yahoo|gmail)\.com(\W|$)", "account@gmail.com", True),
        (r"", "", True),
        (r"[)(*+]+", "(*)", True),
        (r"(ab)+c?", "ababc", True),
        (r"\(a\)*", "(a)))", True),
    ],
)
def test_a_pattern_is_matched(pattern: str, word: str, expected: bool) -> None:
    assert pattern_of(NODE, pattern).matches(word) is expected


@pytest.mark.parametrize(
    "pattern",
    ["(a+)+$", "(a|a)*b", "(a?)*b", "((a*)b)*", "(a{1,9}){9}", "a{1,999}", "(?=a)a", r"(a)\1", "a" * 2000, "a++"],
)
def test_a_pattern_that_may_take_for_ever_is_refused(pattern: str) -> None:
    with pytest.raises(UnsupportedError):
        pattern_of(NODE, pattern)


@pytest.mark.parametrize("pattern", ["a*a*a*b", "a?" * 30 + "a" * 30])
def test_a_text_that_fits_in_too_many_ways_is_refused(pattern: str) -> None:
    with pytest.raises(LimitError):
        pattern_of(NODE, pattern).matches("a" * 1000)
