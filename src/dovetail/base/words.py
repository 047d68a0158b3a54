"""Words from outside, made fit for a terminal and a message."""

from __future__ import annotations

LONGEST = 120
LONGEST_LINE = 1000


def printable(name: str, longest: int = LONGEST) -> str:
    """``name`` without control characters, line breaks or marks that turn the writing, and not too long.

    printable("conv\\n1") is "conv\\\\n1": what cannot be shown is spelled as Python spells it.
    """
    return _cut(_escaped(name), longest)


def fit_to_print(message: str) -> str:
    """``message`` with its lines, but nothing in them that steers a terminal, and no line that floods it.

    The last guard: whoever puts a name into a message uses ``printable``, which keeps line breaks out as well.
    """
    return "\n".join(_cut(_escaped(line, kept="\t"), LONGEST_LINE) for line in message.split("\n"))


def _escaped(text: str, kept: str = "") -> str:
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c in kept else c.encode("unicode_escape", "backslashreplace").decode() for c in text
    )


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
