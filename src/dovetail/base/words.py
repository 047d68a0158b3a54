"""Words from outside, made fit for a terminal and a message."""

from __future__ import annotations

LONGEST = 120


def printable(name: str, longest: int = LONGEST) -> str:
    """``name`` without control characters, line breaks or marks that turn the writing, and not too long.

    printable("conv\\n1") is "conv\\\\n1": what cannot be shown is spelled as Python spells it.
    """
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in name)
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"
