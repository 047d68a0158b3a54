"""Rules that bring a computation to the sizes of an instruction: one for each of its loops.

    tile   map(\\r -> dot(r, ?x), ?w)  ->  join(map(\\w -> map(\\r -> dot(r, ?x), w), split(?n, ?w)))          along i
                                      ->  reduce(\\a b -> map(add, zip(a, b)), repeat(?i, 0),
                                                 map(\\w x -> map(\\r -> dot(r, x), w),
                                                     zip(transpose(map(split(?n), ?w)), split(?n, ?x))))      along k
    pad    map(?f, ?x)                ->  slice(0, ?i, 1, map(?f, pad(0, ?n - ?i, none, ?x)))                along i

They follow from the dimensions of operands and result alone: an operand that has the loop is split, or padded, in that
dimension; results are joined, partial sums are summed.
"""

from __future__ import annotations

from functools import lru_cache

from dovetail.ir.functional.term import Lambda, Meta, Pattern, Scalar, Term, substitute, walk
from dovetail.ir.index import Index, variable
from dovetail.rewrite.layouts import first, joined, lifted, mapped, moved, padded, repeated, split
from dovetail.rewrite.rule import Rule
from dovetail.rewrite.tables.hardware import Shape, size_name


@lru_cache(4096)
def tile_rule(shape: Shape, loop: str) -> Rule:
    """The computation in parts of ``?n`` along a loop."""
    size = size_name(loop)
    return Rule(
        name=f"tile-{'sum' if loop in shape.reduced else 'result'}",
        before=shape.pattern,
        after=_tiled(shape, loop),
        types=_types(shape),
        when=(f"?{size} % ?n == 0",),
        choose=(f"n: divisors(?{size})",),
        kind="reassociating" if loop in shape.reduced else "bit-exact",
        doc=f"In parts along {loop}.",
    )


@lru_cache(4096)
def pad_rule(shape: Shape, loop: str) -> Rule:
    """The computation with ``?n`` elements along a loop instead of fewer."""
    size = size_name(loop)
    return Rule(
        name=f"pad-{'sum' if loop in shape.reduced else 'result'}",
        before=shape.pattern,
        after=_padded(shape, loop),
        types=_types(shape),
        when=(f"?n > ?{size}",),
        choose=(f"n: between(?{size} + 1, 2 * ?{size})",),
        doc=f"Elements that are not there are added along {loop}.",
    )


@lru_cache(4096)
def widen_rule(shape: Shape, operand: str, given: str, wanted: str) -> Rule:
    """An operand converted before the computation, which would convert it anyway."""
    loops = dict(shape.operands)[operand]
    values: dict[str, Term] = {name: Meta(name) for name, _ in shape.operands}
    cast: Term = Scalar(wanted)
    for _ in loops[1:]:
        cast = Pattern("map", (), (cast,))
    values[operand] = Pattern("map", (), (cast, Meta(operand))) if loops else Scalar(wanted, (Meta(operand),))
    sizes = f"[{', '.join(f'?{size_name(x)}' for x in loops)}]" if loops else ""
    return Rule(
        "widen",
        before=shape.pattern,
        after=substitute(shape.body, values),
        types=(f"{operand}: {given}{sizes}",),
        doc=f"{given} becomes {wanted}, which holds all its values, before it is computed with.",
    )


def _tiled(shape: Shape, loop: str) -> Term:
    parts = [name for name, loops in shape.operands if loop in loops]
    others = {name: Meta(name) for name, loops in shape.operands if loop not in loops}
    inner = Lambda(tuple(parts), substitute(shape.body, others))
    data = mapped(inner, [_parts(Meta(name), dict(shape.operands)[name].index(loop)) for name in parts])
    if loop in shape.result:
        place = shape.result.index(loop)
        return joined(moved(data, 0, place), place)
    function, start = _reduction(shape.body)
    sizes = [variable(f"?{size_name(x)}") for x in shape.result]
    return Pattern("reduce", (), (lifted(function, len(sizes)), repeated(start, sizes), data))


def _parts(operand: Term, depth: int) -> Term:
    """Parts of ``?n`` along a dimension, outermost."""
    return moved(split(variable("?n"), operand, depth), depth, 0)


def _padded(shape: Shape, loop: str) -> Term:
    size = variable(f"?{size_name(loop)}")
    more: Index = variable("?n") - size
    values: dict[str, Term] = {}
    for name, loops in shape.operands:
        values[name] = padded(more, Meta(name), loops.index(loop)) if loop in loops else Meta(name)
    body = substitute(shape.body, values)
    return first(size, body, shape.result.index(loop)) if loop in shape.result else body


def _reduction(body: Term) -> tuple[Term, Term]:
    """The function that sums, and what it starts from."""
    found = next(part for part in walk(body) if isinstance(part, Pattern) and part.name == "reduce")
    return found.args[0], found.args[1]


def _types(shape: Shape) -> tuple[str, ...]:
    return tuple(
        f"{name}: ?t_{name}[{', '.join(f'?{size_name(x)}' for x in loops)}]" for name, loops in shape.operands if loops
    )
