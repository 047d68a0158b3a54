"""Patterns of a model, matched in bounded time.

RE2, the language of the standard, takes time in proportion to the text; Python's matcher tries one choice after the
other and can take for ever. So what is repeated may hold no choice itself, and the ways in which all choices can be
combined are counted before a text is matched.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from dovetail.base.errors import LimitError
from dovetail.frontends.onnx.convert.attributes import malformed, place, unsupported
from dovetail.frontends.onnx.model import OnnxNode

MOST_WAYS = 20_000_000
"""About a second's worth of steps of Python's matcher."""
MOST_REPEATS = 255
"""How often ``{n}`` may repeat; RE2 allows 1000."""
LONGEST_PATTERN = 1000
_BEYOND_RE2 = re.compile(r"\(\?[=!<>(]|\(\?P=|\\[1-9]")
"""Lookaround, back references, groups that do not give back: Python has them, RE2 has not."""
_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{(\d+)(?:,(\d*))?\}|.", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Pattern:
    """``repeats`` of its elements can take any part of a text, and there are ``choices`` of the other kinds."""

    node: OnnxNode
    expression: re.Pattern[str]
    repeats: int
    choices: int

    def matches(self, word: str) -> bool:
        """Whether all of ``word`` is what the pattern describes."""
        if (len(word) + 1) ** max(1, self.repeats) << self.choices > MOST_WAYS:
            raise LimitError(
                f"a text of {len(word)} characters and a pattern of {self.repeats} repetitions",
                where=place(self.node),
                why="they can be brought together in too many ways",
            )
        return self.expression.fullmatch(word) is not None


def pattern_of(node: OnnxNode, text: str) -> Pattern:
    """The pattern that a node states."""
    if len(text) > LONGEST_PATTERN:
        raise unsupported(node, f"its pattern has {len(text)} characters")
    if _BEYOND_RE2.search(text):
        raise unsupported(node, "the pattern looks around or back, which RE2 cannot")
    repeats, choices = _choices(node, text)
    try:
        return Pattern(node, re.compile(text), repeats, choices)
    except (re.error, OverflowError) as problem:
        raise malformed(node, f"the pattern cannot be read ({problem})") from None


def _choices(node: OnnxNode, text: str) -> tuple[int, int]:
    """How many elements of the pattern can take any part of a text, and how many other choices it has."""
    opened = [(0, 0)]  # the choices before each open group, the innermost last
    element = now = (0, 0)  # the choices before the element at hand, and after it
    last = ""
    for token in _TOKEN.finditer(text):
        word, (repeats, choices) = token.group(), now
        if word in ("*", "+") or token.group(1) is not None:
            if max(int(number or 0) for number in token.groups()) > MOST_REPEATS:
                raise unsupported(node, f"its pattern repeats more than {MOST_REPEATS} times")
            if element != now or last in _QUANTIFIERS:  # a second one means something else in Python
                raise unsupported(node, "its pattern repeats what has choices of its own")
            now = repeats + 1, choices
        elif word in ("?", "|"):
            now = repeats, choices + 1
        elif word == "(":
            opened.append(now)
        last = word
        element = opened.pop() if word == ")" and len(opened) > 1 else now
    return now


_QUANTIFIERS = ("*", "+", "?")
