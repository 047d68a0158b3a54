"""Terms -> values: variables, functions, scalar arithmetic and ``let``; patterns are in ``normalise_patterns``."""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.base.dtypes import DTYPES, DType
from dovetail.base.errors import TermError
from dovetail.ir.expr import Expr, Position, joined
from dovetail.ir.functional.normalise_patterns import PATTERN_VALUES
from dovetail.ir.functional.normalise_store import Store
from dovetail.ir.functional.normalise_values import (
    I64,
    Case,
    Cell,
    Closure,
    Stored,
    Sum,
    Tuple,
    Value,
    converted,
    guarded,
    literal,
    none,
    number,
    operation,
    operation_type,
    opposite,
    products,
    widened,
)
from dovetail.ir.functional.patterns import missing
from dovetail.ir.functional.term import Call, Lambda, Let, Literal, Pattern, Scalar, Term, Var
from dovetail.ir.index import Condition, variable
from dovetail.ir.program import Combine

Env = Mapping[str, Value]
_COMBINES = {c.function: c for c in Combine if c.function is not None}


class Evaluation:
    """Evaluates terms symbolically; what must be stored goes to ``store``.

    ``careful`` adds the conditions that keep a ``view`` inside its array.
    """

    def __init__(self, store: Store, careful: bool) -> None:
        self.store = store
        self.careful = careful

    def value(self, term: Term, env: Env) -> Value:
        """What ``term`` is where its variables are ``env``."""
        match term:
            case Var(name):
                return env[name] if name in env else number(Position(variable(name)), I64)
            case Literal(value):
                return none() if value is None else literal(value)
            case Lambda(params, body):
                call = lambda args: self.value(body, {**env, **dict(zip(params, args, strict=True))})  # noqa: E731
                return Closure(len(params), call, self._combine_of(term, env))
            case Call(function, args):
                return self.apply(self.value(function, env), tuple(self.value(a, env) for a in args))
            case Scalar(function, args):
                return self._partial(term, tuple(self.value(a, env) for a in args), _COMBINES.get(function))
            case Pattern():
                return self._partial(term, tuple(self.value(a, env) for a in term.args), None)
            case Let(name, value, body):
                return self.value(body, {**env, name: self._named(self.value(value, env))})
        raise TermError("a rule's ?name in a term that is to be run", where=str(term))

    def apply(self, function: Value, args: tuple[Value, ...]) -> Value:
        """``function`` of ``args``; one of several values also takes the tuple of them."""
        if not isinstance(function, Closure):
            raise TermError("what is applied is not a function")
        if function.arity > 1 and len(args) == 1 and isinstance(args[0], Tuple):
            args = args[0].members
        if function.arity == 1 and len(args) > 1:
            args = (Tuple(args),)
        return function.call(args)

    def _partial(self, term: Scalar | Pattern, given: tuple[Value, ...], combine: Combine | None) -> Value:
        """The value, or the function of the terms that are still missing."""
        wanted = missing(term)
        if wanted:
            found = (combine, 0) if combine is not None and not given else None
            return Closure(wanted, lambda args: self._complete(term, (*given, *args)), found)
        return self._complete(term, given)

    def _complete(self, term: Scalar | Pattern, args: tuple[Value, ...]) -> Value:
        if isinstance(term, Pattern):
            return PATTERN_VALUES[term.name](self, term.settings, args)
        cells = tuple(a for a in args if isinstance(a, Cell))
        if len(cells) < len(args):
            raise TermError(f"{term.function} of an array", hint="map it over the elements")
        return self.scalar(term.function, cells)

    def _named(self, value: Value) -> Value:
        """What a ``let`` binds: arrays are stored, numbers that take a reduction as well."""
        if isinstance(value, Closure):
            return value
        if isinstance(value, Cell) and not any(isinstance(c.body, Sum) for c in value.cases):
            return value
        if isinstance(value, Tuple):
            return Tuple(tuple(map(self._named, value.members)))
        kept = self.store.keep(value)
        if isinstance(kept, Stored):
            kept.fresh = False
        return kept

    def _combine_of(self, term: Lambda, env: Env) -> tuple[Combine, int] | None:
        """The ``op=`` that a function of two values is, and over how many dimensions it is lifted."""
        if len(term.params) != 2:
            return None
        pair = {Var(p) for p in term.params}
        match term.body:
            case Scalar(function, (a, b)) if function in _COMBINES and {a, b} == pair:
                return _COMBINES[function], 0
            case Pattern("map", (), (inner, Pattern("zip", (), (a, b)))) if {a, b} == pair:
                lifted = self.value(inner, env) if isinstance(inner, Scalar | Lambda) else None
                if isinstance(lifted, Closure) and lifted.combine is not None:
                    return lifted.combine[0], lifted.combine[1] + 1
        return None

    # -- scalar arithmetic

    def scalar(self, function: str, cells: tuple[Cell, ...]) -> Cell:
        """A primitive, a cast or ``orelse``."""
        if function == "orelse":
            return self._orelse(*cells)
        if function.removeprefix("bitcast_") in DTYPES:
            return self._convert(function, cells[0])
        dtypes = tuple(cell.dtype for cell in cells)
        cases = []
        for common, chosen in products(cells):
            bodies = tuple(self._settled(case, common, cell) for case, cell in zip(chosen, cells, strict=True))
            cases.append(Case(common.where, operation(function, bodies, dtypes), common.fixed))
        return Cell(tuple(cases), operation_type(function, dtypes))

    def _settled(self, case: Case, common: Case, cell: Cell) -> Expr:
        return self.store.settle(Case(common.where, case.body, common.fixed), cell.dtype)

    def _convert(self, function: str, cell: Cell) -> Cell:
        """Rounding a reduction is left to where it is stored."""
        target = DTYPES[function.removeprefix("bitcast_")]
        cases = []
        for case in cell.cases:
            if isinstance(case.body, Sum) and function == target.name and cell.dtype == case.body.own:
                cases.append(case)
            else:
                body, _ = converted(function, self.store.settle(case, cell.dtype), cell.dtype)
                cases.append(Case(case.where, body, case.fixed))
        return Cell(tuple(cases), target)

    def _orelse(self, first: Cell, second: Cell) -> Cell:
        """The second where no case of the first holds."""
        rest = [second]
        for case in first.cases:
            fixed = tuple(Condition(variable(name) - value, equal=True) for name, value in case.fixed)
            rest = [guarded(r, o) for r in rest for o in opposite((*case.where, *fixed))]
        own = joined((first.dtype, second.dtype))
        cases = [self._seen_as(case, first, own) for case in first.cases]
        cases += [self._seen_as(case, second, own) for cell in rest for case in cell.cases]
        return Cell(tuple(cases), own)

    def _seen_as(self, case: Case, cell: Cell, own: DType | None) -> Case:
        """A case of ``cell`` in the joined type."""
        if own is None or cell.dtype is None or cell.dtype == own:
            return case
        return Case(case.where, widened(self.store.settle(case, cell.dtype), cell.dtype, own), case.fixed)
