"""Calls of instructions in terms: ``call("MVMul64", \\w x -> what it computes, w, x)``."""

from __future__ import annotations

from dataclasses import replace

from dovetail.ir.functional.patterns import apply
from dovetail.ir.functional.simplify import simplify
from dovetail.ir.functional.term import Call, Definition, Pattern, Term, Var, children, rebuild, with_children
from dovetail.rewrite.derivation import Derivation


def without_calls(definition: Definition) -> Definition:
    """``definition`` with what each instruction computes in place of its call."""

    def change(term: Term) -> Term:
        match term:
            case Pattern("call", _, (function, *args)):
                return apply(function, tuple(args))
        return term

    return replace(definition, body=simplify(rebuild(definition.body, change)))


def readable(definition: Definition) -> Definition:
    """``definition`` with calls written ``MVMul64(w, x)``: for reading, it has no other meaning."""
    return replace(definition, body=readable_term(definition.body))


def readable_term(term: Term) -> Term:
    """A term with calls written ``MVMul64(w, x)``."""
    match term:
        case Pattern("call", (str(name),), (_, *args)):
            return Call(Var(name.split(".")[0]), tuple(map(readable_term, args)))
    return with_children(term, tuple(map(readable_term, children(term))))


def readable_derivation(derivation: Derivation) -> Derivation:
    """A derivation whose steps call instructions by their short names."""
    steps = tuple(
        replace(
            step,
            before=readable_term(step.before),
            after=readable_term(step.after),
            whole=readable_term(step.whole),
        )
        for step in derivation.steps
    )
    return replace(derivation, steps=steps)
