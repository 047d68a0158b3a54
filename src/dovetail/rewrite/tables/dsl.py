"""The DSL level: rules about operators of a graph.

An attribute that a rule does not name has its default. Weights are computed with ahead of time where they are constant:
rules that move work into them ask for that.
"""

from __future__ import annotations

from dovetail.rewrite.rule import Rule
from dovetail.rewrite.tables.folding import FOLDING

REASSOCIATING = "reassociating"
POINTWISE = ("relu", "neg", "abs", "exp", "tanh", "sigmoid", "silu", "erf", "sqrt", "reciprocal")
"""Operators of one operand that compute each element by itself and have no attributes."""
PAIRWISE = ("add", "sub", "mul", "max", "min", "div")
"""Operators of two operands that compute each element by itself."""


def rule(
    name: str,
    before: str,
    after: str,
    when: tuple[str, ...] = (),
    types: tuple[str, ...] = (),
    kind: str = "bit-exact",
    doc: str = "",
) -> Rule:
    """A rule about operators."""
    return Rule(name, before, after, when, types, (), kind, "dsl", doc)


IDENTITIES = (
    rule("identity", "identity(?x)", "?x"),
    rule("relu-relu", "relu(relu(?x))", "relu(?x)"),
    rule("neg-neg", "neg(neg(?x))", "?x"),
    rule("abs-abs", "abs(abs(?x))", "abs(?x)"),
    rule("abs-neg", "abs(neg(?x))", "abs(?x)"),
    rule("add-neg", "add(?x, neg(?y))", "sub(?x, ?y)"),
    rule("sub-neg", "sub(?x, neg(?y))", "add(?x, ?y)"),
    rule("max-same", "max(?x, ?x)", "?x"),
    rule("min-same", "min(?x, ?x)", "?x"),
    rule("cast-same", "cast(?x){dtype = ?d}", "?x", ("same_type(?x)",)),
    rule("cast-cast", "cast(cast(?x){dtype = ?d}){dtype = ?d}", "cast(?x){dtype = ?d}"),
    rule("concat-one", "concat(?x){axis = ?a}", "?x"),
    rule("expand-same", "expand(?x){shape = ?s}", "?x", ("same_type(?x)",)),
    rule("reshape-same", "reshape(?x){shape = ?s}", "?x", ("same_type(?x)",)),
    rule("reshape-reshape", "reshape(reshape(?x){shape = ?s}){shape = ?t}", "reshape(?x){shape = ?t}", ("whole(?t)",)),
    rule("reshape-flatten", "reshape(flatten(?x){axis = ?a}){shape = ?t}", "reshape(?x){shape = ?t}", ("whole(?t)",)),
    rule("reshape-squeeze", "reshape(squeeze(?x){axes = ?a}){shape = ?t}", "reshape(?x){shape = ?t}", ("whole(?t)",)),
    rule(
        "reshape-unsqueeze", "reshape(unsqueeze(?x){axes = ?a}){shape = ?t}", "reshape(?x){shape = ?t}", ("whole(?t)",)
    ),
    rule("squeeze-unsqueeze", "squeeze(unsqueeze(?x){axes = ?a}){axes = ?a}", "?x"),
    rule("axes-same", "transpose(?x){perm = ?p}", "?x", ("sorted(?p)",)),
    rule("axes-twice", "transpose(transpose(?x){perm = ?p}){perm = ?q}", "transpose(?x){perm = compose(?p, ?q)}"),
)
"""What does nothing, or nothing the second time."""

AXES = (
    *(rule(f"{op}-axes", f"{op}(transpose(?x){{perm = ?p}})", f"transpose({op}(?x)){{perm = ?p}}") for op in POINTWISE),
    *(
        rule(
            f"{op}-axes",
            f"{op}(transpose(?x){{perm = ?p}}, transpose(?y){{perm = ?p}})",
            f"transpose({op}(?x, ?y)){{perm = ?p}}",
            ("same_types(?x, ?y)",),
        )
        for op in PAIRWISE
    ),
    *(
        rule(
            f"matmul-axes-{side}{a}{b}",
            f"matmul({left}, {right}){{transpose_a = {a}, transpose_b = {b}}}",
            f"matmul(?a, ?b){{transpose_a = {a ^ (side == 'a')}, transpose_b = {b ^ (side == 'b')}}}",
            ("matrix(?a)", "matrix(?b)"),
        )
        for side, left, right in (
            ("a", "transpose(?a){perm = (1, 0)}", "?b"),
            ("b", "?a", "transpose(?b){perm = (1, 0)}"),
        )
        for a in (0, 1)
        for b in (0, 1)
    ),
    *(
        rule(
            f"axes-matmul-{a}{b}",
            f"transpose(matmul(?a, ?b){{transpose_a = {a}, transpose_b = {b}}}){{perm = (1, 0)}}",
            f"matmul(?b, ?a){{transpose_a = {1 - b}, transpose_b = {1 - a}}}",
            ("matrix(?a)", "matrix(?b)"),
        )
        for a in (0, 1)
        for b in (0, 1)
    ),
)
"""Transposes are pushed behind what computes element by element, where they meet others, and into products."""

LAYERS = (
    rule(
        "dense-of-matmul",
        "add(matmul(?x, ?w){transpose_b = 1}, ?b)",
        "dense(?x, ?w, ?b)",
        types=("w: ?t[?o, ?i]", "b: ?t[?o]"),
        doc="A product with a bias is a fully connected layer.",
    ),
    rule(
        "dense-of-columns",
        "add(matmul(?x, ?w), ?b)",
        "dense(?x, transpose(?w){perm = (1, 0)}, ?b)",
        ("constant(?w)",),
        ("w: ?t[?i, ?o]", "b: ?t[?o]"),
        doc="The same with weights the other way round.",
    ),
    rule(
        "dense-of-gemm",
        "gemm(?x, ?w, ?b){transpose_b = 1}",
        "dense(?x, ?w, ?b)",
        types=("w: ?t[?o, ?i]", "b: ?t[?o]"),
    ),
    rule("dense-bias", "add(dense(?x, ?w), ?b)", "dense(?x, ?w, ?b)", types=("w: ?t[?o, ?i]", "b: ?t[?o]")),
    rule(
        "conv-bias",
        "add(conv(?x, ?w){strides = ?st, pads = ?pd, dilations = ?dl, groups = ?g}, ?b)",
        "conv(?x, ?w, squeeze(?b){axes = (1, 2)}){strides = ?st, pads = ?pd, dilations = ?dl, groups = ?g}",
        types=("x: ?t[?n, ?i, ?h, ?l]", "w: ?t[?k, ?c, ?r, ?s]", "b: ?t[?k, 1, 1]"),
        doc="A bias for each channel is part of the convolution.",
    ),
)
"""Layers found in what they are made of."""

PARTS = (
    rule(
        "fully-connected",
        "dense(?x, ?w, ?b)",
        "add(matmul(?x, ?w){transpose_b = 1}, ?b)",
        doc="A fully connected layer is a product and a sum, for machines that have those.",
    ),
    rule("fully-connected-plain", "dense(?x, ?w)", "matmul(?x, ?w){transpose_b = 1}"),
    rule(
        "product-of-vector",
        "matmul(?x, ?w){transpose_b = 1}",
        "matmul(?w, ?x)",
        ("vector(?x)", "matrix(?w)"),
        doc="A vector times rows is a matrix times a vector.",
    ),
    rule(
        "convolution-of-points",
        "conv(?x, ?w)",
        "reshape(matmul(squeeze(?w){axes = (2, 3)}, reshape(?x){shape = (0, 0, -1)})){shape = (?n, ?k, ?h, ?q)}",
        types=("x: ?t[?n, ?c, ?h, ?q]", "w: ?t[?k, ?c, 1, 1]"),
        doc="A 1 x 1 convolution is a product of matrices for each image.",
    ),
)
"""Layers taken apart."""

ASSOCIATION = (
    rule(
        "matmul-right",
        "matmul(matmul(?a, ?b), ?c)",
        "matmul(?a, matmul(?b, ?c))",
        ("?k * ?n * ?p + ?m * ?k * ?p < ?m * ?k * ?n + ?m * ?n * ?p",),
        ("a: ?t[?m, ?k]", "b: ?t[?k, ?n]", "c: ?t[?n, ?p]"),
        REASSOCIATING,
        "The cheaper of the two products first.",
    ),
    rule(
        "matmul-left",
        "matmul(?a, matmul(?b, ?c))",
        "matmul(matmul(?a, ?b), ?c)",
        ("?m * ?k * ?n + ?m * ?n * ?p < ?k * ?n * ?p + ?m * ?k * ?p",),
        ("a: ?t[?m, ?k]", "b: ?t[?k, ?n]", "c: ?t[?n, ?p]"),
        REASSOCIATING,
        "The cheaper of the two products first.",
    ),
    rule(
        "matmul-common-left",
        "add(matmul(?a, ?b), matmul(?a, ?c))",
        "matmul(?a, add(?b, ?c))",
        types=("a: ?t[?m, ?k]", "b: ?t[?k, ?n]", "c: ?t[?k, ?n]"),
        kind=REASSOCIATING,
        doc="One product instead of two.",
    ),
    rule(
        "matmul-common-right",
        "add(matmul(?a, ?c), matmul(?b, ?c))",
        "matmul(add(?a, ?b), ?c)",
        types=("a: ?t[?m, ?k]", "b: ?t[?m, ?k]", "c: ?t[?k, ?n]"),
        kind=REASSOCIATING,
        doc="One product instead of two.",
    ),
)
"""Fewer multiplications in another order."""

EVERYDAY: tuple[Rule, ...] = (*IDENTITIES, *AXES, *FOLDING, *LAYERS)
"""Rules that always help; together they come to an end."""
DSL: tuple[Rule, ...] = (*EVERYDAY, *PARTS, *ASSOCIATION)
