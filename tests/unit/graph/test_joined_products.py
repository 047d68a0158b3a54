"""Products of one tensor."""

from __future__ import annotations

import pytest

from dovetail.graph.grouping import regions
from dovetail.graph.joined_products import JoinedProducts
from dovetail.graph.optimise import optimise
from dovetail.ir.graph.verify import verify
from dovetail.ops.table import OPERATORS
from tests.unit.graph.models import bound, ops, same


def heads(layer: str, given: str) -> str:
    lines = ["graph heads(x: f32[1, 4, 6]) -> (y, z)"]
    for name in "qkv":
        lines += [f"  const w{name}: f32[6, 6]", f"  const b{name}: f32[6]"]
    for name in "qkv":
        lines.append(f"  m{name} = {layer.format(name)}")
        lines.append(f"  r{name} = reshape({given.format(name)}) {{shape = (1, 4, 2, 3)}}")
    lines += ["  s = matmul(rq, rk) {transpose_b = 1}", "  y = matmul(s, rv)", "  z = relu(y)"]
    return "\n".join(lines)


@pytest.mark.parametrize("layer", ["dense(x, w{0}, b{0})", "dense(x, w{0})", "matmul(x, w{0})"])
def test_queries_keys_and_values_are_one_product(layer: str) -> None:
    before = bound(heads(layer, "m{0}"))
    after, records = JoinedProducts()(before, OPERATORS)
    assert ops(after.graph).count(layer.split("(")[0]) == (1 if layer.startswith("dense") else 3)
    assert records[0].what == "3 products joined into 1 product"
    same(before, after)


def test_biases_behind_products_are_joined_too_and_parts_are_read_where_they_lie() -> None:
    text = heads("matmul(x, w{0})", "a{0}")
    for name in "qkv":
        text = text.replace(f"  r{name} =", f"  a{name} = add(m{name}, b{name})\n  r{name} =")
    before = bound(text)
    after, _ = optimise(before, OPERATORS)
    same(before, after)
    titles = [r.title for r in regions(after.graph, OPERATORS, verify(after.graph, OPERATORS))]
    assert titles == ["matmul + add", "reshape", "slice + slice + matmul", "slice + matmul", "relu"]


def test_products_with_an_activation_stay_apart() -> None:
    before = bound("""
graph gate(x: f32[4, 6]) -> (y)
  const w: f32[6, 8]
  const v: f32[6, 8]
  a = matmul(x, w)
  b = matmul(x, v)
  s = silu(a)
  y = mul(s, b)
""")
    assert JoinedProducts()(before, OPERATORS)[0] is before
