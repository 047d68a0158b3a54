"""Norms become part of weights."""

from __future__ import annotations

import numpy as np
import pytest

from dovetail.graph.batch_norm_folding import BatchNormFolding
from dovetail.graph.optimise import optimise
from dovetail.ir.graph.bound import BoundGraph
from dovetail.ops.table import OPERATORS
from tests.unit.graph.models import bound, ops, same

NORM = "".join(f"  const {name}: f32[3]\n" for name in "sbmv")


def found(text: str) -> BoundGraph:
    return bound(text, {"v": np.array([4.0, 1.0, 9.0], np.float32)})


@pytest.mark.parametrize("bias", ["", ", a"])
def test_a_norm_behind_a_convolution_is_part_of_it(bias: str) -> None:
    before = found(
        f"graph g(x: f32[1, 2, 5, 5]) -> (y)\n  const w: f32[3, 2, 3, 3]\n  const a: f32[3]\n{NORM}"
        f"  c = conv(x, w{bias}) {{pads = (1, 1, 1, 1)}}\n  n = batch_norm(c, s, b, m, v)\n  y = relu(n)"
    )
    after, records = optimise(before, OPERATORS)
    assert ops(after.graph) == ["conv", "relu"]
    assert any("batch-norm-conv" in record.what for record in records)
    same(before, after, 1e-5)


def test_a_norm_that_no_weights_stand_before_is_a_factor_and_a_shift() -> None:
    before = found(f"graph g(x: f32[1, 3, 5, 5]) -> (y)\n{NORM}  r = relu(x)\n  y = batch_norm(r, s, b, m, v)")
    after, records = optimise(before, OPERATORS)
    assert ops(after.graph) == ["relu", "scale"]
    assert "1 norm made a factor and a shift" in [record.what for record in records]
    same(before, after, 1e-5)


def test_a_norm_of_data_stays() -> None:
    text = f"graph g(x: f32[1, 3, 5, 5], t: f32[3]) -> (y)\n{NORM}  y = batch_norm(x, s, b, t, v)"
    before = found(text)
    after, records = BatchNormFolding()(before, OPERATORS)
    assert after is before
    assert records[0].why == "their statistics are data"
