"""Types of terms, by unification; every size is an equation.

    map(\\v -> v + 1, split(4, x))   with x: f32[12]       f32[3, 4]: refused, v is f32[4], not a number

Data comes before functions: the terms of a pattern are typed from the last to the first, so that a function is typed
when what it is applied to is known. What is still unknown waits: arithmetic on a term whose type comes later, a member
of a tuple, a size in a quotient. A number takes the type of what it meets, in the end i64 or f32.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from dovetail.base.dtypes import DTYPES, Kind
from dovetail.base.errors import TermError
from dovetail.ir.functional.deferred import Deferred
from dovetail.ir.functional.patterns import PATTERNS, scalar_arity, scheme_of
from dovetail.ir.functional.scalar_types import BOOL, arithmetic, result_type
from dovetail.ir.functional.size_facts import Fact, fails, setting_facts, too_small
from dovetail.ir.functional.sizes import names_in, substitute
from dovetail.ir.functional.solve import Clash, plain_unknown
from dovetail.ir.functional.special_types import SPECIAL
from dovetail.ir.functional.term import Call, Lambda, Let, Literal, Meta, Pattern, Scalar, Term, Var
from dovetail.ir.functional.type_errors import Path, explain, place, pretty
from dovetail.ir.functional.types import Array, Function, Tuple, Type, Unknown
from dovetail.ir.functional.types import Scalar as Number
from dovetail.ir.index import Index, variable
from dovetail.ir.program import Size

Env = Mapping[str, Type]
Seen = Callable[[Term], tuple[Env, Callable[[], Mapping[Path, Type]]] | None]
"""Of a term that was typed before: the types of the names in it, and how to get those of all its parts."""


@dataclass(frozen=True, slots=True)
class Typing:
    """The type of a term and of every term inside it, by path: ``at[0, 1]`` is child 1 of child 0.

    ``metas`` are the types of ``?x``, ``sizes`` the values of unknown sizes that were found.
    """

    type: Type
    at: Mapping[Path, Type]
    metas: Mapping[str, Type] = field(default_factory=dict)
    sizes: Mapping[str, Index] = field(default_factory=dict)


class Inference(Deferred):
    """Types of several terms that share what is known, such as the two sides of a rule.

    ``infer`` each, ``equate`` or ``demand`` what must agree, then ``settle``; ``typing`` gives what was found.
    """

    def __init__(self, sizes: Sequence[Size] = (), seen: Seen | None = None) -> None:
        super().__init__()
        self.seen = seen
        self.ranges = {size.name: (size.low, size.high) for size in sizes}
        self.metas: dict[str, Type] = {}
        self.at: dict[Path, Type] = {}
        self.facts: list[tuple[Path, Fact]] = []
        self.written: list[tuple[Path, Term, int | float, Type]] = []

    def infer(self, term: Term, env: Env) -> Type:
        """The type of ``term`` as far as it is known; ``at`` is that of its parts; ``?x`` in ``env`` is a meta's."""
        self.root, self.at = term, {}
        self.metas |= {name[1:]: kind for name, kind in env.items() if name.startswith("?")}
        numbers = {name: Number(DTYPES["i64"]) for name in self.ranges}
        return self.visit(term, (), {**numbers, **env}, None)

    def demand(self, left: Type, right: Type, what: str) -> None:
        """``left`` and ``right`` are the same type, or a ``TermError`` that begins with ``what``."""
        clash = self.equate(left, right)
        if clash is not None:
            raise explain(what, None, self.resolve(left), self.resolve(right), clash)

    def open_sizes(self) -> tuple[Index, ...]:
        """Sizes in the types of metas that can still be anything."""
        sizes = (size for kind in self.metas.values() for size in _sizes_in(self.resolve(kind)))
        return tuple(dict.fromkeys(size for size in sizes if plain_unknown(size)))

    def narrowed(self, sizes: tuple[Index, ...]) -> tuple[Index, Index] | None:
        """Two of ``sizes``, which could be anything, that have become equal, or one and the number it has become."""
        seen: dict[Index, Index] = {}
        for size in sizes:
            now = self.resolve_size(size)
            if now.is_constant or now in seen:
                return size, seen.get(now, now)
            seen[now] = size
        return None

    def settle(self) -> None:
        """Give numbers that met no type one of their own, and check all that had to wait."""
        self.wake()
        self.finish()
        for name, is_float in list(self.numbers.items()):
            if name not in self.types:
                self.types[name] = Number(DTYPES["f32" if is_float else "i64"])
        self.finish()
        clash = self.retry()
        if clash is not None:
            raise TermError(pretty(f"sizes {clash} differ"))
        for path, term, value, kind in self.written:
            self._check_number(path, term, value, self.known(kind))
        for path, fact in self.facts:
            if fails(self.resolve_size(fact.index), self.ranges):
                shown = self.resolve_size(fact.shown)
                ranges = ", ".join(
                    f"{n} in {low}..{high}" for n, (low, high) in self.ranges.items() if n in shown.names()
                )
                why = pretty(fact.why.format(shown)) + (f", {ranges}" if ranges else "")
                raise TermError(pretty(fact.what), where=place(self.root, path), why=why, hint=fact.hint)

    def typing(self, found: Type) -> Typing:
        """All that is known now; ``found`` is the type of the whole."""
        return Typing(
            self.resolve(found),
            {path: self.resolve(kind) for path, kind in self.at.items()},
            {name: self.resolve(kind) for name, kind in self.metas.items()},
            {name: self.resolve_size(variable(name)) for name in self.sizes if not name.startswith("?_")},
        )

    # -- one term

    def visit(self, term: Term, path: Path, env: Env, expected: Type | None) -> Type:
        """The type of ``term``; where one is ``expected``, that it has it."""
        found = self._type_seen(term, path, env) if self.seen is not None else None
        if found is None:
            found = self.at[path] = self._type(term, path, env, expected)
        if expected is not None:
            clash = self.equate(found, expected)
            if clash is not None:
                raise self._clash(path, found, expected, clash)
        if self.news:
            self.wake()
        return found

    def _type_seen(self, term: Term, path: Path, env: Env) -> Type | None:
        """The type of a term that was typed before, under names of the same types; it and its parts are noted."""
        assert self.seen is not None
        seen = self.seen(term)
        if seen is None or any(self.resolve(env[name]) != kind for name, kind in seen[0].items()):
            return None
        parts = seen[1]()
        self.at.update({(*path, *below): kind for below, kind in parts.items()})
        return parts[()]

    def _type(self, term: Term, path: Path, env: Env, expected: Type | None) -> Type:
        match term:
            case Var(name):
                return self._variable(name, path, env)
            case Literal(value):
                return self._number(term, path, value)
            case Meta(name):
                return self.metas.setdefault(name, self.fresh_type(name))
            case Let(name, value, body):
                bound = self.visit(value, (*path, 0), env, None)
                return self.visit(body, (*path, 1), {**env, name: bound}, expected)
            case Lambda(params, body):
                return self._function(params, body, path, env, expected)
            case Call(function, args):
                types = tuple(self.visit(arg, (*path, k + 1), env, None) for k, arg in enumerate(args))
                result = self.fresh_type("r")
                self.visit(function, (*path, 0), env, Function(types, result))
                return result
            case Scalar():
                return self._scalar(term, path, env, expected)
        return self._pattern(term, path, env, expected)

    def _variable(self, name: str, path: Path, env: Env) -> Type:
        if name in env:
            return env[name]
        close = difflib.get_close_matches(name, env, 1)
        hint = f"did you mean '{close[0]}'?" if close else f"known: {', '.join(sorted(env))}" if env else None
        raise TermError(f"unknown name '{name}'", where=place(self.root, path), hint=hint)

    def _number(self, term: Term, path: Path, value: int | float | bool | None) -> Type:
        if isinstance(value, bool):
            return BOOL
        kind = self.fresh_type("none" if value is None else "number")
        if value is None:
            self.nothing.add(kind.name)
        else:
            self.numbers[kind.name] = isinstance(value, float)
            self.written.append((path, term, value, kind))
        return kind

    def _function(self, params: tuple[str, ...], body: Term, path: Path, env: Env, expected: Type | None) -> Type:
        types = tuple(self.fresh_type(param) for param in params)
        result: Type = self.fresh_type("r")
        own = Function(types, result)
        if expected is not None:
            clash = self.equate(own, expected)
            if clash is not None:
                raise self._clash(path, own, expected, clash)
        found = self.visit(body, (*path, 0), {**env, **dict(zip(params, types, strict=True))}, None)
        clash = self.equate(found, result)
        if clash is not None:
            raise self._clash((*path, 0), found, result, clash)
        return own

    def _scalar(self, term: Scalar, path: Path, env: Env, expected: Type | None) -> Type:
        count = scalar_arity(term.function)
        if len(term.args) > count:
            raise self.misuse(path, term, f"{term.function} takes {count} terms, not {len(term.args)}")
        rest = tuple(self.fresh_type() for _ in range(count - len(term.args)))
        result = result_type(term.function) or self.fresh_type("r")
        own = Function(rest, result) if rest else result
        if rest and expected is not None:
            clash = self.equate(own, expected)
            if clash is not None:
                raise self._clash(path, own, expected, clash)
        args = tuple(self.visit(arg, (*path, k), env, None) for k, arg in enumerate(term.args))
        every = (*args, *rest)
        self.wait(path, term, lambda default: arithmetic(term.function, every, result, self, default), every)
        return own

    def _pattern(self, term: Pattern, path: Path, env: Env, expected: Type | None) -> Type:
        scheme = scheme_of(term.name)
        if scheme is None:
            return SPECIAL[term.name](self, term, path, env)
        params, result = self._instance(term, path, scheme)
        rest = params[len(term.args) :]
        own = Function(rest, result) if rest else result
        if rest and expected is not None:
            clash = self.equate(own, expected)
            if clash is not None:
                raise self._clash(path, own, expected, clash)
        for k in reversed(range(len(term.args))):
            self.visit(term.args[k], (*path, k), env, params[k])
        return own

    def _instance(
        self, term: Pattern, path: Path, scheme: tuple[tuple[Type, ...], Type]
    ) -> tuple[tuple[Type, ...], Type]:
        """A scheme with new unknowns, and the settings of ``term`` in it."""
        row = PATTERNS[term.name]
        if len(term.args) > len(row.terms):
            raise self.misuse(path, term, f"{term.name} takes {len(row.terms)} terms, not {len(term.args)}")
        if len(term.settings) != len(row.settings):
            raise self.misuse(path, term, f"{term.name} has {len(row.settings)} settings, not {len(term.settings)}")
        sizes = {
            f"?{row.name}": setting
            for row, setting in zip(row.settings, term.settings, strict=True)
            if isinstance(setting, Index)
        }
        wrong = too_small(term, sizes)
        if wrong is not None:
            raise self.misuse(path, term, wrong)
        types: dict[str, Type] = {}
        params = tuple(self._renewed(param, types, sizes) for param in scheme[0])
        result = self._renewed(scheme[1], types, sizes)
        self.facts += ((path, fact) for fact in setting_facts(term, sizes))
        return params, result

    def _renewed(self, kind: Type, types: dict[str, Type], sizes: dict[str, Index]) -> Type:
        """``kind`` with each unknown replaced, by what is in ``types`` and ``sizes`` or by a new one."""
        match kind:
            case Unknown(name):
                if name not in types:
                    types[name] = self.fresh_type(name)
                return types[name]
            case Array(size, element):
                return Array(self._renewed_size(size, sizes), self._renewed(element, types, sizes))
            case Function(params, result):
                new = tuple(self._renewed(param, types, sizes) for param in params)
                return Function(new, self._renewed(result, types, sizes))
        return kind

    def _renewed_size(self, size: Index, sizes: dict[str, Index]) -> Index:
        for name in unknown_sizes(size):
            if name not in sizes:
                sizes[name] = self.fresh_size(name[1:])
        return substitute(size, sizes)

    # -- messages

    def _check_number(self, path: Path, term: Term, value: int | float, kind: Type) -> None:
        if not isinstance(kind, Number) or kind.dtype.is_float:
            return
        own = kind.dtype
        if isinstance(value, float):
            raise self.misuse(path, term, f"{value} among {own}")
        if own.kind is Kind.BOOL or not own.low <= value <= own.high:
            raise self.misuse(path, term, f"{value} is no {own}")

    def _clash(self, path: Path, found: Type, expected: Type, clash: Clash) -> TermError:
        return explain("", (self.root, path), self.resolve(found), self.resolve(expected), clash)


@lru_cache(256)
def unknown_sizes(size: Index) -> tuple[str, ...]:
    """The unknown names in a size, also those in products and quotients."""
    inside = {part for name in size.names() for part in names_in(name)}
    return tuple(sorted(name for name in inside if "?" in name))


def _sizes_in(kind: Type) -> list[Index]:
    """The sizes in a type, also those in parameters and members."""
    match kind:
        case Array(size, element):
            return [size, *_sizes_in(element)]
        case Tuple(members):
            return [size for member in members for size in _sizes_in(member)]
        case Function(params, result):
            return [size for part in (*params, result) for size in _sizes_in(part)]
    return []
