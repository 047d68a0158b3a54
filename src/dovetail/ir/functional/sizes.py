"""Arithmetic on sizes that are not all known: products and quotients of names, kept until they are.

A size is an ``Index``. A name with ``?`` in it is unknown. What an index cannot hold, a product of two names or a
quotient by one, is a name itself, spelled in normal form: ``?k * ?n``, ``(?m // ?n)``. ``substitute`` computes such
names again when more is known, and a product cancels against a quotient: ``?k * ?n // ?n`` is ``?k``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from dovetail.ir.cursor import Cursor
from dovetail.ir.index import Atom, Index, affine, constant, variable
from dovetail.ir.tokens import Source, Token, tokenize

TOKENS = re.compile(
    r"(?P<space>[ \t\r\n;]+|\#[^\n]*)"
    r"|(?P<number>\d+(?:(?:\.(?!\.)\d*)?(?:[eE][+-]?\d+)?))"
    r"|(?P<meta>\?[A-Za-z_][A-Za-z_0-9]*)"
    r"|(?P<name>[A-Za-z_][A-Za-z_0-9]*)"
    r"|(?P<text>\"[^\"\n]*\")"
    r"|(?P<symbol>->|\.\.|//|<<|>>|<=|>=|==|!=|\+=|\*=|[-+*/%<>=(),:\[\]&|^~.{}\\])"
)
"""Tokens of the functional language: those of programs, and ``?x \\ -> . {}`` and quoted names."""
Sizes = Mapping[str, Index]


def is_unknown(index: Index) -> bool:
    """Whether a name in it is unknown."""
    return bool(index.terms) and any("?" in name for name in index.names())


def is_solved(index: Index) -> bool:
    """Whether it is a size of a program: quasi-affine, nothing unknown."""
    return not any("?" in name or " " in name for name in index.names())


def product(a: Index, b: Index) -> Index:
    """``a * b``, multiplied out."""
    if a.is_constant or b.is_constant:
        return a * b.const if b.is_constant else b * a.const
    total = constant(a.const * b.const) + (a - a.const) * b.const + (b - b.const) * a.const
    pairs = ((monomial(factors_of(p) + factors_of(q)), c * d) for p, c in a.terms for q, d in b.terms)
    return total + affine(pairs)


def quotient(a: Index, b: Index) -> Index:
    """``a // b``, rounded down; exact where ``b`` is a factor of all of ``a``."""
    if b.is_constant and b.const > 0:
        return a // b.const
    exact = divided(a, b)
    return variable(f"({_inner(a)} // {_inner(b)})") if exact is None else exact


def remainder(a: Index, b: Index) -> Index:
    """``a % b``; nothing where ``b`` is a factor of all of ``a``."""
    if b.is_constant and b.const > 0:
        return a % b.const
    return variable(f"({_inner(a)} % {_inner(b)})") if divided(a, b) is None else constant(0)


def substitute(index: Index, values: Sizes) -> Index:
    """``index`` with names replaced, also inside products and quotients."""
    new: dict[str, Index] = {}
    for name in index.names():
        value = values.get(name) if " " not in name else _computed(name, values)
        if value is not None:
            new[name] = value
    return index.substitute(new) if new else index


def parse_size(text: str, values: Sizes | None = None) -> Index:
    """The size that ``text`` describes, with ``values`` for some of its names."""
    reader = SizeReader(Source(text, "size"))
    reader.values = values or {}
    return reader.whole_text(reader.size)


class SizeReader(Cursor):
    """Reads ``n``, ``?m // 4 + 1``, ``(?m - ?n) // ?s``; every name is a size."""

    def __init__(self, source: Source) -> None:
        super().__init__(source, tokenize(source, TOKENS))
        self.values: Sizes = {}

    def size(self) -> Index:
        total = self.size_term()
        while self.here.text in ("+", "-"):
            sign = self.take().text
            term = self.size_term()
            total = total + term if sign == "+" else total - term
        return total

    def size_term(self) -> Index:
        total = self.size_factor()
        while self.here.text in ("*", "//", "%"):
            sign = self.take()
            factor = self.size_factor()
            if factor.is_constant and factor.const <= 0 and sign.text != "*":
                raise self.refusal(f"a size takes {sign.text} of a positive number only", sign)
            total = {"*": product, "//": quotient, "%": remainder}[sign.text](total, factor)
        return total

    def size_factor(self) -> Index:
        if self.accept("-"):
            return -self.inside(self.size_factor)
        if self.accept("("):
            return self.inside(self.size, ")")
        token = self.take()
        if token.kind == "number":
            return constant(self.whole(token))
        return self.named_size(token)

    def named_size(self, token: Token) -> Index:
        if token.kind not in ("name", "meta"):
            raise self.error("expected a size", token)
        return self.values.get(token.text) or variable(token.text)


def _computed(name: str, values: Sizes) -> Index | None:
    """A product or quotient anew; None where nothing in it has a value."""
    inside = names_in(name)
    known = {n: values[n] for n in inside if n in values}
    return parse_size(name, known) if known else None


@lru_cache(4096)
def names_in(name: str) -> tuple[str, ...]:
    """The names that are multiplied or divided in one."""
    return tuple(sorted(set(re.findall(r"\??[A-Za-z_][A-Za-z_0-9]*", name))))


def divided(a: Index, b: Index) -> Index | None:
    """``a / b`` where it is whole: ``b`` is a number or one term, and a factor of every term of ``a``."""
    if a == b:
        return constant(1)
    if b.is_constant:
        whole = not a.const % b.const and not any(c % b.const for _, c in a.terms)
        return Index(tuple((atom, c // b.const) for atom, c in a.terms), a.const // b.const) if whole else None
    if len(b.terms) != 1 or b.const or a.const:
        return None
    ((atom, c),) = b.terms
    total = Index()
    for other, d in a.terms:
        factors = factors_of(other)
        for factor in factors_of(atom):
            if factor not in factors:
                return None
            factors.remove(factor)
        if d % c:
            return None
        total += affine(((monomial(factors), d // c),)) if factors else d // c
    return total


def factors_of(atom: Atom) -> list[str]:
    """The names that are multiplied in an atom; anything else is one factor, in parentheses."""
    text = str(atom)
    if not isinstance(atom, str):
        return [f"({text})"]
    found, depth = [""], 0
    for word in text.split(" "):
        if word == "*" and not depth:
            found.append("")
            continue
        depth += word.count("(") - word.count(")")
        found[-1] += f" {word}" if found[-1] else word
    return found


def monomial(factors: list[str]) -> str:
    return " * ".join(sorted(factors))


def _inner(index: Index) -> str:
    single = len(index.terms) == 1 and not index.const and index.terms[0][1] == 1
    return str(index) if index.is_constant or (single and " " not in str(index)) else f"({index})"
