"""A definition on its way through rules that a strategy picks one by one, with every step kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dovetail.base.errors import RewriteError
from dovetail.ir.functional.patterns import apply, missing
from dovetail.ir.functional.simplify import simplify
from dovetail.ir.functional.term import Definition, Lambda, Let, Term, Var, children, free_names, fresh, walk
from dovetail.ir.functional.types import Type
from dovetail.rewrite.apply import context_of, rewrites
from dovetail.rewrite.derivation import Derivation, Step
from dovetail.rewrite.rule import Rule
from dovetail.rewrite.typed import Path, Typed

MOST_STEPS = 5_000
"""Steps after which a strategy is taken to go round in circles."""
State = tuple[Typed, int]


class Run:
    """The definition as it is now, and the steps so far."""

    def __init__(self, definition: Definition) -> None:
        self.start = replace(definition, body=simplify(definition.body))
        self.whole = Typed.of(self.start)
        self.context = context_of(self.start)
        self.steps: list[Step] = []

    def fire(self, rule: Rule, at: Path, choose: Mapping[str, int] | None = None, checked: bool = True) -> bool:
        """Whether the rule fired at a place; types that are not ``checked`` are when they are asked for."""
        found = next(rewrites(self.whole, rule, at, self.context, choose, checked), None)
        if found is None:
            return False
        if len(self.steps) >= MOST_STEPS:
            raise RewriteError(
                f"mapping '{self.start.name}' was stopped by the limit of {MOST_STEPS} steps",
                where=f"rule '{rule.name}' would fire next",
                hint="map parts of the definition by themselves",
            )
        self.whole = found.whole
        self.steps.append(Step(rule.name, rule.kind, at, found.before, found.after, self.whole.term, found.chosen))
        return True

    def fire_short(self, rule: Rule, at: Path, choose: Mapping[str, int] | None = None) -> bool:
        """Whether the rule fired at a place, or in the function there, written out."""
        if self.fire(rule, at, choose):
            return True
        state = self.saved()
        inside = self.open(at)
        if inside != at and self.fire(rule, inside, choose):
            return True
        self.back(state)
        return False

    def open(self, at: Path) -> Path:
        """``map(f)`` written out as ``\\v -> map(f, v)``; where the application then is, or was already."""
        function = written_out(self.at(at))
        if not isinstance(function, Lambda) or function is self.at(at):
            return at
        self.whole = self.whole.replaced(at, function)
        return (*at, 0)

    def tidy(self, at: Path) -> None:
        """What became longer than need be at a place written short again."""
        old = self.whole.at(at)
        new = simplify(old)
        if new != old:
            self.whole = self.whole.replaced(at, new)
            if self.steps:
                self.steps[-1] = replace(self.steps[-1], whole=self.whole.term)

    def with_types(self, types: Mapping[Path, Type]) -> None:
        """The types of all parts as they are now, where they are known without looking."""
        self.whole = Typed(self.whole.term, types, self.whole.names, self.whole.sizes)

    def saved(self) -> State:
        """To come back to with ``back``."""
        return self.whole, len(self.steps)

    def back(self, state: State) -> None:
        """Take back all steps since."""
        self.whole = state[0]
        del self.steps[state[1] :]

    def at(self, path: Path) -> Term:
        return self.whole.at(path)

    def type_at(self, path: Path) -> Type:
        return self.whole.types[path]

    def stored(self) -> list[Path]:
        """Where the values are that a chain of ``let`` stores, and the result, last."""
        found: list[Path] = []
        path: Path = ()
        term = self.whole.term
        while isinstance(term, Let):
            found.append((*path, 0))
            term, path = term.body, (*path, 1)
        return [*found, path]

    def fresh(self, prefix: str) -> str:
        """A name that nothing in the definition has, numbered from 1."""
        taken = {param.name for param in self.start.params} | all_names(self.whole.term)
        return next(f"{prefix}{n}" for n in range(1, len(taken) + 2) if f"{prefix}{n}" not in taken)

    @property
    def definition(self) -> Definition:
        return replace(self.start, body=self.whole.term)

    @property
    def derivation(self) -> Derivation:
        return Derivation(self.start, tuple(self.steps))


def all_names(term: Term) -> frozenset[str]:
    """Every name in a term, bound or not."""
    found: set[str] = set()
    for part in walk(term):
        match part:
            case Var(name) | Let(name, _, _):
                found.add(name)
            case Lambda(params, _):
                found.update(params)
    return frozenset(found)


def written_out(function: Term) -> Term:
    """``map(f)`` as ``\\v -> map(f, v)``, ``sub(1)`` as ``\\v -> 1 - v``; other functions as they are."""
    count = missing(function)
    if not count:
        return function
    names: list[str] = []
    for _ in range(count):
        names.append(fresh("v", free_names(function) | set(names)))
    return Lambda(tuple(names), apply(function, tuple(map(Var, names))))


def at_path(term: Term, path: Path) -> Term:
    """The part of a term at a place."""
    for step in path:
        term = children(term)[step]
    return term
