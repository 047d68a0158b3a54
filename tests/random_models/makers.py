"""How a node of each kind is chosen: operands that are there or new, attributes that fit them.

A maker returns None where nothing that is there suits it. Discontinuous operators (rounding, comparing, casting to
whole numbers, looking for the largest) take exact values only: of others an ulp would decide.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from dovetail.ir.graph.graph import Attribute
from tests.random_models.grow import EXACT, Fact, Grown, Made

Maker = Callable[[Grown], Made | None]


def is_float(fact: Fact) -> bool:
    return fact.array.dtype == np.float32


def is_exact(fact: Fact) -> bool:
    return is_float(fact) and fact.exact


def floats(g: Grown, rank: int = -1, most: float = EXACT, accepts: Callable[[Fact], bool] = is_float) -> Fact:
    """Numbers of one rank: some that are there, or new ones."""
    found = g.pick(lambda f: accepts(f) and f.largest <= most and (f.rank > 0 if rank < 0 else f.rank == rank))
    if found is not None and g.rng.random() < 0.85:
        return found
    rank = g.rng.randint(1, 4) if rank < 0 else rank
    return g.fresh([g.rng.randint(1, 9) for _ in range(rank)])


def unary(op: str, exact: bool = True, most: float = EXACT, **attributes: Attribute) -> Maker:
    """An operator of one operand that is defined for all numbers up to ``most``."""
    return lambda g: Made(op, (floats(g, most=most),), attributes, exact)


def discontinuous(op: str) -> Maker:
    return lambda g: Made(op, (floats(g, accepts=is_exact),), {}, True)


def positive(op: str) -> Maker:
    """An operator that is defined for positive numbers."""

    def make(g: Grown) -> Made | None:
        found = g.pick(lambda f: is_float(f) and float(f.array.min()) > 0.1)
        return Made(op, (found or g.fresh([3, g.rng.randint(1, 17)], low=1, high=9),), {}, False)

    return make


def _other(g: Grown, x: Fact, low: int = -3, high: int = 3, accepts: Callable[[Fact], bool] = is_float) -> Fact:
    """An operand that meets ``x`` by broadcasting."""
    same = g.pick(lambda f: accepts(f) and f.shape == x.shape)
    if same is not None and g.rng.random() < 0.5:
        return same
    shape = [1 if g.rng.random() < 0.4 else n for n in x.shape[g.rng.randint(0, x.rank) :]]
    return g.fresh(shape, str(_dtype(x)), low, high)


def _dtype(x: Fact) -> str:
    return {"float32": "f32", "int32": "i32", "int64": "i64", "bool": "bool", "uint8": "u8"}[x.array.dtype.name]


def binary(op: str) -> Maker:
    def make(g: Grown) -> Made:
        x = floats(g)
        other = _other(g, x)
        pair = (x, other) if g.rng.random() < 0.7 else (other, x)
        return Made(op, pair, {}, True)

    return make


def divide(g: Grown) -> Made:
    x = floats(g)
    return Made("div", (x, g.fresh(x.shape[-1:], low=1, high=5)), {}, False)


def power(g: Grown) -> Made:
    x = g.fresh([g.rng.randint(1, 5), g.rng.randint(1, 9)], low=1, high=4)
    return Made("pow", (x, g.fresh([x.shape[1]], low=-2, high=2)), {}, False)


def compare(op: str) -> Maker:
    def make(g: Grown) -> Made:
        x = floats(g, accepts=is_exact)
        return Made(op, (x, _other(g, x, accepts=is_exact)), {}, True)

    return make


def logic(op: str) -> Maker:
    def make(g: Grown) -> Made:
        x = g.pick(lambda f: f.array.dtype == np.bool_) or g.fresh([g.rng.randint(1, 9)], "bool", 0, 1)
        if op == "not":
            return Made(op, (x,), {}, True)
        return Made(op, (x, g.fresh(x.shape, "bool", 0, 1)), {}, True)

    return make


def whole(op: str) -> Maker:
    """Arithmetic on integers, which wraps and is always exact."""

    def make(g: Grown) -> Made:
        x = g.pick(lambda f: f.array.dtype == np.int32) or g.fresh([g.rng.randint(1, 9), 4], "i32", -50, 50)
        low, high = (1, 7) if op == "div" else (-9, 9)
        return Made(op, (x, g.fresh(x.shape[-1:], "i32", low, high)), {}, True)

    return make


def select(g: Grown) -> Made:
    x = floats(g)
    condition = g.pick(lambda f: f.array.dtype == np.bool_ and f.shape == x.shape) or g.fresh(x.shape, "bool", 0, 1)
    return Made("select", (condition, x, _other(g, x)), {}, True)


def cast(g: Grown) -> Made:
    x = g.pick(lambda f: f.exact) or g.fresh([5, 3])
    dtype = g.rng.choice([d for d in ("f32", "i32", "i64", "bool") if d != _dtype(x)])
    return Made("cast", (x,), {"dtype": dtype}, True)


def clip(g: Grown) -> Made:
    low = g.rng.choice([-2.0, -1.0, 0.0])
    return Made("clip", (floats(g),), {"low": low, "high": low + g.rng.choice([1.0, 3.0, 6.0])}, True)


def scale(g: Grown) -> Made:
    x = floats(g, g.rng.randint(2, 4))
    s, b = g.fresh([x.shape[1]]), g.fresh([x.shape[1]])
    return Made("scale", (x, s, b), {"axis": 1}, True)


def matmul(g: Grown) -> Made:
    x = floats(g, g.rng.randint(2, 4), 999)
    flip = g.rng.random() < 0.5
    k, n = x.shape[-1], g.rng.randint(1, 20)
    batch = x.shape[:-2] if g.rng.random() < 0.3 else ()
    w = g.fresh([*batch, *((n, k) if flip else (k, n))])
    return Made("matmul", (x, w), {"transpose_b": 1} if flip else {}, True)


def gemm(g: Grown) -> Made:
    x = floats(g, 2, 999)
    n = g.rng.randint(1, 33)
    rows = [g.fresh([n])] if g.rng.random() < 0.6 else []
    return Made("gemm", (x, g.fresh([x.shape[1], n]), *rows), {}, True)


def dense(g: Grown) -> Made:
    x = floats(g, g.rng.randint(1, 3), 999)
    n = g.rng.randint(1, 24)
    return Made("dense", (x, g.fresh([n, x.shape[-1]], known=True), g.fresh([n], known=True)), {}, True)


def _image(g: Grown, most: float = 999) -> Fact:
    found = g.pick(lambda f: is_float(f) and f.rank == 4 and f.shape[2] >= 3 and f.shape[3] >= 3 and f.largest <= most)
    if found is not None and g.rng.random() < 0.8:
        return found
    return g.fresh([g.rng.randint(1, 2), g.rng.choice([1, 2, 3, 4, 8]), g.rng.randint(3, 9), g.rng.randint(3, 12)])


def convolution(g: Grown) -> Made:
    x = _image(g)
    taps = [g.rng.randint(1, 3), g.rng.randint(1, 3)]
    groups = g.rng.choice([1, 1, 1, x.shape[1]])
    k = groups * g.rng.randint(1, 5)
    w = g.fresh([k, x.shape[1] // groups, *taps], low=-2, high=2, known=g.rng.random() < 0.8)
    bias = [g.fresh([k])] if g.rng.random() < 0.5 else []
    attributes: dict[str, Attribute] = {"groups": groups, "strides": (g.rng.randint(1, 2), g.rng.randint(1, 2))}
    if g.rng.random() < 0.6:
        attributes["pads"] = tuple(g.rng.randint(0, 1) for _ in range(4))
    return Made("conv", (x, w, *bias), attributes, True)


def transposed_convolution(g: Grown) -> Made:
    x = _image(g)
    w = g.fresh([x.shape[1], g.rng.randint(1, 4), 2, 3], low=-2, high=2)
    return Made("conv_transpose", (x, w), {"strides": (g.rng.randint(1, 2), 1)}, True)


def pool(op: str, exact: bool) -> Maker:
    def make(g: Grown) -> Made:
        kernel = (g.rng.randint(1, 3), g.rng.randint(1, 3))
        attributes: dict[str, Attribute] = {"kernel": kernel, "strides": (g.rng.randint(1, 2), g.rng.randint(1, 2))}
        if min(kernel) > 1 and g.rng.random() < 0.5:
            attributes["pads"] = (1, 0, 0, 1)
        return Made(op, (_image(g, EXACT),), attributes, exact)

    return make


def normalised(op: str) -> Maker:
    """Softmax and its like along one axis."""

    def make(g: Grown) -> Made:
        x = floats(g, most=40)
        return Made(op, (x,), {"axis": g.rng.randrange(x.rank)}, False)

    return make


def layer_norm(g: Grown) -> Made:
    x = floats(g, g.rng.randint(2, 3), 999)
    parts = [g.fresh([x.shape[-1]]), g.fresh([x.shape[-1]])]
    return Made("layer_norm", (x, *parts), {"axis": -1, "epsilon": 0.5}, False)


def rms_norm(g: Grown) -> Made:
    x = floats(g, g.rng.randint(2, 3), 999)
    return Made("rms_norm", (x, g.fresh([x.shape[-1]])), {"epsilon": 0.5}, False)


def batch_norm(g: Grown) -> Made:
    x = _image(g)
    c = [x.shape[1]]
    parts = (g.fresh(c, known=True), g.fresh(c, known=True), g.fresh(c, known=True), g.fresh(c, "f32", 1, 5, True))
    return Made("batch_norm", (x, *parts), {}, False)


def reduction(op: str, exact: bool = True) -> Maker:
    def make(g: Grown) -> Made | None:
        x = floats(g, most=9 if op == "reduce_prod" else 9999)
        axes = tuple(sorted(g.rng.sample(range(x.rank), g.rng.randint(1, x.rank))))
        if op == "reduce_prod" and np.prod([x.shape[a] for a in axes]) > 6:
            return None
        return Made(op, (x,), {"axes": axes, "keepdims": g.rng.randint(0, 1)}, exact)

    return make


def best(op: str) -> Maker:
    def make(g: Grown) -> Made:
        x = floats(g, accepts=is_exact)
        axis, keepdims, last = g.rng.randrange(x.rank), g.rng.randint(0, 1), g.rng.randint(0, 1)
        return Made(op, (x,), {"axis": axis, "keepdims": keepdims, "last": last}, True)

    return make


def cumsum(g: Grown) -> Made:
    x = floats(g, most=9999)
    attributes: dict[str, Attribute] = {"exclusive": g.rng.randint(0, 1), "reverse": g.rng.randint(0, 1)}
    return Made("cumsum", (x,), {**attributes, "axis": g.rng.randrange(x.rank)}, True)


def transpose(g: Grown) -> Made:
    x = floats(g)
    return Made("transpose", (x,), {"perm": tuple(g.rng.sample(range(x.rank), x.rank))}, True)


def reshape(g: Grown) -> Made:
    x = floats(g)
    size, shape = x.array.size, list[int]()
    while size > 1 and len(shape) < 3:
        shape.append(g.rng.choice([d for d in range(1, size + 1) if not size % d]))
        size //= shape[-1]
    return Made("reshape", (x,), {"shape": (*shape, size)}, True)


def flatten(g: Grown) -> Made:
    x = floats(g)
    return Made("flatten", (x,), {"axis": g.rng.randint(0, x.rank)}, True)


def unsqueeze(g: Grown) -> Made:
    x = floats(g, g.rng.randint(1, 3))
    return Made("unsqueeze", (x,), {"axes": (g.rng.randint(0, x.rank),)}, True)


def squeeze(g: Grown) -> Made | None:
    x = g.pick(lambda f: is_float(f) and f.rank > 1 and 1 in f.shape)
    return None if x is None else Made("squeeze", (x,), {"axes": (x.shape.index(1),)}, True)


def expand(g: Grown) -> Made:
    x = floats(g, g.rng.randint(1, 3))
    shape = (g.rng.randint(1, 3), *(n if n > 1 else g.rng.randint(1, 4) for n in x.shape))
    return Made("expand", (x,), {"shape": shape}, True)


def concat(g: Grown) -> Made:
    x = floats(g)
    axis = g.rng.randrange(x.rank)
    parts = [x]
    for _ in range(g.rng.randint(1, 2)):
        shape = [g.rng.randint(1, 4) if d == axis else n for d, n in enumerate(x.shape)]
        parts.append(g.pick(lambda f, s=tuple(shape): is_float(f) and f.shape == s) or g.fresh(shape))  # type: ignore[misc]
    g.rng.shuffle(parts)
    return Made("concat", tuple(parts), {"axis": axis}, True)


def split(g: Grown) -> Made | None:
    x = floats(g)
    axis = g.rng.randrange(x.rank)
    if x.shape[axis] < 2:
        return None
    first = g.rng.randint(1, x.shape[axis] - 1)
    return Made("split", (x,), {"axis": axis, "sizes": (first, x.shape[axis] - first)}, True, 2)


def slice_(g: Grown) -> Made:
    x = floats(g)
    axis = g.rng.randrange(x.rank)
    start = g.rng.randrange(x.shape[axis])
    end, step = g.rng.randint(start + 1, x.shape[axis]), g.rng.randint(1, 2)
    return Made("slice", (x,), {"starts": (start,), "ends": (end,), "axes": (axis,), "steps": (step,)}, True)


def pad(g: Grown) -> Made:
    x = floats(g)
    pads = tuple(g.rng.randint(0, 2) for _ in range(2 * x.rank))
    return Made("pad", (x,), {"pads": pads, "value": float(g.rng.randint(-1, 1))}, True)


def gather(g: Grown) -> Made:
    x = floats(g)
    axis = g.rng.randrange(x.rank)
    places = g.fresh([g.rng.randint(1, 5)], "i64", 0, x.shape[axis] - 1)
    return Made("gather", (x, places), {"axis": axis}, True)


def embedding(g: Grown) -> Made:
    table = g.fresh([g.rng.randint(2, 20), g.rng.randint(1, 16)], known=True)
    return Made("embedding", (table, g.fresh([g.rng.randint(1, 6)], "i64", 0, table.shape[0] - 1)), {}, True)


def cell(op: str, gates: int) -> Maker:
    """One step of a recurrence."""

    def make(g: Grown) -> Made:
        x = floats(g, 2, 30)
        n = g.rng.randint(1, 8)
        state = [g.fresh([x.shape[0], n], low=-1, high=1) for _ in range(2 if op == "lstm_cell" else 1)]
        weights = [g.fresh([gates * n, x.shape[1]], low=-1, high=1), g.fresh([gates * n, n], low=-1, high=1)]
        return Made(op, (x, *state, *weights), {}, False, 2 if op == "lstm_cell" else 1)

    return make


MAKERS: Mapping[str, Maker] = {
    **{op: unary(op) for op in ("identity", "neg", "abs", "relu")},
    **{op: unary(op, False, 20) for op in ("exp", "sigmoid", "silu", "tanh", "erf", "sin", "cos", "gelu")},
    "gelu tanh": unary("gelu", False, 20, approximate="tanh"),
    "leaky_relu": unary("leaky_relu", False, alpha=0.1),
    **{op: discontinuous(op) for op in ("floor", "ceil", "round")},
    **{op: positive(op) for op in ("log", "sqrt", "rsqrt", "reciprocal")},
    **{op: binary(op) for op in ("add", "sub", "mul", "max", "min")},
    **{op: compare(op) for op in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")},
    **{op: logic(op) for op in ("and", "or", "xor", "not")},
    **{f"whole {op}": whole(op) for op in ("add", "sub", "mul", "div", "max", "min", "and", "or", "xor")},
    **{op: reduction(op) for op in ("reduce_sum", "reduce_max", "reduce_min", "reduce_prod")},
    "reduce_mean": reduction("reduce_mean", False),
    **{op: best(op) for op in ("argmax", "argmin")},
    **{op: normalised(op) for op in ("softmax", "log_softmax")},
    "max_pool": pool("max_pool", True),
    "average_pool": pool("average_pool", False),
    "global_average_pool": lambda g: Made("global_average_pool", (_image(g),), {}, False),
    "lstm_cell": cell("lstm_cell", 4),
    "gru_cell": cell("gru_cell", 3),
    "div": divide,
    "pow": power,
    "select": select,
    "cast": cast,
    "clip": clip,
    "scale": scale,
    "matmul": matmul,
    "gemm": gemm,
    "dense": dense,
    "conv": convolution,
    "conv_transpose": transposed_convolution,
    "layer_norm": layer_norm,
    "rms_norm": rms_norm,
    "batch_norm": batch_norm,
    "cumsum": cumsum,
    "transpose": transpose,
    "reshape": reshape,
    "flatten": flatten,
    "unsqueeze": unsqueeze,
    "squeeze": squeeze,
    "expand": expand,
    "concat": concat,
    "split": split,
    "slice": slice_,
    "pad": pad,
    "gather": gather,
    "embedding": embedding,
}
OPERATORS_USED = frozenset(name.removeprefix("whole ").removesuffix(" tanh") for name in MAKERS)
