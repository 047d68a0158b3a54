"""Scales and norms of inference folded into the weights before them.

Vectors of zeros and ones are written with the operators there are: ``sub(?m, ?m)`` of a mean, which is finite.
"""

from __future__ import annotations

from dovetail.rewrite.rule import Rule

_CONV = "strides = ?st, pads = ?pd, dilations = ?dl, groups = ?g"
_TYPES = {
    "conv": ("x: ?t[?n, ?i, ?h, ?l]", "w: ?t[?k, ?c, ?r, ?q]"),
    "dense": ("x: ?t[?n, ?c]", "w: ?t[?k, ?c]"),
}
_AXES = {"conv": "(1, 0, 2, 3)", "dense": "(1, 0)"}
_ATTRIBUTES = {"conv": f"{{{_CONV}}}", "dense": ""}


def _rule(name: str, before: str, after: str, when: tuple[str, ...], types: tuple[str, ...], doc: str) -> Rule:
    return Rule(name, before, after, when, types, (), "reassociating", "dsl", doc)


def _scaled(layer: str) -> tuple[Rule, ...]:
    """``(x * w) * s`` is ``x * (w * s)``, with and without biases."""
    given, weights = _ATTRIBUTES[layer], "scale(?w, ?s){axis = 0}"
    constant = ("constant(?w)", "constant(?s)")
    types, bias = (*_TYPES[layer], "s: ?t[?k]"), "a: ?t[?k]"
    doc = "A factor for each output channel is a factor of its weights."
    return (
        _rule(
            f"scale-{layer}",
            f"scale({layer}(?x, ?w){given}, ?s)",
            f"{layer}(?x, {weights}){given}",
            constant,
            types,
            doc,
        ),
        _rule(
            f"scale-shift-{layer}",
            f"scale({layer}(?x, ?w){given}, ?s, ?b)",
            f"{layer}(?x, {weights}, ?b){given}",
            constant,
            (*types, "b: ?t[?k]"),
            doc,
        ),
        _rule(
            f"scale-{layer}-bias",
            f"scale({layer}(?x, ?w, ?a){given}, ?s)",
            f"{layer}(?x, {weights}, mul(?a, ?s)){given}",
            (*constant, "constant(?a)"),
            (*types, bias),
            doc,
        ),
        _rule(
            f"scale-shift-{layer}-bias",
            f"scale({layer}(?x, ?w, ?a){given}, ?s, ?b)",
            f"{layer}(?x, {weights}, add(mul(?a, ?s), ?b)){given}",
            (*constant, "constant(?a)", "constant(?b)"),
            (*types, bias, "b: ?t[?k]"),
            doc,
        ),
    )


def _normed(layer: str) -> tuple[Rule, ...]:
    """A norm with given mean and variance: its factor goes into the weights, what it makes of the bias is the bias."""
    given, order = _ATTRIBUTES[layer], _AXES[layer]
    zero = "sub(?m, ?m)"
    turned = f"transpose(?w){{perm = {order}}}"
    weights = f"transpose(batch_norm({turned}, ?s, {zero}, {zero}, ?v){{epsilon = ?e}}){{perm = {order}}}"
    types = (*_TYPES[layer], *(f"{name}: ?t[?k]" for name in "sbmv"))
    constant = tuple(f"constant(?{name})" for name in "wsbmv")
    doc = "In inference a batch norm is a factor and a shift of each channel."

    def bias(of: str) -> str:
        norm = f"batch_norm(unsqueeze({of}){{axes = (0)}}, ?s, ?b, ?m, ?v){{epsilon = ?e}}"
        return f"squeeze({norm}){{axes = (0)}}"

    norm = "?s, ?b, ?m, ?v){epsilon = ?e}"
    return (
        _rule(
            f"batch-norm-{layer}",
            f"batch_norm({layer}(?x, ?w){given}, {norm}",
            f"{layer}(?x, {weights}, {bias(zero)}){given}",
            constant,
            types,
            doc,
        ),
        _rule(
            f"batch-norm-{layer}-bias",
            f"batch_norm({layer}(?x, ?w, ?a){given}, {norm}",
            f"{layer}(?x, {weights}, {bias('?a')}){given}",
            (*constant, "constant(?a)"),
            (*types, "a: ?t[?k]"),
            doc,
        ),
    )


FOLDING: tuple[Rule, ...] = (
    *_scaled("conv"),
    *_scaled("dense"),
    *_normed("conv"),
    *_normed("dense"),
    _rule(
        "scale-scale",
        "scale(scale(?x, ?s){axis = ?a}, ?t){axis = ?a}",
        "scale(?x, mul(?s, ?t)){axis = ?a}",
        ("constant(?s)", "constant(?t)"),
        (),
        "Two factors are one.",
    ),
    _rule(
        "matmul-scaled",
        "mul(matmul(?x, ?w), ?s)",
        "matmul(?x, mul(?w, ?s))",
        ("constant(?w)", "constant(?s)", "scalar(?s)"),
        (),
        "A factor of a product is a factor of its weights.",
    ),
    _rule(
        "matmul-of-scaled",
        "matmul(mul(?x, ?s), ?w)",
        "matmul(?x, mul(?w, ?s))",
        ("constant(?w)", "constant(?s)", "scalar(?s)"),
        (),
        "A factor of what is multiplied is a factor of the weights.",
    ),
)
