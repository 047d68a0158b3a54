"""Indices of programs as isl text, under new names (a loop may be called ``mod``)."""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.ir.index import Access, Index, Quotient, Remainder


def isl_text(index: Index, names: Mapping[str, str]) -> str | None:
    """``index`` in isl's syntax; None when it reads a tensor or uses what ``names`` does not have."""
    parts = [str(index.const)]
    for atom, coefficient in index.terms:
        if isinstance(atom, Access):
            return None
        text = names.get(atom) if isinstance(atom, str) else _divided(isl_text(atom.index, names), atom)
        if text is None:
            return None
        parts.append(f"{coefficient} * {text}")
    return " + ".join(parts)


def isl_texts(indices: tuple[Index, ...], names: Mapping[str, str]) -> tuple[str, ...] | None:
    """All of ``indices``; None when one of them reads a tensor."""
    found = tuple(isl_text(index, names) for index in indices)
    return None if None in found else tuple(text for text in found if text is not None)


def _divided(inner: str | None, atom: Quotient | Remainder) -> str | None:
    if inner is None:
        return None
    return f"floor(({inner})/{atom.divisor})" if isinstance(atom, Quotient) else f"(({inner}) mod {atom.divisor})"
