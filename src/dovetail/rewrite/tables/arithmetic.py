"""Rules about numbers: an operation that a machine has not, by operations that most machines have."""

from __future__ import annotations

from dovetail.rewrite.rule import Rule

ARITHMETIC = (
    Rule(
        "sub-by-add",
        r"?a - ?b",
        r"?a + (-1) * ?b",
        when=("float(?b)",),
        doc="A difference is a sum with the negative, which a product with -1 is, exactly.",
    ),
    Rule(
        "neg-by-mul",
        r"-?a",
        r"(-1) * ?a",
        when=("float(?a)",),
        doc="The negative is a product with -1, exactly.",
    ),
    Rule(
        "sigmoid-by-tanh",
        r"sigmoid(?a)",
        r"0.5 * tanh(0.5 * ?a) + 0.5",
        when=("float(?a)",),
        kind="relaxed",
        error="2 * eps, absolute",
        doc="The logistic function is a hyperbolic tangent, moved and scaled; the last sum costs small values digits.",
    ),
)
