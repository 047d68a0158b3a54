"""Rules about ``reduce``: in parts, in lanes, around maps. Those that change the order of a sum say so."""

from __future__ import annotations

from dovetail.rewrite.rule import Rule

REASSOCIATING = "reassociating"
_SUM = ("associative(?f)", "neutral(?f, ?z)")

REDUCTIONS = (
    Rule(
        "reduce-partial",
        r"reduce(?f, ?z, ?x)",
        r"reduce(?f, ?z, map(reduce(?f, ?z), split(?n, ?x)))",
        types=("x: ?t[?m]",),
        when=_SUM,
        choose=("n: divisors(?m)",),
        kind=REASSOCIATING,
        doc="The reduction of partial reductions of n neighbours.",
    ),
    Rule(
        "reduce-lanes",
        r"reduce(?f, ?z, ?x)",
        r"reduce(?f, ?z, map(reduce(?f, ?z), transpose(split(?n, ?x))))",
        types=("x: ?t[?m]",),
        when=_SUM,
        choose=("n: divisors(?m)",),
        kind=REASSOCIATING,
        doc="The reduction of n partial reductions, each of every n-th element.",
    ),
    Rule(
        "partial-reduce-split",
        r"map(reduce(?f, ?z), split(?n, ?x))",
        r"join(map(\v -> map(reduce(?f, ?z), split(?n, v)), split(?k * ?n, ?x)))",
        types=("x: ?t[?m]",),
        choose=("k: divisors(?m // ?n)",),
        doc="Partial reductions in groups of k.",
    ),
    Rule(
        "partial-reduce-deeper",
        r"map(reduce(?f, ?z), split(?n, ?x))",
        r"map(\v -> reduce(?f, ?z, map(reduce(?f, ?z), split(?k, v))), split(?n, ?x))",
        when=_SUM,
        choose=("k: divisors(?n)",),
        kind=REASSOCIATING,
        doc="Each partial reduction in parts again.",
    ),
    Rule(
        "reduce-join",
        r"reduce(?f, ?z, join(?x))",
        r"reduce(?f, ?z, map(reduce(?f, ?z), ?x))",
        when=_SUM,
        kind=REASSOCIATING,
        doc="An array of arrays is reduced row by row.",
    ),
    Rule(
        "reduce-flat",
        r"reduce(?f, ?z, map(reduce(?f, ?z), ?x))",
        r"reduce(?f, ?z, join(?x))",
        when=_SUM,
        kind=REASSOCIATING,
        doc="Rows that are reduced and reduced again are one long row.",
    ),
    Rule(
        "reduce-interchange",
        r"reduce(?f, ?z, map(reduce(?f, ?z), ?x))",
        r"reduce(?f, ?z, map(reduce(?f, ?z), transpose(?x)))",
        when=_SUM,
        kind=REASSOCIATING,
        doc="Columns first.",
    ),
    Rule(
        "reduce-pad",
        r"reduce(?f, ?z, ?x)",
        r"reduce(?f, ?z, pad(0, (?n - ?m % ?n) % ?n, none, ?x))",
        types=("x: ?t[?m]",),
        when=("associative(?f)", "?m % ?n != 0"),
        choose=("n: powers(?m)",),
        kind=REASSOCIATING,
        doc="Elements that are not there are added until n divides.",
    ),
    Rule(
        "map-reduce-interchange",
        r"map(reduce(?f, ?z), ?x)",
        r"reduce(\a b -> map(?f, zip(a, b)), repeat(?n, ?z), transpose(?x))",
        types=("x: ?t[?n, ?m]",),
        when=("associative(?f)",),
        doc="A reduction of each row is one reduction of columns, each added to all sums at once.",
    ),
    Rule(
        "reduce-map-interchange",
        r"reduce(\a b -> map(?f, zip(a, b)), repeat(?n, ?z), ?x)",
        r"map(reduce(?f, ?z), transpose(?x))",
        when=("associative(?f)",),
        doc="And back: a sum of columns is a sum in each row.",
    ),
    Rule(
        "reduce-of-sums",
        r"reduce(add, 0, map(\a b -> add(?f(a, b), ?g(a, b)), zip(?x, ?y)))",
        r"add(reduce(add, 0, map(\a b -> ?f(a, b), zip(?x, ?y))), reduce(add, 0, map(\a b -> ?g(a, b), zip(?x, ?y))))",
        when=("strict(?f)", "strict(?g)", "total(?f)", "total(?g)"),
        kind=REASSOCIATING,
        doc="A sum of sums is two sums, of the same terms.",
    ),
    Rule(
        "reduce-scale",
        r"reduce(add, 0, map(\v -> mul(?c, ?f(v)), ?x))",
        r"mul(?c, reduce(add, 0, map(\v -> ?f(v), ?x)))",
        when=("float(?x)", "finite"),
        kind="relaxed",
        error="64 * eps * sum(|c| * |f(x)|), of finite values",
        doc="A factor of every term is a factor of the sum.",
    ),
)
