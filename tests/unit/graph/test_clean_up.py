"""What the clean-up makes of a few nodes; what it makes computes the same."""

from __future__ import annotations

import numpy as np
import pytest

from dovetail.base.dtypes import DTYPES
from dovetail.graph.clean_arithmetic import holds
from dovetail.graph.clean_up import CleanUp
from dovetail.ir.graph.bound import Array
from dovetail.ops.table import OPERATORS
from tests.unit.graph.models import bound, ops, same

HALF, ONE, ZERO, TWO, THREE = (np.array(n, np.float32) for n in (0.5, 1.0, 0.0, 2.0, 3.0))
ROOT, CUBE, PI = (np.array(n, np.float32) for n in (1.4142135623730951, 0.044715, 0.7978845608028654))
IMAGE = "graph g(x: f32[1, 2, 5, 5]) -> (y)\n"
ROWS = "graph g(x: f32[2, 3, 8]) -> (y)\n"

CASES: dict[str, tuple[str, dict[str, Array], str]] = {
    "identity": (ROWS + "  a = identity(x)\n  y = exp(a)", {}, "exp"),
    "transposes that cancel": (
        ROWS + "  a = transpose(x) {perm = (1, 2, 0)}\n  b = transpose(a) {perm = (2, 0, 1)}\n  y = exp(b)", {}, "exp",
    ),
    "two transposes": (
        ROWS + "  a = transpose(x) {perm = (1, 2, 0)}\n  b = transpose(a) {perm = (1, 2, 0)}\n  y = exp(b)",
        {},
        "transpose exp",
    ),
    "a transpose of axes of one": (
        "graph g(x: f32[2, 1, 8]) -> (y)\n  a = transpose(x) {perm = (1, 0, 2)}\n  y = exp(a)", {}, "reshape exp",
    ),
    "changes of shape": (
        ROWS + "  a = flatten(x)\n  b = unsqueeze(a) {axes = (0,)}\n  c = squeeze(b)\n"
        "  d = reshape(c) {shape = (-1, 4)}\n  y = exp(d)",
        {},
        "reshape exp",
    ),
    "shapes that come back": (
        ROWS + "  a = flatten(x)\n  b = reshape(a) {shape = (2, 3, 8)}\n  y = exp(b)", {}, "exp",
    ),
    "nothing added": (
        ROWS + "  const z: f32[3, 8]\n  a = add(z, x)\n  y = exp(a)", {"z": np.zeros((3, 8), "f4")}, "exp",
    ),
    "zeros that stretch": (
        "graph g(x: f32[3, 1]) -> (y)\n  const z: f32[3, 8]\n  a = add(z, x)\n  y = exp(a)",
        {"z": np.zeros((3, 8), "f4")},
        "add exp",
    ),
    "nothing taken away": (ROWS + "  const z: f32[]\n  y = sub(x, z)\n", {"z": ZERO}, "identity"),
    "taken from nothing": (ROWS + "  const z: f32[]\n  y = sub(z, x)\n", {"z": ZERO}, "sub"),
    "times one": (ROWS + "  const z: f32[8]\n  a = mul(x, z)\n  y = neg(a)", {"z": np.ones(8, "f4")}, "neg"),
    "a square": (ROWS + "  const z: f32[]\n  y = pow(x, z)", {"z": TWO}, "mul"),
    "a cube": (ROWS + "  const z: f32[]\n  y = pow(x, z)", {"z": THREE}, "mul mul"),
    "a half of it": (ROWS + "  const z: f32[]\n  y = div(x, z)", {"z": TWO}, "mul"),
    "a third of it": (ROWS + "  const z: f32[]\n  y = div(x, z)", {"z": THREE}, "div"),
    "expanded and added": (
        ROWS + "  const z: f32[1, 8]\n  a = expand(z) {shape = (2, 3, 8)}\n  y = add(x, a)", {}, "add",
    ),
    "parts of a tensor": (
        ROWS + "  a, b = split(x) {sizes = (3, 5), axis = 2}\n"
        "  c = slice(b) {starts = (1,), ends = (4,), axes = (2,)}\n"
        "  y = add(a, c)",
        {},
        "slice slice add",
    ),
    "a part that is split": (
        ROWS + "  a = slice(x) {starts = (4,), ends = (8,), axes = (2,)}\n  b = reshape(a) {shape = (2, 3, 2, 2)}\n"
        "  y = exp(b)",
        {}, "reshape slice exp",
    ),
    "a part that is split elsewhere": (
        ROWS + "  a = slice(x) {starts = (1,), ends = (5,), axes = (2,)}\n  b = reshape(a) {shape = (2, 3, 2, 2)}\n"
        "  y = exp(b)",
        {}, "slice reshape exp",
    ),
    "parts put together again": (
        ROWS + "  a, b = split(x) {sizes = (3, 5), axis = 2}\n  c = concat(a, b) {axis = 2}\n  y = exp(c)", {}, "exp",
    ),
    "parts put together the other way": (
        ROWS + "  a, b = split(x) {sizes = (3, 5), axis = 2}\n  y = concat(b, a) {axis = 2}", {}, "slice slice concat",
    ),
    "a part of what was put together": (
        ROWS + "  const z: f32[2, 3, 2]\n  a = concat(z, x) {axis = 2}\n"
        "  b = slice(a) {starts = (2,), ends = (10,), axes = (2,)}\n  y = exp(b)",
        {},
        "exp",
    ),
    "slices of slices with steps": (
        ROWS + "  a = slice(x) {starts = (1,), ends = (8,), axes = (2,), steps = (2,)}\n"
        "  y = slice(a) {starts = (1,), ends = (4,), axes = (2,), steps = (2,)}",
        {},
        "slice",
    ),
    "nested concats": (
        ROWS + "  a = concat(x, x) {axis = 1}\n  y = concat(a, x) {axis = 1}", {}, "concat",
    ),
    "one known place": (
        ROWS + "  const i: i64[]\n  a = gather(x, i) {axis = 1}\n  y = exp(a)",
        {"i": np.array(-1)}, "slice reshape exp",
    ),
    "places anywhere": (
        ROWS + "  const i: i64[3]\n  y = gather(x, i) {axis = 2}", {"i": np.array([1, 0, 5])}, "gather",
    ),
    "casts that hold everything": (
        "graph g(x: i8[4]) -> (y)\n  a = cast(x) {dtype = \"i32\"}\n  b = cast(a) {dtype = \"f32\"}\n  y = exp(b)",
        {},
        "cast exp",
    ),
    "casts that lose something": (
        ROWS + "  a = cast(x) {dtype = \"i8\"}\n  y = cast(a) {dtype = \"f32\"}", {}, "cast cast",
    ),
    "padding before a convolution": (
        IMAGE + "  const w: f32[3, 2, 3, 3]\n  a = pad(x) {pads = (0, 0, 1, 0, 0, 0, 1, 2)}\n"
        "  y = conv(a, w) {pads = (0, 1, 0, 1)}",
        {},
        "conv",
    ),
    "padding of channels": (
        IMAGE + "  const w: f32[3, 3, 3, 3]\n  a = pad(x) {pads = (0, 1, 0, 0, 0, 0, 0, 0)}\n  y = conv(a, w)", {},
        "pad conv",
    ),
    "padding that is not zero": (
        IMAGE + "  const w: f32[3, 2, 3, 3]\n  a = pad(x) {pads = (0, 0, 1, 1, 0, 0, 1, 1), value = 1.0}\n"
        "  y = conv(a, w)",
        {},
        "pad conv",
    ),
    "padding before a mean": (
        IMAGE + "  a = pad(x) {pads = (0, 0, 1, 1, 0, 0, 1, 1)}\n  y = average_pool(a) {kernel = (3, 3)}", {},
        "average_pool",
    ),
    "padding before a maximum": (
        IMAGE + "  a = pad(x) {pads = (0, 0, 1, 1, 0, 0, 1, 1)}\n  y = max_pool(a) {kernel = (3, 3)}", {},
        "pad max_pool",
    ),
    "a bias": (
        IMAGE + "  const w: f32[3, 2, 3, 3]\n  const b: f32[1, 3, 1, 1]\n  a = conv(x, w)\n  y = add(b, a)", {}, "conv",
    ),
    "a bias for each place": (
        IMAGE + "  const w: f32[3, 2, 3, 3]\n  const b: f32[3, 3, 3]\n  a = conv(x, w)\n  y = add(b, a)",
        {}, "conv add",
    ),
    "gelu": (
        ROWS + "  const r: f32[]\n  const o: f32[]\n  const h: f32[]\n  a = div(x, r)\n  b = erf(a)\n  c = add(b, o)\n"
        "  d = mul(x, c)\n  y = mul(d, h)",
        {"r": ROOT, "o": ONE, "h": HALF},
        "gelu",
    ),
    "gelu by tanh": (
        ROWS + "  const c: f32[]\n  const p: f32[]\n  const o: f32[]\n  const h: f32[]\n  const t: f32[]\n"
        "  a = mul(h, x)\n  b = pow(x, t)\n  d = mul(c, b)\n  e = add(x, d)\n  f = mul(p, e)\n  g1 = tanh(f)\n"
        "  i = add(o, g1)\n  y = mul(a, i)",
        {"c": CUBE, "p": PI, "o": ONE, "h": HALF, "t": THREE},
        "gelu",
    ),
    "another activation": (
        ROWS + "  const r: f32[]\n  const o: f32[]\n  const h: f32[]\n  a = div(x, r)\n  b = erf(a)\n  c = add(b, o)\n"
        "  d = mul(x, c)\n  y = mul(d, h)",
        {"r": ROOT, "o": ONE, "h": THREE},
        "div erf add mul mul",
    ),
    "silu": (ROWS + "  a = sigmoid(x)\n  y = mul(a, x)", {}, "silu"),
    "softmax": (
        ROWS + "  a = reduce_max(x) {axes = (2,)}\n  b = sub(x, a)\n  c = exp(b)\n  d = reduce_sum(c) {axes = (-1,)}\n"
        "  y = div(c, d)",
        {},
        "softmax",
    ),
    "softmax along two axes": (
        ROWS + "  a = reduce_max(x) {axes = (1,)}\n  b = sub(x, a)\n  c = exp(b)\n  d = reduce_sum(c) {axes = (2,)}\n"
        "  y = div(c, d)",
        {},
        "reduce_max sub exp reduce_sum div",
    ),
    "layer norm": (
        ROWS + "  const t: f32[]\n  const e: f32[]\n  const s: f32[8]\n  const b: f32[8]\n"
        "  m = reduce_mean(x) {axes = (2,)}\n  d = sub(x, m)\n  p = pow(d, t)\n  v = reduce_mean(p) {axes = (2,)}\n"
        "  w = add(v, e)\n  r = sqrt(w)\n  n = div(d, r)\n  k = mul(n, s)\n  y = add(k, b)",
        {"t": TWO, "e": np.array(1e-5, np.float32)},
        "layer_norm",
    ),
    "rms norm": (
        ROWS + "  const e: f32[]\n  const s: f32[8]\n  p = mul(x, x)\n  v = reduce_mean(p) {axes = (2,)}\n"
        "  w = add(v, e)\n  r = rsqrt(w)\n  n = mul(r, x)\n  y = mul(s, n)",
        {"e": np.array(1e-5, np.float32)},
        "rms_norm",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_few_nodes_become(case: str) -> None:
    text, data, expected = CASES[case]
    found = bound(text, data)
    after, _ = CleanUp()(found, OPERATORS)
    assert " ".join(ops(after.graph)) == expected
    same(found, after, 1e-5)


def test_exact_clean_up_leaves_what_would_round_otherwise() -> None:
    text, data, _ = CASES["a square"]
    found = bound(text, data)
    assert CleanUp(exact=True)(found, OPERATORS)[0] is found


def test_a_record_says_what_was_done_how_often_and_why() -> None:
    text, data, _ = CASES["identity"]
    _, records = CleanUp()(bound(text, data), OPERATORS)
    assert [str(r) for r in records] == ["clean-up: identity, 1 time (it hands on what it is given)"]


@pytest.mark.parametrize(
    ("wide", "narrow", "expected"),
    [("f32", "i16", True), ("f32", "i32", False), ("f64", "i32", True), ("f32", "f16", True), ("f16", "bf16", False),
     ("i32", "u16", True), ("u32", "i8", False), ("i8", "bool", True), ("bool", "i8", False), ("f16", "u8", True)],
)  # fmt: skip
def test_a_dtype_holds_another(wide: str, narrow: str, expected: bool) -> None:
    assert holds(DTYPES[wide], DTYPES[narrow]) is expected
