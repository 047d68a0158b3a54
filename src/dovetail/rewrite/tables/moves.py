"""Rules that only move elements: split, join, transpose, zip, slide, pad, slice and repeat in another order.

Each is proven by isl for symbolic sizes: both sides read the same element at every place.
"""

from __future__ import annotations

from dovetail.rewrite.rule import Rule

MOVES = (
    # what undoes itself
    Rule("join-split", r"join(split(?n, ?x))", r"?x"),
    Rule("split-join", r"split(?n, join(?x))", r"?x", types=("x: ?t[?m, ?n]",)),
    Rule("transpose-twice", r"transpose(transpose(?x))", r"?x"),
    Rule("slide-is-split", r"slide(?n, ?n, ?x)", r"split(?n, ?x)", types=("x: ?t[?m]",), when=("?m % ?n == 0",)),
    Rule("split-is-slide", r"split(?n, ?x)", r"slide(?n, ?n, ?x)"),
    Rule("pad-nothing", r"pad(0, 0, ?z, ?x)", r"?x"),
    Rule("slice-all", r"slice(0, ?n, 1, ?x)", r"?x", types=("x: ?t[?n]",)),
    Rule("slice-pad", r"slice(?l, ?m, 1, pad(?l, ?r, ?z, ?x))", r"?x", types=("x: ?t[?m]",)),
    # elements moved before or after they are computed with
    Rule("split-map", r"split(?n, map(?f, ?x))", r"map(map(?f), split(?n, ?x))"),
    Rule("map-of-split", r"map(map(?f), split(?n, ?x))", r"split(?n, map(?f, ?x))"),
    Rule("map-of-join", r"map(?f, join(?x))", r"join(map(map(?f), ?x))"),
    Rule("join-map", r"join(map(map(?f), ?x))", r"map(?f, join(?x))"),
    Rule("transpose-map", r"transpose(map(map(?f), ?x))", r"map(map(?f), transpose(?x))"),
    Rule("map-of-transpose", r"map(map(?f), transpose(?x))", r"transpose(map(map(?f), ?x))"),
    Rule("slide-map", r"slide(?n, ?s, map(?f, ?x))", r"map(map(?f), slide(?n, ?s, ?x))"),
    Rule("map-of-slide", r"map(map(?f), slide(?n, ?s, ?x))", r"slide(?n, ?s, map(?f, ?x))"),
    Rule("slice-map", r"slice(?a, ?n, ?s, map(?f, ?x))", r"map(?f, slice(?a, ?n, ?s, ?x))"),
    Rule("map-of-slice", r"map(?f, slice(?a, ?n, ?s, ?x))", r"slice(?a, ?n, ?s, map(?f, ?x))"),
    Rule("map-of-pad", r"map(?f, pad(?l, ?r, ?z, ?x))", r"pad(?l, ?r, ?f(?z), map(?f, ?x))", when=("stored(?z)",)),
    Rule(
        "map-of-pad-none",
        r"map(?f, pad(?l, ?r, none, ?x))",
        r"pad(?l, ?r, none, map(?f, ?x))",
        when=("strict(?f)",),
    ),
    Rule(
        "pad-none-map",
        r"pad(?l, ?r, none, map(?f, ?x))",
        r"map(?f, pad(?l, ?r, none, ?x))",
        when=("strict(?f)",),
    ),
    # two moves in another order
    Rule("join-join", r"join(join(?x))", r"join(map(join, ?x))"),
    Rule("join-map-join", r"join(map(join, ?x))", r"join(join(?x))"),
    Rule("split-split", r"split(?n, split(?m, ?x))", r"map(split(?m), split(?n * ?m, ?x))"),
    Rule(
        "map-split-split",
        r"map(split(?m), split(?n, ?x))",
        r"split(?n // ?m, split(?m, ?x))",
    ),
    Rule("transpose-join", r"transpose(join(?x))", r"map(join, transpose(map(transpose, ?x)))"),
    Rule("transpose-map-join", r"transpose(map(join, ?x))", r"join(map(transpose, transpose(?x)))"),
    Rule("split-transpose", r"split(?n, transpose(?x))", r"map(transpose, transpose(map(split(?n), ?x)))"),
    Rule("map-split-transpose", r"map(split(?n), transpose(?x))", r"transpose(map(transpose, split(?n, ?x)))"),
    Rule(
        "transpose-braid",
        r"transpose(map(transpose, transpose(?x)))",
        r"map(transpose, transpose(map(transpose, ?x)))",
    ),
    Rule("transpose-slide", r"transpose(map(slide(?n, ?s), ?x))", r"map(transpose, slide(?n, ?s, transpose(?x)))"),
    Rule("slide-transpose", r"slide(?n, ?s, transpose(?x))", r"map(transpose, transpose(map(slide(?n, ?s), ?x)))"),
    Rule("transpose-repeat", r"transpose(repeat(?n, ?x))", r"map(repeat(?n), ?x)"),
    Rule("transpose-map-repeat", r"transpose(map(repeat(?n), ?x))", r"repeat(?n, ?x)"),
    Rule("join-repeat", r"join(repeat(?n, repeat(?m, ?x)))", r"repeat(?n * ?m, ?x)"),
    Rule("split-repeat", r"split(?n, repeat(?m, ?x))", r"repeat(?m // ?n, repeat(?n, ?x))"),
    Rule("slide-repeat", r"slide(?n, ?s, repeat(?m, ?x))", r"repeat((?m - ?n) // ?s + 1, repeat(?n, ?x))"),
    Rule("pad-pad", r"pad(?l, ?r, ?z, pad(?k, ?m, ?z, ?x))", r"pad(?l + ?k, ?r + ?m, ?z, ?x)"),
    Rule("transpose-map-pad", r"transpose(map(pad(?l, ?r, none), ?x))", r"pad(?l, ?r, none, transpose(?x))"),
    Rule("pad-transpose", r"pad(?l, ?r, none, transpose(?x))", r"transpose(map(pad(?l, ?r, none), ?x))"),
    Rule(
        "slice-slice",
        r"slice(?a, ?n, ?s, slice(?b, ?m, ?t, ?x))",
        r"slice(?b + ?a * ?t, ?n, ?s * ?t, ?x)",
    ),
    Rule("transpose-map-slice", r"transpose(map(slice(?a, ?n, ?s), ?x))", r"slice(?a, ?n, ?s, transpose(?x))"),
    Rule(
        "slice-slide",
        r"slice(?a, ?n, ?t, slide(?k, ?s, ?x))",
        r"slide(?k, ?s * ?t, slice(?a * ?s, (?n - 1) * ?s * ?t + ?k, 1, ?x))",
        when=("?n >= 1",),
    ),
    # pairs moved apart
    Rule(
        "split-zip",
        r"split(?n, zip(?x, ?y))",
        r"map(\a b -> zip(a, b), zip(split(?n, ?x), split(?n, ?y)))",
    ),
    Rule(
        "zip-of-joins",
        r"zip(join(?x), join(?y))",
        r"join(map(\a b -> zip(a, b), zip(?x, ?y)))",
        types=("x: ?t[?n, ?m]", "y: ?u[?n, ?m]"),
    ),
    Rule(
        "slide-zip",
        r"slide(?n, ?s, zip(?x, ?y))",
        r"map(\a b -> zip(a, b), zip(slide(?n, ?s, ?x), slide(?n, ?s, ?y)))",
    ),
    Rule(
        "transpose-zip",
        r"transpose(map(\a b -> zip(a, b), zip(?x, ?y)))",
        r"map(\a b -> zip(a, b), zip(transpose(?x), transpose(?y)))",
    ),
    Rule("slice-zip", r"slice(?a, ?n, ?s, zip(?x, ?y))", r"zip(slice(?a, ?n, ?s, ?x), slice(?a, ?n, ?s, ?y))"),
    # overlapped tiling
    Rule(
        "slide-tile",
        r"slide(?n, ?s, ?x)",
        r"join(map(slide(?n, ?s), slide(?n + (?k - 1) * ?s, ?k * ?s, ?x)))",
        types=("x: ?t[?m]",),
        choose=("k: divisors((?m - ?n) // ?s + 1)",),
        doc="Overlapped tiling: k windows from one piece, pieces share the halo.",
    ),
    Rule(
        "map-slide-tile",
        r"map(?f, slide(?n, ?s, ?x))",
        r"join(map(\v -> map(?f, slide(?n, ?s, v)), slide(?n + (?k - 1) * ?s, ?k * ?s, ?x)))",
        types=("x: ?t[?m]",),
        choose=("k: divisors((?m - ?n) // ?s + 1)",),
        doc="Overlapped tiling of a stencil.",
    ),
)
