"""Terms that bring an array into the order of loops, from its axes.

    arrange(x, [c], [p r], [q s]  over p q r s c)
      = map(\\v -> transpose(map(slide(3, 1), v)), slide(3, 1, map(transpose, transpose(x))))

First the axes are put in the order of their outer loops, then padded and sliced, then taken apart into windows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from dovetail.ir.functional.patterns import PATTERNS, missing
from dovetail.ir.functional.raise_axes import Axis
from dovetail.ir.functional.term import Lambda, Pattern, Places, Scalar, Term, Var, free_names

Axes = tuple[Axis, ...]
Order = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Names:
    """New names for variables."""

    taken: set[str]

    def new(self, like: str) -> str:
        name, number = like, 0
        while name in self.taken:
            name, number = f"{like}{number}", number + 1
        self.taken.add(name)
        return name


def arrange(term: Term, axes: Axes, order: Order, names: Names) -> Term:
    """``term``, whose dimensions are ``axes``, as an array over the loops ``order``."""
    if any(not a.loops for a in axes):
        term = _picked(term, axes, names)
        axes = tuple(a for a in axes if a.loops)
    place = {name: k for k, name in enumerate(order)}
    wanted = tuple(sorted(axes, key=lambda a: place[a.loops[0]]))
    outer = tuple(Axis(a.loops[:1]) for a in axes)
    term = _expanded(term, outer, tuple(a.loops[0] for a in wanted), names)
    return _expanded(_prepared(term, wanted, names), wanted, order, names)


def _picked(term: Term, axes: Axes, names: Names) -> Term:
    """The elements at the axes without a loop."""
    if all(a.loops for a in axes):
        return term
    count = next(k for k, a in enumerate((*axes, None)) if a is None or a.loops)
    if not count:
        return mapped(lambda v: _picked(v, axes[1:], names), term, names)
    place = Places((), tuple(a.at for a in axes[:count]))
    return _picked(Pattern("view", (place,), (term,)), axes[count:], names)


def _prepared(term: Term, axes: Axes, names: Names) -> Term:
    """Axes padded and sliced, inner ones first."""
    if not any(a.before for a in axes):
        return term
    term = mapped(lambda v: _prepared(v, axes[1:], names), term, names)
    for pattern in axes[0].before:
        term = _applied(pattern, term)
    return term


def _expanded(term: Term, axes: Axes, order: Order, names: Names) -> Term:
    """Axes taken apart and brought into order, the outermost first."""
    if tuple(a.loops for a in axes) == tuple((name,) for name in order):
        return term
    at = next(k for k, a in enumerate(axes) if a.loops[0] == order[0])
    term = _front(term, axes, at, names)
    chosen = axes[at]
    rest = (Axis(chosen.loops[1:]),) if len(chosen.loops) > 1 else ()
    left = (*axes[:at], *rest, *axes[at + 1 :])
    return mapped(lambda v: _expanded(v, left, order[1:], names), term, names)


def _front(term: Term, axes: Axes, at: int, names: Names) -> Term:
    """Axis number ``at``, taken apart, brought to the front."""
    if not at:
        return _apart(term, axes[0], names)
    return Pattern("transpose", (), (mapped(lambda v: _front(v, axes[1:], at - 1, names), term, names),))


def _apart(term: Term, axis: Axis, names: Names) -> Term:
    if axis.apart is None:
        return term
    term = _applied(axis.apart, term)
    inner = axis.inner
    return term if inner is None else mapped(lambda v: _applied(inner, v), term, names)


# -- functions


def mapped(build: Callable[[Term], Term], data: Term, names: Names) -> Term:
    """``map(f, data)`` for the function that ``build`` describes; ``data`` itself where it changes nothing."""
    name = names.new("v")
    body = build(Var(name))
    if body == Var(name):
        return data
    return Pattern("map", (), (function((name,), body), data))


def function(params: tuple[str, ...], body: Term) -> Term:
    """``\\params -> body``, or the pattern or primitive that only waits for the parameters."""
    count, given = len(params), tuple(map(Var, params))
    if isinstance(body, Pattern | Scalar) and not missing(body) and body.args[-count:] == given:
        several = isinstance(body, Pattern) and PATTERNS[body.name].several
        kept = body.args[:-count]
        if not several and not any(free_names(a).intersection(params) for a in kept):
            return replace(body, args=kept)
    return Lambda(params, body)


def _applied(pattern: Pattern, term: Term) -> Term:
    return replace(pattern, args=(*pattern.args, term))
