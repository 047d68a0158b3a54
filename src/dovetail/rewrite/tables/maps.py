"""Rules about ``map`` and ``zip``: fusing and splitting work that has no order."""

from __future__ import annotations

from dovetail.rewrite.rule import Rule

MAPS = (
    Rule(
        "map-fusion",
        r"map(?f, map(?g, ?x))",
        r"map(?f . ?g, ?x)",
        doc="Two passes over an array are one.",
    ),
    Rule(
        "map-fission",
        r"map(?f . ?g, ?x)",
        r"map(?f, map(?g, ?x))",
        doc="The outermost operation of a function gets a pass of its own.",
    ),
    Rule(
        "map-identity",
        r"map(\v -> v, ?x)",
        r"?x",
        doc="A pass that does nothing.",
    ),
    Rule(
        "map-split",
        r"map(?f, ?x)",
        r"join(map(map(?f), split(?n, ?x)))",
        types=("x: ?t[?m]",),
        choose=("n: divisors(?m)",),
        doc="Tiling: blocks of n elements, and the elements of a block.",
    ),
    Rule(
        "map-pad",
        r"map(?f, ?x)",
        r"slice(0, ?m, 1, map(?f, pad(0, (?n - ?m % ?n) % ?n, none, ?x)))",
        types=("x: ?t[?m]",),
        when=("?m % ?n != 0",),
        choose=("n: powers(?m)",),
        doc="Elements that are not there are added until n divides, and what comes of them is left out.",
    ),
    Rule(
        "vectorise",
        r"map(?f, zip(?x, ?y))",
        r"join(map(\a b -> map(?f, zip(a, b)), zip(split(?n, ?x), split(?n, ?y))))",
        types=("x: ?t[?m]", "y: ?u[?m]"),
        choose=("n: divisors(?m)",),
        doc="asVector and asScalar: a function of pairs, done on n lanes at once.",
    ),
    Rule(
        "map-map-interchange",
        r"map(\a -> map(\b -> ?f(a, b), ?y), ?x)",
        r"transpose(map(\b -> map(\a -> ?f(a, b), ?x), ?y))",
        doc="Rows before columns, or columns before rows.",
    ),
    Rule(
        "map-nest-transposed",
        r"map(map(?f), ?x)",
        r"transpose(map(map(?f), transpose(?x)))",
        doc="The same pass over columns.",
    ),
    Rule(
        "map-constant",
        r"map(\v -> ?c, ?x)",
        r"repeat(?m, ?c)",
        types=("x: ?t[?m]",),
        doc="A function that does not look at its argument.",
    ),
    Rule(
        "map-repeat",
        r"map(?f, repeat(?n, ?x))",
        r"repeat(?n, ?f(?x))",
        doc="What is equal everywhere is computed once.",
    ),
    Rule(
        "zip-map-first",
        r"map(?h, zip(map(?f, ?x), ?y))",
        r"map(\a b -> ?h(?f(a), b), zip(?x, ?y))",
        doc="A producer of one operand is fused.",
    ),
    Rule(
        "zip-map-second",
        r"map(?h, zip(?x, map(?f, ?y)))",
        r"map(\a b -> ?h(a, ?f(b)), zip(?x, ?y))",
        doc="A producer of the other operand is fused.",
    ),
    Rule(
        "zip-of-maps",
        r"zip(map(?f, ?x), map(?g, ?x))",
        r"map(\v -> tuple(?f(v), ?g(v)), ?x)",
        doc="Two passes over the same array are one.",
    ),
    Rule(
        "zip-swap",
        r"map(\a b -> ?f(a, b), zip(?x, ?y))",
        r"map(\b a -> ?f(a, b), zip(?y, ?x))",
        doc="The order of the operands does not matter to a function that is told of it.",
    ),
    Rule(
        "zip-first",
        r"map(\a b -> a, zip(?x, ?y))",
        r"?x",
        doc="An operand that nobody reads.",
    ),
    Rule(
        "zip-second",
        r"map(\a b -> b, zip(?x, ?y))",
        r"?y",
        doc="An operand that nobody reads.",
    ),
    Rule(
        "zip-same",
        r"map(\a b -> ?f(a, b), zip(?x, ?x))",
        r"map(\a -> ?f(a, a), ?x)",
        doc="An array is read once.",
    ),
    Rule(
        "zip-repeat-first",
        r"map(\a b -> ?f(a, b), zip(repeat(?n, ?x), ?y))",
        r"map(\b -> ?f(?x, b), ?y)",
        doc="A broadcast operand is no array.",
    ),
    Rule(
        "zip-repeat-second",
        r"map(\a b -> ?f(a, b), zip(?x, repeat(?n, ?y)))",
        r"map(\a -> ?f(a, ?y), ?x)",
        doc="A broadcast operand is no array.",
    ),
)
