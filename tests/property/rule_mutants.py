"""Mistakes, each put into one rule of the real tables: the checks of rules have to find them.

A mistake is (rule, field, what stands there, what stands there instead); an entry of ``when`` or ``types`` is dropped.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dovetail.rewrite.rule import Rule
from dovetail.rewrite.tables.algorithmic import ALGORITHMIC
from dovetail.rewrite.tables.dsl import DSL


@dataclass(frozen=True, slots=True)
class Mutant:
    """One mistake."""

    rule: str
    field: str
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.field} {self.old!r} -> {self.new!r}"

    def made(self) -> Rule:
        """The rule with the mistake in it."""
        (found,) = (rule for rule in (*ALGORITHMIC, *DSL) if rule.name == self.rule)
        match self.field:
            case "before":
                return replace(found, before=self._swapped(str(found.before)))
            case "after":
                return replace(found, after=self._swapped(str(found.after)))
            case "kind":
                return replace(found, kind=self._swapped(found.kind), error="")
            case "types":
                return replace(found, types=self._without(found.types))
        return replace(found, when=self._without(found.when))

    def _swapped(self, text: str) -> str:
        assert self.old in text, f"{self.old} is not in {text}"
        return text.replace(self.old, self.new, 1)

    def _without(self, entries: tuple[str, ...]) -> tuple[str, ...]:
        assert self.old in entries, f"{self.old} is not in {entries}"
        return tuple(entry for entry in entries if entry != self.old)


MUTANTS = (
    # operands in the wrong order
    Mutant("map-fusion", "after", "?f . ?g", "?g . ?f"),
    Mutant("vectorise", "after", "zip(a, b))", "zip(b, a))"),
    Mutant("zip-swap", "after", "zip(?y, ?x)", "zip(?x, ?y)"),
    Mutant("zip-first", "after", "?x", "?y"),
    Mutant("zip-repeat-first", "after", "?f(?x, b)", "?f(b, ?x)"),
    Mutant("zip-map-second", "after", "?h(a, ?f(b))", "?h(?f(b), a)"),
    Mutant("matmul-right", "after", "matmul(?b, ?c)", "matmul(?c, ?b)"),
    Mutant("axes-matmul-00", "after", "matmul(?b, ?a)", "matmul(?a, ?b)"),
    Mutant("add-neg", "after", "sub(?x, ?y)", "sub(?y, ?x)"),
    Mutant("axes-twice", "after", "compose(?p, ?q)", "compose(?q, ?p)"),
    # a transpose, a join or a factor dropped
    Mutant("map-map-interchange", "after", "transpose(", "("),
    Mutant("transpose-join", "after", "map(transpose, ?x)", "?x"),
    Mutant("reduce-scale", "after", "mul(?c, ", "("),
    Mutant("dense-of-columns", "after", "transpose(?w){perm = (1, 0)}", "?w"),
    Mutant("scale-conv-bias", "after", "mul(?a, ?s)", "?a"),
    Mutant("batch-norm-conv-bias", "after", "unsqueeze(?a)", "unsqueeze(sub(?m, ?m))"),
    # a number or a size changed
    Mutant("map-constant", "after", "repeat(?m, ", "repeat(?m + 1, "),
    Mutant("map-pad", "after", "slice(0, ?m, 1, map(?f, pad(0, (?n", "slice(0, ?m, 1, map(?f, pad(1, (?n"),
    Mutant("slice-pad", "before", "slice(?l, ", "slice(?k, "),
    Mutant("pad-pad", "after", "?l + ?k, ?r + ?m", "?r + ?m, ?l + ?k"),
    Mutant("slice-slice", "after", "?s * ?t", "?s"),
    Mutant("slide-tile", "after", "?k * ?s", "?k"),
    Mutant("slice-slide", "after", "slice(?a * ?s", "slice(?a"),
    Mutant("reduce-pad", "after", "none", "0"),
    Mutant("im2col", "after", "reduce(add, 0, repeat(1, v))", "reduce(add, 1, repeat(1, v))"),
    Mutant("scale-conv", "after", "axis = 0", "axis = 1"),
    # a meta taken for another
    Mutant("pad-pad", "before", "pad(?k, ?m, ?z, ", "pad(?k, ?m, ?y, "),
    Mutant("slide-zip", "after", "slide(?n, ?s, ?y)", "slide(?n, ?s, ?x)"),
    Mutant("reduce-of-sums", "after", "?g(a, b)", "?f(a, b)"),
    # another operation
    Mutant("reduce-of-sums", "after", "add(reduce", "max(reduce"),
    Mutant("matmul-common-left", "after", "add(?b, ?c)", "max(?b, ?c)"),
    # a condition dropped
    Mutant("slide-is-split", "when", "?m % ?n == 0", ""),
    Mutant("pad-none-map", "when", "strict(?f)", ""),
    Mutant("reduce-partial", "when", "neutral(?f, ?z)", ""),
    Mutant("split-join", "types", "x: ?t[?m, ?n]", ""),
    Mutant("reshape-reshape", "when", "whole(?t)", ""),
    Mutant("winograd-2x2", "when", "bilinear(?b)", ""),
    # more promised than is kept
    Mutant("reduce-partial", "kind", "reassociating", "bit-exact"),
    Mutant("scale-dense", "kind", "reassociating", "bit-exact"),
    # a coefficient
    Mutant("winograd-2x2", "after", "0.5 * e0 + 0.5 * e1", "0.5 * e0 + 0.25 * e1"),
    Mutant("winograd-4x4", "after", "4 * e0 - 5 * e2 + e4", "4 * e0 - 4 * e2 + e4"),
)
