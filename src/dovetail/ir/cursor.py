"""A place in a list of tokens, for readers by recursive descent; every error shows the line with a caret."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from typing import TypeVar

from dovetail.base.errors import ParseError
from dovetail.ir.index import Condition, Index
from dovetail.ir.tokens import Source, Token

T = TypeVar("T")

DEEPEST = 100
"""Levels of nesting that a text may have."""
COMPARE = ("<", "<=", ">", ">=", "==")


class Cursor:
    """Tokens and how far they are read. Readers of a language derive from it."""

    def __init__(self, source: Source, tokens: Sequence[Token]) -> None:
        self.source = source
        self.tokens = tokens
        self.at = 0
        self.depth = 0

    def whole_text(self, part: Callable[[], T]) -> T:
        """What ``part`` reads, and nothing after it."""
        found = part()
        if self.here.kind != "end":
            raise self.error("expected the end of the text")
        return found

    def inside(self, part: Callable[[], T], close: str | None = None) -> T:
        """``part``, one level deeper, up to ``close``. Hostile text must not exhaust the stack."""
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.refusal(f"more than {DEEPEST} levels of nesting", self.here)
        found = part()
        if close is not None:
            self.expect(close)
        self.depth -= 1
        return found

    @property
    def here(self) -> Token:
        return self.tokens[self.at]

    def take(self) -> Token:
        token = self.here
        self.at = min(self.at + 1, len(self.tokens) - 1)
        return token

    def accept(self, text: str) -> bool:
        if self.here.text != text or self.here.kind == "end":
            return False
        self.take()
        return True

    def expect(self, text: str) -> None:
        if not self.accept(text):
            raise self.error(f"expected '{text}'")

    def integer(self) -> int:
        negative = self.accept("-")
        value = self.whole(self.take())
        return -value if negative else value

    def whole(self, token: Token) -> int:
        if not token.text.isdigit() or len(token.text) > 30:
            raise self.error("expected a whole number", token)
        return int(token.text)

    def error(self, message: str, token: Token | None = None) -> ParseError:
        token = token or self.here
        return self.source.error(f"{message}, found '{token.text}'", token.place)

    def refusal(self, message: str, token: Token) -> ParseError:
        """What is there can be read, but not meant."""
        return self.source.error(message, token.place)

    def unknown(self, what: str, token: Token, known: object) -> ParseError:
        names = sorted(known) if isinstance(known, dict) else []
        close = difflib.get_close_matches(token.text, names, 1)
        hint = f"did you mean '{close[0]}'?" if close else (f"known: {', '.join(names[:12])}" if names else None)
        if what == "size" and not names:
            hint = f"a run-time extent is declared first: size {token.text} in 1..1024"
        return self.source.error(f"unknown {what} '{token.text}'", token.place, hint)


def condition(left: Index, sign: str, right: Index) -> Condition:
    """``left sign right``, one of ``COMPARE``."""
    if sign == "==":
        return Condition(left - right, equal=True)
    if sign in ("<", "<="):
        return Condition(right - left - (1 if sign == "<" else 0))
    return Condition(left - right - (1 if sign == ">" else 0))
