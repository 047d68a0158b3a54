"""Rules about what is stored: ``let``, and ``to(memory)``."""

from __future__ import annotations

from dovetail.rewrite.rule import Rule

STORAGE = (
    Rule(
        "let-operand",
        r"map(?f, ?x)",
        r"let v = ?x in map(?f, v)",
        doc="What a pass reads is stored before it.",
    ),
    Rule(
        "let-reduced",
        r"reduce(?f, ?z, ?x)",
        r"let v = ?x in reduce(?f, ?z, v)",
        doc="What is reduced is stored before it.",
    ),
    Rule(
        "let-inline",
        r"let v = ?x in ?f(v)",
        r"?f(?x)",
        doc="Nothing is stored: the value is computed where it is used.",
    ),
    Rule(
        "to-operand",
        r"map(?f, ?x)",
        r'map(?f, to("", ?x))',
        doc="toChip: what a pass reads is copied first.",
    ),
    Rule(
        "to-result",
        r"map(?f, ?x)",
        r'to("", map(?f, ?x))',
        doc="toOutput: what a pass writes is a copy.",
    ),
    Rule("to-nowhere", r"to(?memory, ?x)", r"?x", doc="A copy that is not needed."),
    Rule("to-twice", r"to(?memory, to(?memory, ?x))", r"to(?memory, ?x)", doc="It is there already."),
    Rule("to-is-let", r"to(?memory, ?x)", r"let v = to(?memory, ?x) in v", doc="A stored value has a name."),
)
