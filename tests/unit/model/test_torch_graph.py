"""What PyTorch computes of a graph, to compare times with, is what the graph means."""

from __future__ import annotations

import numpy as np
import pytest

from dovetail.base.errors import UnsupportedError
from dovetail.ir.graph.evaluate import evaluate
from dovetail.model.torch_graph import as_torch
from dovetail.ops.table import OPERATORS
from tests.random_models.judge import random_model
from tests.unit.graph.models import bound

IMAGES = """graph net(x: f32[1, 3, 9, 8]) -> (y)
  const w: f32[4, 3, 3, 3]
  const b: f32[4]
  const u: f32[5, 4]
  c = conv(x, w, b) {pads = (1, 1, 1, 0), strides = (2, 1)}
  r = relu(c)
  p = max_pool(r) {kernel = (2, 2), strides = (1, 2), pads = (1, 0, 0, 1)}
  g = global_average_pool(p)
  f = flatten(g)
  y = gemm(f, u) {transpose_b = 1}
"""
WORDS = """graph net(i: i64[2, 5]) -> (y, last)
  const table: f32[7, 6]
  const w: f32[6, 12]
  const s: f32[6]
  e = gather(table, i)
  h = matmul(e, w)
  a, c = split(h) {sizes = (6, 6), axis = 2}
  t = transpose(c) {perm = (0, 2, 1)}
  m = matmul(a, t)
  z = softmax(m) {axis = -1}
  n = matmul(z, a)
  l = layer_norm(n, s, s) {axis = -1}
  y = add(l, e)
  last = slice(y) {starts = (-1,), ends = (99,), axes = (1,)}
"""


@pytest.mark.parametrize("text", [IMAGES, WORDS], ids=["images", "words"])
def test_a_graph_run_by_pytorch_gives_what_it_means(text: str) -> None:
    model = bound(text)
    rng = np.random.default_rng(1)
    given = {v.name: rng.integers(0, 6, [e.const for e in v.type.shape]) for v in model.graph.inputs}
    arrays = {v.name: given[v.name].astype(v.type.dtype.numpy) for v in model.graph.inputs}
    wanted = evaluate(model.graph, OPERATORS, arrays, model.data)
    for name, array in zip(model.graph.outputs, as_torch(model)(*arrays.values()), strict=True):
        np.testing.assert_allclose(array.astype(np.float64), wanted[name].astype(np.float64), rtol=1e-5, atol=1e-5)


def test_random_models_that_pytorch_is_told_to_run_agree() -> None:
    ran = 0
    for seed in range(60):
        grown, model = random_model(seed)
        try:
            run = as_torch(model)
        except UnsupportedError:
            continue
        ran += 1
        for name, array in zip(model.graph.outputs, run(*grown.arguments(model)), strict=True):
            found = grown.facts[name].array
            np.testing.assert_allclose(array.astype(np.float64), found.astype(np.float64), rtol=1e-3, atol=1e-3)
    assert ran >= 5
