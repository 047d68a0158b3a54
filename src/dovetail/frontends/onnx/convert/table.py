"""Every conversion there is, by (domain, operator). A module of ``convert`` has a table ``CONVERSIONS`` of its own."""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.frontends.onnx.convert import (
    attention,
    contraction,
    generate,
    lookup,
    loss,
    nn,
    normalisation,
    pointwise,
    quantise,
    recurrent,
    reduction,
    resize,
    sample,
    shape,
)
from dovetail.frontends.onnx.convert.context import Conversion

_TABLES: tuple[Mapping[tuple[str, str], Conversion], ...] = (
    contraction.CONVERSIONS,
    generate.CONVERSIONS,
    lookup.CONVERSIONS,
    nn.CONVERSIONS,
    normalisation.CONVERSIONS,
    pointwise.CONVERSIONS,
    reduction.CONVERSIONS,
    shape.CONVERSIONS,
    quantise.CONVERSIONS,
    loss.CONVERSIONS,
    resize.CONVERSIONS,
    recurrent.CONVERSIONS,
    attention.CONVERSIONS,
    sample.CONVERSIONS,
)
"""``module.CONVERSIONS`` of each; no operator is in two."""

CONVERSIONS: Mapping[tuple[str, str], Conversion] = {key: made for table in _TABLES for key, made in table.items()}
