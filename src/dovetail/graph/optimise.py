"""All passes over a graph, in their order, until they find nothing more."""

from __future__ import annotations

from collections.abc import Sequence

from dovetail.graph.batch_norm_folding import BatchNormFolding
from dovetail.graph.clean_up import CleanUp
from dovetail.graph.common_subexpressions import CommonSubexpressions
from dovetail.graph.constant_folding import ConstantFolding
from dovetail.graph.dead_code import DeadCode
from dovetail.graph.free_moves import FreeMoves
from dovetail.graph.layout import Layout
from dovetail.graph.record import Pass, Passed, Record
from dovetail.graph.reroll import ReRoll
from dovetail.graph.scan_tidy import ScanTidy
from dovetail.ir.graph.bound import BoundGraph
from dovetail.ir.graph.verify import Operators

FIRST: tuple[Pass, ...] = (DeadCode(), ReRoll())
"""Steps of an unrolled loop are most alike before anything has been made simpler."""
PASSES: tuple[Pass, ...] = (
    DeadCode(),
    ConstantFolding(),
    CleanUp(),
    BatchNormFolding(),
    CommonSubexpressions(),
    ScanTidy(),
)
FINISH: tuple[Pass, ...] = (Layout(), FreeMoves())
_MOST_ROUNDS = 4


def optimise(
    bound: BoundGraph,
    operators: Operators,
    passes: Sequence[Pass] = PASSES,
    finish: Sequence[Pass] = FINISH,
    *,
    patterns: Sequence[Pass] = (),
    first: Sequence[Pass] = FIRST,
) -> Passed:
    """A graph that computes the same from the same inputs, outputs of the same names, and what was done and not done.

    ``patterns`` are a user's own: they see the graph as the model states it. Then ``first``, once each. Rounds of all
    ``passes`` end when one changes nothing; what was not done is reported as the last round found it. Then ``finish``,
    once each: what they make is for ``regions``, and a round would undo it.
    """
    done: list[Record] = []
    for one in (*patterns, *first):
        bound, records = one(bound, operators)
        done.extend(records)
    for _ in range(_MOST_ROUNDS):
        left: list[Record] = []
        before = bound
        for one in passes:
            changed, records = one(bound, operators)
            (left if changed is bound else done).extend(records)
            bound = changed
        if bound is before:
            break
    for one in finish:
        bound, records = one(bound, operators)
        left.extend(records)
    return bound, tuple(dict.fromkeys((*done, *left)))
