"""Operators of ai.onnx.ml, and the steps of optimisers."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np
import numpy.typing as npt

from dovetail.frontends.onnx.convert.attributes import (
    integer,
    integers,
    malformed,
    number,
    numbers,
    tensor,
    text,
    texts,
    unsupported,
)
from dovetail.frontends.onnx.entries import Array
from dovetail.frontends.onnx.host.call import Call, HostFunction, Results

Floats = npt.NDArray[np.float64]
ML, TRAINING = "ai.onnx.ml", "ai.onnx.preview.training"


def label_encoder(call: Call) -> Results:
    x, node = call.array(0), call.node
    keys = _listed(call, "keys")
    values = _listed(call, "values")
    dtype: type | np.dtype[np.generic]
    if (given := tensor(node, "values_tensor")) is not None:
        fallback = tensor(node, "default_tensor")
        default: object = fallback.array().reshape(-1)[0] if fallback is not None else given.array().dtype.type()
        dtype = given.dtype
    elif "values_strings" in node.attributes:
        default, dtype = text(node, "default_string", "_Unused"), object
    elif "values_int64s" in node.attributes:
        default, dtype = integer(node, "default_int64", -1), np.int64
    else:
        default, dtype = number(node, "default_float", -0.0), np.float32
    table = dict(zip(map(_key, keys), values, strict=True))
    found = [table.get(_key(item), default) for item in x.reshape(-1)]
    return (np.array(found, dtype).reshape(x.shape),)


def array_features(call: Call) -> Results:
    x, places = call.array(0), call.ints(1)
    return (np.take(x if x.ndim > 1 else x.reshape(1, -1), places, -1),)


def binarizer(call: Call) -> Results:
    x = call.array(0)
    return ((x.astype(np.float64) > number(call.node, "threshold", 0.0)).astype(x.dtype),)


def scaler(call: Call) -> Results:
    offset, scale = (np.array(numbers(call.node, name, ()), np.float64) for name in ("offset", "scale"))
    return (((call.array(0).astype(np.float64) - offset) * scale).astype(np.float32),)


def normalizer(call: Call) -> Results:
    x, how = call.array(0).astype(np.float64), text(call.node, "norm", "MAX")
    norms: dict[str, Callable[[Floats], Floats]] = {
        "MAX": lambda v: np.max(v, -1, keepdims=True),
        "L1": lambda v: np.sum(np.abs(v), -1, keepdims=True),
        "L2": lambda v: np.sqrt(np.sum(v * v, -1, keepdims=True)),
    }
    norm = norms[how](x)
    return (np.divide(x, norm, out=np.copy(x), where=norm != 0).astype(np.float32),)


def linear_regressor(call: Call) -> Results:
    x, targets = call.array(0).astype(np.float64), integer(call.node, "targets", 1)
    if text(call.node, "post_transform", "NONE") != "NONE":
        raise unsupported(call.node, "what comes after the sum is not there")
    weights = np.array(numbers(call.node, "coefficients", ()), np.float64).reshape(targets, -1)
    shift = np.array(numbers(call.node, "intercepts", (0.0,) * targets), np.float64)
    return ((x @ weights.T + shift).astype(np.float32),)


def tree_ensemble(call: Call) -> Results:
    """Each row walks down every tree; the weights of the leaves where it ends are put together."""
    x, node = call.array(0), call.node
    if integer(node, "post_transform", 0):
        raise unsupported(node, "what comes after the trees is not there")
    weights, targets = _tensor(call, "leaf_weights"), integers(node, "leaf_targetids", ())
    how = integer(node, "aggregate_function", 1)
    roots = integers(node, "tree_roots", ())
    walk = _walker(call)
    start = {0: 0.0, 1: 0.0, 2: np.inf, 3: -np.inf}[how]
    made = np.full((len(x), integer(node, "n_targets", 1)), start, np.float64)
    for row, features in enumerate(x.astype(np.float64)):
        for root in roots:
            leaf = walk(root, features)
            at, weight = (row, targets[leaf]), float(weights[leaf])
            made[at] = made[at] + weight if how < 2 else min(made[at], weight) if how == 2 else max(made[at], weight)
    return ((made / len(roots) if how == 0 else made).astype(x.dtype),)


def _walker(call: Call) -> Callable[[int, Floats], int]:
    node = call.node
    features, modes = integers(node, "nodes_featureids", ()), _tensor(call, "nodes_modes")
    splits = _tensor(call, "nodes_splits").astype(np.float64)
    ids = {way: integers(node, f"nodes_{way}nodeids", ()) for way in ("true", "false")}
    leaves = {way: integers(node, f"nodes_{way}leafs", ()) for way in ("true", "false")}
    missing = integers(node, "nodes_missing_value_tracks_true", (0,) * len(features))
    members = _members(call, modes)

    def walk(at: int, row: Floats) -> int:
        if leaves["true"][at] and leaves["false"][at] and ids["true"][at] == ids["false"][at]:
            return ids["true"][at]
        for _ in range(len(features)):
            value = row[features[at]]
            holds = _HOLDS[int(modes[at])](value, splits[at], members.get(at, frozenset()))
            way = "true" if holds or (missing[at] and np.isnan(value)) else "false"
            at, end = ids[way][at], leaves[way][at]
            if end:
                return at
        raise malformed(node, "a tree without an end")

    return walk


def _members(call: Call, modes: Array) -> dict[int, frozenset[float]]:
    """The sets that nodes of mode 6 test for, in order, each ended by a NaN."""
    given = tensor(call.node, "membership_values")
    groups: list[set[float]] = [set()]
    for value in () if given is None else given.array().astype(np.float64):
        if np.isnan(value):
            groups.append(set())
        else:
            groups[-1].add(float(value))
    asking = [at for at, mode in enumerate(modes) if int(mode) == 6]
    return {at: frozenset(group) for at, group in zip(asking, groups, strict=False)}


_HOLDS: Sequence[Callable[[float, float, frozenset[float]], bool]] = (
    lambda v, split, _: v <= split,
    lambda v, split, _: v < split,
    lambda v, split, _: v >= split,
    lambda v, split, _: v > split,
    lambda v, split, _: v == split,
    lambda v, split, _: v != split,
    lambda v, _, members: v in members,
)


def adam(call: Call) -> Results:
    node = call.node
    alpha, beta, epsilon = number(node, "alpha", 0.9), number(node, "beta", 0.999), number(node, "epsilon", None)
    if epsilon is None:
        raise unsupported(node, "epsilon is not stated; the standard's text and its cases differ in what it is then")
    rate, steps = _first(call, 0), call.whole(1, 0)
    if steps > 0:
        rate *= np.sqrt(1 - beta**steps) / (1 - alpha**steps)
    made = []
    for x, gradient, v, h in _tensors(call, 4):
        slope = number(node, "norm_coefficient", 0.0) * x + gradient
        v, h = alpha * v + (1 - alpha) * slope, beta * h + (1 - beta) * slope * slope
        x = x - rate * v / (np.sqrt(h) + epsilon)
        made.append(((1 - number(node, "norm_coefficient_post", 0.0)) * x, v, h))
    return _by_kind(call, made)


def adagrad(call: Call) -> Results:
    node = call.node
    rate = _first(call, 0) / (1 + call.whole(1, 0) * number(node, "decay_factor", 0.0))
    made = []
    for x, gradient, h in _tensors(call, 3):
        slope = number(node, "norm_coefficient", 0.0) * x + gradient
        h = h + slope * slope
        made.append((x - rate * slope / (np.sqrt(h) + number(node, "epsilon", 1e-6)), h))
    return _by_kind(call, made)


def momentum(call: Call) -> Results:
    node, rate = call.node, _first(call, 0)
    alpha = number(node, "alpha", 0.0)
    beta = number(node, "beta", 0.0) if call.whole(1, 0) > 0 else 1.0
    nesterov = text(node, "mode", "standard") == "nesterov"
    made = []
    for x, gradient, v in _tensors(call, 3):
        slope = number(node, "norm_coefficient", 0.0) * x + gradient
        v = alpha * v + beta * slope
        made.append((x - rate * (slope + alpha * v if nesterov else v), v))
    return _by_kind(call, made)


def _tensors(call: Call, kinds: int) -> list[tuple[Floats, ...]]:
    """The tensors that are learnt, each with its gradient and state."""
    rest = [call.array(at).astype(np.float64) for at in range(2, len(call.operands))]
    count = len(rest) // kinds
    return [tuple(rest[kind * count + at] for kind in range(kinds)) for at in range(count)]


def _by_kind(call: Call, made: Sequence[tuple[Floats, ...]]) -> Results:
    return tuple(part.astype(call.array(2).dtype) for kind in zip(*made, strict=True) for part in kind)


def _first(call: Call, at: int) -> float:
    return float(call.array(at).reshape(-1)[0])


def _tensor(call: Call, name: str) -> Array:
    found = tensor(call.node, name)
    if found is None:
        raise malformed(call.node, f"it needs '{name}'")
    return found.array()


def _listed(call: Call, what: str) -> Sequence[object]:
    node = call.node
    found = tensor(node, f"{what}_tensor")
    if found is not None:
        return list(found.array().reshape(-1))
    listed: Sequence[object] = texts(node, f"{what}_strings", ()) or integers(node, f"{what}_int64s", ())
    return listed or numbers(node, f"{what}_floats", ())


def _key(value: object) -> Hashable:
    """Equal for equal keys: NaN is the same as NaN, a float is rounded as the operand is."""
    if isinstance(value, str):
        return value
    wide = float(np.float32(value)) if isinstance(value, float | np.floating) else value
    assert isinstance(wide, Hashable)
    return "nan" if isinstance(wide, float) and np.isnan(wide) else wide


HOST: dict[tuple[str, str], HostFunction] = {
    (ML, "LabelEncoder"): label_encoder,
    (ML, "ArrayFeatureExtractor"): array_features,
    (ML, "Binarizer"): binarizer,
    (ML, "Scaler"): scaler,
    (ML, "Normalizer"): normalizer,
    (ML, "LinearRegressor"): linear_regressor,
    (ML, "TreeEnsemble"): tree_ensemble,
    (TRAINING, "Adam"): adam,
    (TRAINING, "Adagrad"): adagrad,
    (TRAINING, "Momentum"): momentum,
}
