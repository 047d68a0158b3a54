"""Whether the two sides of a rule have one type."""

from __future__ import annotations

from dovetail.base.errors import RuleError, TermError
from dovetail.ir.functional.inference import Inference
from dovetail.ir.functional.type_errors import pretty
from dovetail.rewrite.graph_rule import compiled_graph_rule
from dovetail.rewrite.rule import RESULT, Rule, at, compiled


def check_types(rule: Rule) -> None:
    """Read the rule, and raise a RuleError unless its sides have one type, whatever its metas stand for.

    What operators of graphs give is for their own definitions to say: rules of that level are checked where they fire.
    """
    if rule.level == "dsl":
        compiled_graph_rule(rule)
        return
    read = compiled(rule)
    inference = Inference()
    try:
        before = inference.infer(read.before, {})
        for name, kind in read.types:
            found = before if name == RESULT else inference.metas.get(name)
            if found is not None:
                inference.demand(found, kind, f"'?{name}' has another type than 'types' says")
    except TermError as problem:
        raise at(rule, "before", problem) from None
    try:
        sizes = inference.open_sizes()
        inference.demand(before, inference.infer(read.after, {}), "the two sides have different types")
        inference.settle()
        narrowed = inference.narrowed(sizes)
        if narrowed is not None:
            what, other = pretty(f"{narrowed[0]}\0{narrowed[1]}").split("\0")
            hint = f"say in 'types' that {what} is {other}, if the rule is for that only"
            raise TermError(f"the two sides have one type only where {what} is {other}", hint=hint)
    except TermError as problem:
        raise RuleError(
            problem.what,
            where=f"rule '{rule.name}'\n  before  {rule.before}\n  after   {rule.after}",
            why="\n".join(filter(None, (problem.where, problem.why))),
            hint=problem.hint or "a rule keeps the type of what it replaces",
        ) from None
