"""Products of one tensor with several weights are one product, of which each has a part: queries, keys and values.

q = add(matmul(x, wq), bq)                y = add(matmul(x, w), b)         -- w, b: all weights side by side
k = add(matmul(x, wk), bk)        ->      q = slice(y)
v = add(matmul(x, wv), bv)                k = slice(y)
                                          v = slice(y)

Only where nothing but moves reads the parts: those are read where they lie, while an activation would lose its place
on the product.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dovetail.graph.clean_rule import settings
from dovetail.graph.record import Passed, Record, counted
from dovetail.graph.sheet import Sheet
from dovetail.ir.graph.bound import Array, BoundGraph
from dovetail.ir.graph.graph import Node
from dovetail.ir.graph.verify import Operators

_MOVES = frozenset(("reshape", "transpose", "slice", "expand"))
_WEIGHTS_AXIS = {"matmul": 1, "dense": 0}
"""Along which axis of the weights the result's last axis lies."""


@dataclass(frozen=True, slots=True)
class _Product:
    """``value = x * weights + bias``."""

    node: Node
    value: str
    weights: Array
    bias: Array | None


@dataclass(frozen=True, slots=True)
class JoinedProducts:
    """Every result has the bits it had: each is its own sum."""

    name: str = "joined-products"

    def __call__(self, bound: BoundGraph, operators: Operators) -> Passed:
        sheet = Sheet(bound, operators)
        groups: dict[tuple[object, ...], list[_Product]] = {}
        for node in bound.graph.nodes:
            if node.op in _WEIGHTS_AXIS and (found := _product(sheet, node)) is not None:
                inner = found.weights.shape[1 - _WEIGHTS_AXIS[node.op]]
                key = (node.op, node.operands[0], inner, found.bias is None, found.weights.dtype)
                groups.setdefault(key, []).append(found)
        joined = [products for products in groups.values() if len(products) > 1]
        if not joined:
            return bound, ()
        for products in joined:
            _join(sheet, products)
        what = f"{sum(map(len, joined))} products joined into {counted(len(joined), 'product')}"
        return sheet.finish(), (Record(self.name, what, "they multiply the same tensor, and only moves read them"),)


def _product(sheet: Sheet, node: Node) -> _Product | None:
    """What ``node`` makes, with the bias behind it, where only moves read that."""
    weights = sheet.array(node.operands[1])
    plain = not any(settings(sheet, node).values())
    if weights is None or weights.ndim != 2 or not plain or sheet.types[node.operands[0]].rank < 2:
        return None
    bias = sheet.array(node.operands[2]) if len(node.operands) > 2 else None
    if len(node.operands) > 2 and bias is None:
        return None
    value = node.results[0]
    readers = sheet.readers(value)
    if node.op == "matmul" and len(readers) == 1 and readers[0].op == "add":
        added = readers[0].operands[1 if readers[0].operands[0] == value else 0]
        bias, value = sheet.array(added), readers[0].results[0]
        if bias is None or bias.shape != weights.shape[1:]:
            return None
    every = sheet.readers(value)
    moved = bool(every) and value not in sheet.outputs and all(reader.op in _MOVES for reader in every)
    return _Product(node, value, weights, bias) if moved else None


def _join(sheet: Sheet, products: list[_Product]) -> None:
    first = products[0].node
    axis = _WEIGHTS_AXIS[first.op]
    kind = sheet.types[first.operands[1]]
    weights = sheet.constant(np.concatenate([p.weights for p in products], axis), kind)
    biases = [p.bias for p in products if p.bias is not None]
    bias = sheet.constant(np.concatenate(biases), kind) if biases else None
    operands = (first.operands[0], weights)
    whole = sheet.add(first.op, *operands, *([bias] if bias is not None and first.op == "dense" else []))
    if bias is not None and first.op == "matmul":
        whole = sheet.add("add", whole, bias)
    last, start = sheet.types[whole].rank - 1, 0
    for product in products:
        size = product.weights.shape[axis]
        part = sheet.add("slice", whole, starts=(start,), ends=(start + size,), axes=(last,))
        sheet.replace(product.value, part)
        start += size
