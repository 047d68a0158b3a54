"""Models whose shapes, axes and counts are computed while they run: what the onnx reference gives, for several data."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest
from onnx.reference import ReferenceEvaluator

from dovetail.frontends.onnx.file import from_proto
from dovetail.model.onnx_session import Session, reference

HEAD = """<ir_version: 10, opset_import: ["": 21]>
g (float[100] x) => (TYPE y)
<int64[1] zero = {0}, int64[1] one = {1}, int64[1] rest = {-1}, int64[1] hundred = {100}, float[2] values = {0, 1},
 int64 start = {0}, bool go = {1}, int64 step = {1}, int64[2] square = {10, 10}>
{ m = ReduceMax<keepdims=1>(x)  c = Cast<to=7>(m)  s = Squeeze(c)  """
BODIES = {
    "expand": ("float[a, b]", "t = Concat<axis=0>(c, hundred)  y = Expand(x, t)"),
    "tile": ("float[a]", "y = Tile(x, c)"),
    "range": ("int64[a]", "y = Range(start, s, step)"),
    "constant": ("float[a]", "y = ConstantOfShape(c)"),
    "slice": ("float[a]", "y = Slice(x, zero, c)"),
    "slice from": ("float[a]", "y = Slice(x, c, hundred, zero, c)"),
    "reshape": ("float[a, b]", "t = Concat<axis=0>(c, rest)  y = Reshape(x, t)"),
    "pad": ("float[a]", "t = Concat<axis=0>(c, c)  y = Pad(x, t)"),
    "top k": ("float[a]", "y, at = TopK(x, c)"),
    "split": ("float[a]", "d = Sub(hundred, c)  t = Concat<axis=0>(c, d)  y, z = Split(x, t)"),
    "one hot": ("float[a, b]", "i = Cast<to=7>(x)  j = Sub(i, one)  y = OneHot(j, s, values)"),
    "triangle": ("float[a, b]", "r = Reshape(x, square)  y = Trilu(r, s)"),
    "after the cut": ("float[a]", "t = Tile(x, c)  u = Relu(t)  y = Mul(u, u)"),
    "twice": ("float[a]", "t = Tile(x, c)  k = ReduceMin(t)  l = Cast<to=7>(k)  n = Add(l, one)  y = Tile(t, n)"),
    "a count": ("int64[a, b]", "y = Loop (s, go, start) <body = step (int64 i, bool g, int64 v) => (bool h, int64 w)"
                " { h = Identity(g)  w = Add(v, i) }>"),
    "found": ("float[a]", "n = NonZero(x)  f = Squeeze(n, zero)  g = Gather(x, f)  y = Mul(g, m)"),
}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
def test_what_is_computed_while_it_runs_is_what_the_reference_says(name: str) -> None:
    kind, body = BODIES[name]
    kind = "int64" if name == "a count" else kind
    proto = onnx.parser.parse_model(HEAD.replace("TYPE", kind) + body + " }")
    model, wanted = Session(from_proto(proto), reference), ReferenceEvaluator(proto)
    for most in (2, 5, 4, 2):
        x = (np.arange(100) % (most + 1)).astype(np.float32)
        found = model.run({"x": x})["y"]
        (expected,) = wanted.run(None, {"x": x})
        assert isinstance(found, np.ndarray) and found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
