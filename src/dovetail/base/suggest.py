"""The name that a reader may have meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def closest(name: str, known: Iterable[str]) -> str:
    """A hint for a name that is not one of ``known``: the closest that is, or all of them."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, 1)
    return f"did you mean '{close[0]}'?" if close else f"one of {', '.join(names)}"
