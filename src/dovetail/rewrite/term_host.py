"""The matcher's view of terms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dovetail.ir.functional.patterns import missing
from dovetail.ir.functional.simplify import same, simplify
from dovetail.ir.functional.term import (
    Call,
    Lambda,
    Let,
    Term,
    Var,
    children,
    free_names,
    fresh,
    with_children,
)
from dovetail.rewrite.build import applied
from dovetail.rewrite.match import Binding, Opened
from dovetail.rewrite.shape import FUNCTION, LET, Value, label_of, settings_of


class TermHost:
    """Terms whose functions are written as short as can be (``simplify``); remembers what it found out about them."""

    def __init__(self) -> None:
        self._free: dict[int, tuple[Term, frozenset[str]]] = {}

    def label(self, node: Term) -> str:
        return label_of(node)

    def settings(self, node: Term) -> Mapping[str, Value]:
        return dict(settings_of(node))

    def operands(self, node: Term) -> tuple[Term, ...]:
        return node.args if isinstance(node, Call) and isinstance(node.function, Var) else children(node)

    def same(self, first: Term, second: Term) -> bool:
        return first is second or same(first, second)

    def variable(self, node: Term) -> str | None:
        match node:
            case Var(name) | Call(Var(name), _):
                return name
        return None

    def free(self, node: Term) -> frozenset[str]:
        known = self._free.get(id(node))
        if known is None:
            known = self._free[id(node)] = node, free_names(node)  # the term is kept: its id stays its own
        return known[1]

    def opened(self, node: Term, label: str, count: int, taken: frozenset[str]) -> Opened[Term] | None:
        if label == LET:
            return Opened((node.value,), (node.name,), node.body) if isinstance(node, Let) else None
        assert label == FUNCTION
        if isinstance(node, Lambda):
            return Opened((), node.params, node.body) if len(node.params) == count else None
        if missing(node) != count and not isinstance(node, Var):
            return None
        names: list[str] = []
        for _ in range(count):
            names.append(fresh("v", taken | self.free(node) | set(names)))
        return Opened((), tuple(names), applied(node, tuple(Var(name) for name in names)))

    def abstracted(self, names: tuple[str, ...], node: Term) -> Term:
        return simplify(Lambda(names, node))

    def splits(self, node: Term) -> Iterator[tuple[Term, Term]]:
        if isinstance(node, Lambda | Let):
            return
        parts = children(node)
        name = fresh("v", self.free(node))
        for k in reversed(range(len(parts))):
            if isinstance(parts[k], Lambda) or missing(parts[k]):
                continue  # a function is no value that could be computed before
            around = with_children(node, (*parts[:k], Var(name), *parts[k + 1 :]))
            yield simplify(Lambda((name,), around)), parts[k]

    def accepts(self, binding: Binding[Term]) -> bool:
        return True
