"""The order and names of a statement's loops, and the order of commutative operands, from structure alone.

    for c<8, k<4, p<6: z[k, p] += x[p, c] * w[k, c]   ->   for d0<4, d1<6, d2<8: z[d0, d1] += w[d0, d2] * x[d1, d2]

Loops are coloured by where they occur; a colour is refined by the text of the statement with that loop marked, until
all differ or nothing changes. Loops that still tie are tried in turn (those that may be exchanged without changing
the text only once), and the smallest text wins. Tensors go by *labels*, so that the names of temporaries do not count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from dovetail.ir.expr import Apply, Bitcast, Cast, Expr, Literal, Position, Read, walk
from dovetail.ir.index import Access, Atom, Condition, Index, Quotient, variable
from dovetail.ir.primitives import PRIMITIVES
from dovetail.ir.program import Loop, Statement

Labels = Mapping[str, str]
"""Text that stands for a name: of tensors or of loops."""
Colours = dict[str, int]
MAX_TRIALS = 64
"""Tied loop orders tried for one statement; beyond it equal computations may keep different texts."""
_COMMUTATIVE = frozenset(p.name for p in PRIMITIVES.values() if p.commutative)


def name_loops(s: Statement, tensors: Labels, prefix: str) -> tuple[str, Statement]:
    """The statement with canonical loops ``prefix0``, ``prefix1`` ... and operands, and its text by labels."""
    leaves = list(islice(_colourings(s, _first_colours(s, tensors), tensors), MAX_TRIALS))
    return min((_named(s, colours, tensors, prefix) for colours in leaves), key=lambda found: found[0])


def sort_operands(s: Statement, tensors: Labels) -> tuple[str, Statement]:
    """Commutative operands and conditions in the order of their texts, and the text of the whole."""
    value_text, value = _sorted_value(s.value, {}, tensors)
    conditions = sorted((_sorted_condition(c, {}, tensors) for c in s.where), key=lambda found: found[0])
    where = tuple(c for _, c in conditions)
    head = "".join([f"{loop};" for loop in s.seq]) + ",".join([f"{loop}" for loop in s.loops])
    out = _access_text(s.out, {}, tensors)
    text = f"{head} where {[t for t, _ in conditions]}: {out} {s.combine.value} {value_text}"
    return text, Statement(s.loops, s.out, s.combine, value, where, s.seq, s.line)


# -- colours


def _first_colours(s: Statement, tensors: Labels) -> Colours:
    """Loops told apart by extent and by the places they occur in."""
    places: dict[str, list[str]] = {loop.name: [] for loop in s.loops}
    _note(places, s.out, f"={tensors.get(s.out.tensor, s.out.tensor)}")
    for node in walk(s.value):
        if isinstance(node, Read):
            _note(places, node.access, tensors.get(node.access.tensor, node.access.tensor))
    return _ranked({loop.name: (0, f"{loop.extent} {sorted(places[loop.name])}") for loop in s.loops})


def _note(places: dict[str, list[str]], access: Access, label: str) -> None:
    for dimension, index in enumerate(access.indices):
        for atom, c in index.terms:
            if isinstance(atom, str) and atom in places:
                places[atom].append(f"{label}.{dimension}.{c}")


def _ranked(keys: Mapping[str, tuple[int, str]]) -> Colours:
    ranks = {key: rank for rank, key in enumerate(sorted(set(keys.values())))}
    return {name: ranks[key] for name, key in keys.items()}


def _colourings(s: Statement, colours: Colours, tensors: Labels) -> Iterator[Colours]:
    """Colourings with all loops apart, one for each way to break the ties."""
    colours = _refined(s, colours, tensors)
    tied = _tied(colours)
    if not tied:
        yield colours
        return
    tried: list[str] = []
    for name in tied:
        if any(_interchangeable(s, name, other, tensors) for other in tried):
            continue
        tried.append(name)
        apart = {n: 2 * c + (n in tied and n != name) for n, c in colours.items()}
        yield from _colourings(s, apart, tensors)


def _refined(s: Statement, colours: Colours, tensors: Labels) -> Colours:
    while len(set(colours.values())) < len(colours):
        sizes = Counter(colours.values())
        labels = {n: f"#{c}" for n, c in colours.items()}
        new = _ranked(
            {n: (c, _marked_text(s, {**labels, n: "*"}, tensors) if sizes[c] > 1 else "") for n, c in colours.items()}
        )
        if len(set(new.values())) == len(sizes):
            return colours
        colours = new
    return colours


def _tied(colours: Colours) -> list[str]:
    """The loops of the first colour that several have."""
    sizes = Counter(colours.values())
    colour = min((c for c, count in sizes.items() if count > 1), default=None)
    return [n for n, c in colours.items() if c == colour]


def _interchangeable(s: Statement, a: str, b: str, tensors: Labels) -> bool:
    return _marked_text(s, {a: b, b: a}, tensors) == _marked_text(s, {}, tensors)


def _marked_text(s: Statement, loops: Labels, tensors: Labels) -> str:
    where = sorted(_sorted_condition(c, loops, tensors)[0] for c in s.where)
    return f"{_access_text(s.out, loops, tensors)}{where}{_sorted_value(s.value, loops, tensors)[0]}"


# -- names


def _named(s: Statement, colours: Colours, tensors: Labels, prefix: str) -> tuple[str, Statement]:
    """Loops numbered as they first occur: in the output, the value, the conditions."""
    labels = {n: f"#{c:03}" for n, c in colours.items()}
    value = _sorted_value(s.value, labels, tensors)[1]
    where = sorted(s.where, key=lambda c: _sorted_condition(c, labels, tensors)[0])
    order: dict[str, int] = {}
    for index in _in_order(s.out, value, where):
        for name in sorted(index.names() & colours.keys(), key=colours.__getitem__):
            order.setdefault(name, len(order))
    for name in sorted(colours, key=colours.__getitem__):
        order.setdefault(name, len(order))
    loops = tuple(
        Loop(f"{prefix}{order[loop.name]}", loop.extent) for loop in sorted(s.loops, key=lambda loop: order[loop.name])
    )
    return sort_operands(s.substitute({n: variable(f"{prefix}{k}") for n, k in order.items()}, loops), tensors)


def _in_order(out: Access, value: Expr, where: Iterable[Condition]) -> Iterator[Index]:
    yield from out.indices
    for node in walk(value):
        if isinstance(node, Read):
            yield from node.access.indices
        elif isinstance(node, Position):
            yield node.index
    for condition in where:
        yield condition.index


# -- texts under labels


def _sorted_value(e: Expr, loops: Labels, tensors: Labels) -> tuple[str, Expr]:
    """Text under labels, and ``e`` with commutative operands in the order of theirs."""
    if isinstance(e, Read):
        return _access_text(e.access, loops, tensors), e
    if isinstance(e, Apply):
        args = [_sorted_value(a, loops, tensors) for a in e.args]
        if e.function in _COMMUTATIVE:
            args.sort(key=lambda found: found[0])
        return f"{e.function}({','.join([t for t, _ in args])})", Apply(e.function, tuple(a for _, a in args))
    if isinstance(e, Position):
        return f"@{_index_text(e.index, loops, tensors)}", e
    if isinstance(e, Literal):
        return str(e), e
    text, arg = _sorted_value(e.arg, loops, tensors)
    kind = Bitcast if isinstance(e, Bitcast) else Cast
    return f"{kind.__name__}{e.dtype}({text})", kind(e.dtype, arg)


def _sorted_condition(c: Condition, loops: Labels, tensors: Labels) -> tuple[str, Condition]:
    """``a == b`` and ``b == a`` are one condition."""
    text = _index_text(c.index, loops, tensors)
    if not c.equal:
        return f"{text}>=0", c
    other = _index_text(-c.index, loops, tensors)
    return (f"{text}==0", c) if text <= other else (f"{other}==0", Condition(-c.index, equal=True))


def _access_text(access: Access, loops: Labels, tensors: Labels) -> str:
    label = tensors.get(access.tensor, access.tensor)
    return f"{label}[{','.join([_index_text(i, loops, tensors) for i in access.indices])}]"


def _index_text(index: Index, loops: Labels, tensors: Labels) -> str:
    parts = [f"{_atom_text(atom, loops, tensors)}*{c}" for atom, c in index.terms]
    if len(parts) > 1:
        parts.sort()
    return f"{'+'.join(parts)}+{index.const}"


def _atom_text(atom: Atom, loops: Labels, tensors: Labels) -> str:
    if isinstance(atom, str):
        return loops.get(atom, atom)
    if isinstance(atom, Access):
        return _access_text(atom, loops, tensors)
    return f"({_index_text(atom.index, loops, tensors)}){'/' if isinstance(atom, Quotient) else '%'}{atom.divisor}"
