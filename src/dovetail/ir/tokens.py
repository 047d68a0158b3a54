"""Text -> tokens, with the place of each for messages that put a caret under it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dovetail.base.errors import ParseError

_PATTERN = re.compile(
    r"(?P<space>[ \t\r\n;]+|\#[^\n]*)"
    r"|(?P<number>\d+(?:(?:\.(?!\.)\d*)?(?:[eE][+-]?\d+)?))"
    r"|(?P<name>[A-Za-z_][A-Za-z_0-9]*)"
    r"|(?P<symbol>\.\.|//|<<|>>|<=|>=|==|!=|\+=|\*=|[-+*/%<>=(),:\[\]&|^~])"
)
_SHOWN = 160
"""Characters of a line that a message shows."""


@dataclass(frozen=True, slots=True)
class Token:
    """``kind`` is number, name, symbol or end."""

    kind: str
    text: str
    place: int


@dataclass(frozen=True, slots=True)
class Source:
    """A text and the name it goes by in messages."""

    text: str
    name: str = "program"

    def line(self, place: int) -> int:
        return self.text.count("\n", 0, place) + 1

    def error(self, message: str, place: int, hint: str | None = None) -> ParseError:
        """The line with a caret under ``place``."""
        start = self.text.rfind("\n", 0, place) + 1
        end = self.text.find("\n", start)
        shown = self.text[start : end if end >= 0 else len(self.text)]
        column = place - start
        if len(shown) > _SHOWN:
            cut = max(0, column - _SHOWN // 2)
            shown, column = shown[cut : cut + _SHOWN], column - cut
        where = f"{self.name}:{self.line(place)}:{place - start + 1}\n  {shown}\n  {' ' * column}^"
        return ParseError(message, where=where, hint=hint)


def tokenize(source: Source, pattern: re.Pattern[str] = _PATTERN) -> list[Token]:
    """All tokens, the last one of kind "end". The groups of ``pattern`` are kinds; "space" is left out."""
    tokens: list[Token] = []
    place = 0
    while place < len(source.text):
        match = pattern.match(source.text, place)
        if match is None:
            raise source.error(f"unexpected character {source.text[place]!r}", place)
        if match.lastgroup != "space":
            tokens.append(Token(match.lastgroup or "", match.group(), place))
        place = match.end()
    tokens.append(Token("end", "end of text", place))
    return tokens
