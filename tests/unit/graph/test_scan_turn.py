"""Steps begin with the product of their state."""

from __future__ import annotations

import numpy as np
import pytest

from dovetail.graph.constant_folding import ConstantFolding
from dovetail.graph.optimise import optimise
from dovetail.graph.scan_tidy import ScanTidy
from dovetail.ir.graph.verify import verify
from dovetail.ops.table import OPERATORS
from tests.unit.graph.cells import Layer, Unrolled, f32, lstm, unroll
from tests.unit.graph.models import bound, same

TURNED = """graph g(x: f32[4, 2, 8], h: f32[2, 4]) -> (last)
  const r: f32[4, 8]
  {first}
  last = scan(u0, x, r) {{carried = 1, scanned = 1}} do graph step(u: f32[2, 8], x: f32[2, 8], r: f32[4, 8]) -> (n)
    s = add(u, x)
    a = slice(s) {{starts = (0,), ends = (4,), axes = (1,), steps = (1,)}}
    b = slice(s) {{starts = (4,), ends = (8,), axes = (1,), steps = (1,)}}
    m = mul(a, b)
    h = clip(m) {{low = -3.0, high = 3.0}}
    n = matmul(h, r)
  end
"""


@pytest.mark.parametrize("first", ["u0 = matmul(h, r)", "const u0: f32[2, 8]"])
def test_the_smaller_state_is_carried(first: str) -> None:
    found = bound(TURNED.format(first=first), {"u0": np.zeros((2, 8), np.float32)})
    after, records = ScanTidy()(found, OPERATORS)
    verify(after.graph, OPERATORS)
    same(found, after)
    (scan,) = [node for node in after.graph.nodes if node.op == "scan"]
    assert str(scan.bodies[0].inputs[0].type) == "f32[2, 4]"
    assert "1 state carried as what a product is made of" in records[0].what


def test_a_first_state_that_no_product_gives_stays() -> None:
    found = bound(TURNED.format(first="const u0: f32[2, 8]"), {"u0": np.full((2, 8), 5, np.float32)})
    after, _ = ScanTidy()(found, OPERATORS)
    same(found, after)
    assert not any(str(v.type) == "f32[2, 4]" for n in after.graph.nodes for b in n.bodies for v in b.inputs[:1])


def test_a_first_product_that_was_folded_away_is_found_again() -> None:
    g = Unrolled(2)
    x = g.builder.input("x", f32(6, 2, 3))
    zeros = [g.constant(array=np.zeros((2, 4), np.float32)) for _ in range(2)]
    found = g.bound(*unroll(g, Layer(6), x, zeros, lstm(g, 3, 4)))
    folded, _ = ConstantFolding()(found, OPERATORS)
    assert len(folded.graph.nodes) < len(found.graph.nodes)
    after, records = optimise(folded, OPERATORS)
    same(found, after)
    assert any("recurrence of T=6" in record.what for record in records)
    (scan,) = [node for node in after.graph.nodes if node.op == "scan"]
    assert [str(value.type) for value in scan.bodies[0].inputs[:2]] == ["f32[2, 4]"] * 2
    assert [node.op for node in scan.bodies[0].nodes].count("matmul") == 1
