"""Other algorithms for the same program, and the choice among them by what each would cost.

A rule that fires on the program's term gives a form of it: windows that are stored first (im2col), Winograd's, or one
of the user's own rules. The first form is always the program as it is; another is taken only when the estimate, which
is the scheduler's own for the machine at hand, finds it faster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dovetail.base.errors import RewriteError
from dovetail.base.suggest import closest
from dovetail.ir.functional.normalise import normalise
from dovetail.ir.functional.raise_program import raise_program
from dovetail.ir.functional.term import Definition
from dovetail.ir.program import Program, Statement
from dovetail.ir.windows import has_windows
from dovetail.rewrite.apply import everywhere
from dovetail.rewrite.copies import plain_copies
from dovetail.rewrite.derivation import Derivation, Step
from dovetail.rewrite.rule import Rule
from dovetail.rewrite.tables.convolution import CONVOLUTION
from dovetail.rewrite.usual_order import in_usual_order, restored

DIRECT = "direct"
GAIN = 1.05
"""How much faster another form must seem: estimates are not better than this."""
SAME_WORK = 1.5
"""Forms that do the same arithmetic and store more besides are not made where the direct one takes less than so many
times its arithmetic."""
Estimate = Callable[[Program], float]


@dataclass(frozen=True, slots=True)
class Form:
    """One algorithm: the rule that gives it, the program it is, how it was derived, and the rule's stated error."""

    name: str
    program: Program
    derivation: Derivation | None = None
    error: str = ""

    @property
    def kind(self) -> str:
        return "bit-exact" if self.derivation is None else self.derivation.kind


@dataclass(frozen=True, slots=True)
class Choice:
    """The form that was taken, and what each that was looked at would cost."""

    form: Form
    costs: tuple[tuple[str, float], ...]


def choose(
    program: Program,
    estimate: Estimate,
    relaxed: bool = False,
    rules: tuple[Rule, ...] = (),
    finite: bool = False,
    given: Definition | None = None,
    least: Estimate | None = None,
) -> Choice:
    """The form of ``program`` that costs least; see ``forms``. ``least`` is what its arithmetic alone costs."""
    best = Form(DIRECT, program)
    if not rules and not has_windows(program):
        return Choice(best, ())
    costs: dict[str, float] = {}
    if least is not None and not relaxed and not rules:
        costs[DIRECT] = lowest = estimate(program)
        if lowest < SAME_WORK * least(program):
            return Choice(best, tuple(costs.items()))
    for form in forms(program, relaxed, rules, finite, given):
        if not costs:
            costs[DIRECT] = lowest = estimate(program)
        costs[form.name] = estimate(form.program)
        if costs[form.name] * GAIN < costs[DIRECT] and costs[form.name] < lowest:
            best, lowest = form, costs[form.name]
    return Choice(best, tuple(costs.items()))


def named(
    program: Program,
    name: str,
    relaxed: bool = False,
    rules: tuple[Rule, ...] = (),
    finite: bool = False,
    given: Definition | None = None,
) -> Choice:
    """The form of ``program`` that a rule gives; a RewriteError where it gives none."""
    known = [rule for rule in (*CONVOLUTION, *rules) if rule.name == name]
    if not known:
        names = (DIRECT, *(rule.name for rule in (*CONVOLUTION, *rules)))
        raise RewriteError(f"no algorithm is called '{name}'", hint=closest(name, names))
    if known[0].kind == "relaxed" and not relaxed:
        why = f"it rounds otherwise: {known[0].error}"
        raise RewriteError(f"algorithm '{name}' is relaxed", why=why, hint="allow it: relaxed=True, --relaxed")
    found = next((form for form in forms(program, relaxed, rules, finite, given) if form.name == name), None)
    if found is None:
        raise RewriteError(f"the program has no form '{name}'", why=f"{known[0].doc or known[0].before}", hint=DIRECT)
    return Choice(found, ())


def forms(
    program: Program,
    relaxed: bool = False,
    rules: tuple[Rule, ...] = (),
    finite: bool = False,
    given: Definition | None = None,
) -> Iterator[Form]:
    """Every other form of ``program`` that a rule gives.

    Rules see the term that the program raises to; those of the user the definition as it was ``given``. Forms that put
    zeros where the program has no point are the same for ``finite`` data alone, which ``relaxed`` takes for granted.
    """
    allowed = frozenset({"finite"}) if relaxed or finite else frozenset()
    wanted = [rule for rule in (*CONVOLUTION, *rules) if relaxed or rule.kind != "relaxed"]
    if not wanted or any(_is_indirect(statement) for statement in program.statements):
        return
    turned, orders = in_usual_order(program)
    definition = raise_program(turned)
    for rule in wanted:
        as_given = given if rule in rules else None
        derivation = _derived(as_given or definition, rule, allowed)
        if derivation is not None:
            made = plain_copies(normalise(derivation.end, typed=True))
            yield Form(rule.name, made if as_given else restored(made, orders), derivation, rule.error)


def _is_indirect(statement: Statement) -> bool:
    accesses = (statement.out, *statement.reads())
    return any(index.is_indirect for access in accesses for index in access.indices)


def _derived(definition: Definition, rule: Rule, allowed: frozenset[str]) -> Derivation | None:
    """The rule wherever it fires first, outermost first; None where it does not fire."""
    found = next(everywhere(definition, rule, allowed), None)
    if found is None:
        return None
    step = Step(rule.name, rule.kind, found.at, found.before, found.after, found.whole.term, found.chosen)
    return Derivation(definition, (step,))
