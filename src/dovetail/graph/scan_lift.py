"""One node of a body at all steps at once: the same operator, with the steps as a first axis of what it reads.

    at each step  m = matmul(x, w)       with x: f32[2, 6] of f32[100, 2, 6]
    at all steps  r = reshape(x) {shape = (200, 6)}      m = matmul(r, w)      y = reshape(m) {shape = (100, 2, 16)}

An operator that has no rule here stays in the body.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from dovetail.base.errors import OperatorError
from dovetail.graph.clean_rule import numbers
from dovetail.graph.reroll_cut import viewed
from dovetail.graph.roles import Work, works
from dovetail.graph.sheet import Sheet
from dovetail.ir.graph.graph import Attribute, Graph, Node, Type, Value
from dovetail.ir.graph.operator import find
from dovetail.ir.index import constant
from dovetail.ops.pointwise import BINARY, COMPARE

Settings = Mapping[str, Attribute | None]


@dataclass(frozen=True, slots=True)
class Outer:
    """What a value of the body is outside: with the steps as its first axis, or without."""

    name: str
    stepped: bool


def lifted(
    sheet: Sheet, node: Node, operands: Sequence[Outer], types: Mapping[str, Type], steps: int
) -> tuple[str, ...] | None:
    """What takes the place of the results of ``node`` outside, the steps first; None where nothing does."""
    rule = RULES.get(node.op, _pointwise if _is_unary(sheet, node, types) else None)
    if rule is None or not all(extent.is_constant for name in node.results for extent in types[name].shape):
        return None
    one = _One(
        sheet, node, tuple(operands), tuple(types[name] for name in node.operands), types[node.results[0]], steps
    )
    try:
        made = rule(one)
    except OperatorError:
        return None
    values = (made,) if isinstance(made, str) else made
    if values is None or len(values) != len(node.results):
        return None
    wanted = [Type(types[name].dtype, (constant(steps), *types[name].shape)) for name in node.results]
    return values if [sheet.types[value] for value in values] == wanted else None


def _is_unary(sheet: Sheet, node: Node, types: Mapping[str, Type]) -> bool:
    """Whether each element is made of one element of the only operand."""
    if len(node.operands) != 1 or len(node.results) != 1:
        return False
    given = Value(node.operands[0], types[node.operands[0]])
    return (
        works(Graph("one", (given,), node.results, (node,)), sheet.operators, types)[node.results[0]] is Work.POINTWISE
    )


@dataclass(frozen=True, slots=True)
class _One:
    """A node, and what it reads."""

    sheet: Sheet
    node: Node
    operands: tuple[Outer, ...]
    types: tuple[Type, ...]
    result: Type
    steps: int

    @property
    def settings(self) -> Settings:
        return find(self.node, self.sheet.operators).settings(self.node)

    @property
    def attributes(self) -> dict[str, Attribute]:
        return dict(self.node.attributes)

    def shape(self, place: int) -> tuple[int, ...]:
        return tuple(extent.const for extent in self.types[place].shape)

    def of_rank(self, place: int, rank: int) -> str:
        """An operand with ``rank`` axes behind the steps, where it has steps; others broadcast as they are."""
        operand, shape = self.operands[place], self.shape(place)
        if not operand.stepped:
            return operand.name
        return viewed(self.sheet, operand.name, (self.steps, *(1,) * (rank - len(shape)), *shape))

    def stepped(self, place: int) -> str:
        """An operand with steps; one that has none is repeated."""
        operand, shape = self.operands[place], self.shape(place)
        if operand.stepped:
            return operand.name
        row = viewed(self.sheet, operand.name, (1, *shape))
        return self.sheet.add("expand", row, shape=(self.steps, *shape))


Rule = Callable[[_One], str | tuple[str, ...] | None]


def _pointwise(one: _One) -> str:
    if (flat := _flat(one)) is not None:
        made = one.sheet.add(one.node.op, *flat, **one.attributes)
        return viewed(one.sheet, made, (one.steps, *(extent.const for extent in one.result.shape)))
    operands = [one.of_rank(place, one.result.rank) for place in range(len(one.operands))]
    return one.sheet.add(one.node.op, *operands, **one.attributes)


def _flat(one: _One) -> list[str] | None:
    """Operands of which one is a product's rows of all steps, and the others the same for each row."""
    found: list[str] = []
    for place, operand in enumerate(one.operands):
        if not operand.stepped:
            if one.types[place].rank > 1:
                return None
            found.append(operand.name)
            continue
        made = one.sheet.made_by(operand.name, "reshape")
        source = None if made is None else one.sheet.types[made.operands[0]]
        if made is None or source is None or source.rank != 2 or source.shape[-1:] != one.result.shape[-1:]:
            return None
        found.append(made.operands[0])
    shapes = {one.sheet.types[n].shape for n, o in zip(found, one.operands, strict=True) if o.stepped}
    return found if len(shapes) == 1 else None


def _matmul(one: _One) -> str | None:
    left, right = one.operands
    given = one.settings
    if left.stepped and not right.stepped and len(one.types[1].shape) == 2 and not given["transpose_a"]:
        return _rows(one, right.name)
    if min(len(t.shape) for t in one.types) < 2:
        return None
    rank = max(len(t.shape) for t in one.types)
    return one.sheet.add(one.node.op, one.of_rank(0, rank), one.of_rank(1, rank), **one.attributes)


def _dense(one: _One) -> str | None:
    if any(operand.stepped for operand in one.operands[1:]):
        return None
    return _rows(one, *(operand.name for operand in one.operands[1:]))


def _rows(one: _One, *others: str) -> str:
    """All rows of all steps under each other."""
    *rows, inner = (one.steps, *one.shape(0))
    count = 1
    for extent in rows:
        count *= extent
    flat = viewed(one.sheet, one.operands[0].name, (count, inner))
    made = one.sheet.add(one.node.op, flat, *others, **one.attributes)
    return viewed(one.sheet, made, (one.steps, *(extent.const for extent in one.result.shape)))


def _reshaped(one: _One) -> str:
    return viewed(one.sheet, one.operands[0].name, (one.steps, *(extent.const for extent in one.result.shape)))


def _transpose(one: _One) -> str:
    rank = len(one.types[0].shape)
    perm = numbers(one.settings["perm"]) or tuple(reversed(range(rank)))
    return one.sheet.add("transpose", one.operands[0].name, perm=(0, *(axis + 1 for axis in perm)))


def _slice(one: _One) -> str:
    given = one.attributes
    axes = numbers(one.settings["axes"]) or tuple(range(len(numbers(given["starts"]))))
    given["axes"] = tuple(axis % one.types[0].rank + 1 for axis in axes)
    return one.sheet.add("slice", one.operands[0].name, **given)


def _expand(one: _One) -> str:
    shape = tuple(extent.const for extent in one.result.shape)
    return one.sheet.add("expand", one.of_rank(0, len(shape)), shape=(one.steps, *shape))


def _concat(one: _One) -> str | None:
    axis = one.settings["axis"]
    if not isinstance(axis, int):
        return None
    parts = [one.stepped(place) for place in range(len(one.operands))]
    return one.sheet.add("concat", *parts, axis=axis % one.result.rank + 1)


def _along(one: _One) -> str | None:
    """An operator on one axis, or on all from it on, whose other operands have no steps."""
    if any(operand.stepped for operand in one.operands[1:]):
        return None
    axis = one.settings["axis"]
    if not isinstance(axis, int):
        return None
    others = (operand.name for operand in one.operands[1:])
    moved = axis % one.types[0].rank + 1
    return one.sheet.add(one.node.op, one.operands[0].name, *others, **{**one.attributes, "axis": moved})


def _reduced(one: _One) -> str:
    rank = one.types[0].rank
    axes = numbers(one.settings["axes"]) if one.settings["axes"] is not None else tuple(range(rank))
    moved = tuple(axis % rank + 1 for axis in axes)
    return one.sheet.add(one.node.op, one.operands[0].name, **{**one.attributes, "axes": moved})


def _looked_up(one: _One) -> str | None:
    """Rows of one table."""
    table, rows = one.operands
    if table.stepped or (one.node.op == "gather" and one.settings["axis"] != 0):
        return None
    return one.sheet.add(one.node.op, table.name, rows.name, **one.attributes)


_BROADCAST = (*BINARY, *COMPARE, "div", "select", "mod", "fmod", "floor_div", "power", "atan2")
"""Pointwise operators of several operands, whose shapes meet at their last axes."""
_REDUCTIONS = ("reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "reduce_l1", "reduce_l2", "reduce_mean")
RULES: Mapping[str, Rule] = {
    **dict.fromkeys(_BROADCAST, _pointwise),
    **dict.fromkeys(("reshape", "flatten", "squeeze", "unsqueeze"), _reshaped),
    **dict.fromkeys(("softmax", "log_softmax", "layer_norm", "rms_norm"), _along),
    **dict.fromkeys(_REDUCTIONS, _reduced),
    **dict.fromkeys(("gather", "embedding"), _looked_up),
    "identity": _reshaped,
    "matmul": _matmul,
    "dense": _dense,
    "transpose": _transpose,
    "slice": _slice,
    "expand": _expand,
    "concat": _concat,
}
