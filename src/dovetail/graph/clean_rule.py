"""What rules of the clean-up are made of, and what they ask about operands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dovetail.base.errors import OperatorError
from dovetail.graph.sheet import Sheet
from dovetail.ir.graph.graph import Attribute, Node, Type
from dovetail.ir.graph.operator import find

Values = tuple[str, ...]
"""What takes the place of each result of a node."""
_LARGEST = 1 << 20
"""Elements of a constant that is looked through for one number."""


@dataclass(frozen=True, slots=True)
class CleanRule:
    """For nodes of these operators: ``function`` gives what takes a node's place, or None."""

    name: str
    operators: tuple[str, ...]
    function: Callable[[Sheet, Node], str | Values | None]
    why: str
    exact: bool = True
    """Whether every value keeps its bits (but for the sign of a zero)."""

    def apply(self, sheet: Sheet, node: Node) -> Values | None:
        found = self.function(sheet, node)
        return (found,) if isinstance(found, str) else found


def settings(sheet: Sheet, node: Node) -> dict[str, Attribute | None]:
    """All attributes of a node, defaults filled in."""
    return find(node, sheet.operators).settings(node)


def numbers(value: Attribute | None) -> tuple[int, ...]:
    """A list of whole numbers; empty for anything else."""
    return tuple(v for v in value if isinstance(v, int)) if isinstance(value, tuple) else ()


def number(sheet: Sheet, value: str) -> float | None:
    """The one number that a constant is made of; None where it is another kind of value."""
    array = sheet.array(value)
    if array is None or not 0 < array.size <= _LARGEST or array.dtype.kind not in "fiub":
        return None
    first = array.flat[0]
    return float(first) if bool(np.all(array == first)) else None


def close(found: float | None, wanted: float) -> bool:
    """Whether a constant is ``wanted``, written with the digits of a float."""
    return found is not None and abs(found - wanted) <= 1e-6 * abs(wanted)


def retyped(sheet: Sheet, op: str, *operands: str, like: str, **attributes: Attribute) -> str | None:
    """A new node whose result has the type of ``like``; None where there is no such node."""
    try:
        value = sheet.add(op, *operands, **attributes)
    except OperatorError:
        return None
    if sheet.types[value] == sheet.types[like]:
        return value
    sheet.release(value)
    return None


def reshaped(sheet: Sheet, value: str, t: Type) -> str | None:
    """``value`` under the shape of ``t``, which is known in numbers."""
    if sheet.types[value] == t:
        return value
    shape = tuple(extent.const for extent in t.shape)
    if not all(extent.is_constant for extent in t.shape) or 0 in shape:
        return None
    return sheet.add("reshape", value, shape=shape)


def other(node: Node, value: str) -> str:
    """The operand of a node of two that is not ``value``."""
    first, second = node.operands
    return second if first == value else first
