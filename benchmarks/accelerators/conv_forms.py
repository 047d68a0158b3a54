"""The forms of a convolution that rules make of its definition.

implicit   y += x[windows] * w
explicit   cols = x[windows]; y += cols * w
winograd   v = B x B^T; p += v * u; y = A p A^T, for tiles of 2x2 and of 4x4 outputs; 3x3 taps at stride 1 only
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dovetail.ir.parse import parse
from dovetail.rewrite.forms import forms as rewritten

NAMES = {"im2col": ("explicit", ""), "winograd-2x2": ("winograd", "2x2"), "winograd-4x4": ("winograd", "4x4")}
"""Rule -> form and variant."""


@dataclass(frozen=True, slots=True)
class Form:
    """A way to compute a convolution; ``variant`` tells programs of the same form apart."""

    name: str
    variant: str
    text: str


def forms(implicit: str) -> Iterator[Form]:
    """All forms of a convolution, first the one that is given."""
    yield Form("implicit", "", implicit)
    for form in rewritten(parse(implicit), relaxed=True):
        name, variant = NAMES[form.name]
        yield Form(name, variant, str(form.program))
