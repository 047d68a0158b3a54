"""Every operator there is, by name. A new one is a function in a module of ``ops`` and an entry in its list."""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.ir.graph.operator import Operator
from dovetail.ops import (
    activation,
    arithmetic,
    attention,
    blocks,
    contraction,
    convolution,
    einsum,
    elementary,
    generate,
    lookup,
    loss,
    normalisation,
    padding,
    pointwise,
    pooling,
    quantise,
    recurrent,
    reduction,
    resample,
    sample,
    scatter,
    sequence,
    shape,
    special,
)

_MODULES = (
    pointwise,
    arithmetic,
    elementary,
    activation,
    contraction,
    einsum,
    convolution,
    pooling,
    normalisation,
    reduction,
    shape,
    special,
    generate,
    blocks,
    padding,
    lookup,
    scatter,
    recurrent,
    quantise,
    loss,
    resample,
    sequence,
    attention,
    sample,
)

OPERATORS: Mapping[str, Operator] = {known.name: known for module in _MODULES for known in module.OPERATORS}
