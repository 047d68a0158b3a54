"""Rules that make one pass of passes inside one another, and one sum of sums inside one another."""

from __future__ import annotations

from dovetail.rewrite.rule import Rule

_SUM = ("associative(?f)", "neutral(?f, ?z)")

ROWS = Rule(
    "map-map-flat",
    r"map(map(?f), ?x)",
    r"split(?q, map(?f, join(?x)))",
    types=("x: ?t[?p, ?q]",),
    doc="Rows end to end are one long row.",
)
SUMS = (
    Rule(
        "dot-flat",
        r"reduce(?f, ?z, map(\u v -> reduce(?f, ?z, map(?g, zip(u, v))), zip(?a, ?b)))",
        r"reduce(?f, ?z, map(?g, zip(join(?a), join(?b))))",
        when=_SUM,
        kind="reassociating",
        doc="A sum of products of rows is one product of all rows end to end.",
    ),
    Rule(
        "dot-flat-views",
        r"reduce(?f, ?z, map(\u v -> reduce(?f, ?z, map(?g, zip(?p(u), ?q(v)))), zip(?a, ?b)))",
        r"reduce(?f, ?z, map(?g, zip(join(map(?p, ?a)), join(map(?q, ?b)))))",
        when=_SUM,
        kind="reassociating",
        doc="The same where each row is rearranged first.",
    ),
)
