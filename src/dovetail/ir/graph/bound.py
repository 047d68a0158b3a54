"""A graph with the data of its constants: what front ends make of a model, and passes work on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dovetail.base.words import printable
from dovetail.ir.graph.graph import Graph

Array = npt.NDArray[np.generic]


@dataclass(frozen=True, slots=True, eq=False)
class BoundGraph:
    """``data`` has an array for every constant of ``graph``, of its dtype and shape.

    Values are called v0, v1, ...: ``names`` says what the model calls them, for messages alone.
    """

    graph: Graph
    data: Mapping[str, Array]
    names: Mapping[str, str] = field(default_factory=dict)

    def shown(self, value: str) -> str:
        """What a message calls ``value``."""
        return printable(self.names.get(value, value))
