"""Weights of which a memory holds only a part: what fits stays there during all steps, the rest passes in each of them.

tile t of 0.t, 1.t by 1:                   the first rows are held around all steps,
  tile i of 0.i by 4096: hold u for 0      the others in blocks, the next one on its way while this one is used
  tile i of 1.i by 256: hold u twice for 1
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from dovetail.schedule.placed.alignment import up
from dovetail.schedule.placed.estimate import Estimator
from dovetail.schedule.placed.space import Cut, Work, block_choices
from dovetail.schedule.placed.storage import Wanted

Chosen = Mapping[int, tuple[Work, Cut]]
"""What each statement is done by."""
PASSING = 32
"""One part in so many of what weights may take is for those that pass."""


@dataclass(frozen=True, slots=True)
class Shared:
    """Statements of which some hold their weights in blocks; ``part``: a statement and how much of one of its loops
    would still fit, if it was a statement by itself."""

    chosen: Chosen
    part: tuple[int, str, int] | None


def shared_room(chosen: Chosen, tensors: frozenset[str], room: int) -> Shared | None:
    """``chosen`` with as many of the weights ``tensors`` in ``room`` bytes as fit; None where not even blocks do."""
    found = dict(chosen)
    part: tuple[int, str, int] | None = None
    passing = max(room // PASSING, 2 * _smallest_block(chosen, tensors))
    left = room - passing
    for number, (work, cut) in chosen.items():
        estimator = Estimator(work, {})
        for wanted in estimator.wanted:
            if wanted.access.tensor not in tensors:
                continue
            whole = estimator.part(wanted, dict(cut.blocks))
            if whole is None:
                return None
            if whole.bytes <= left:
                left -= whole.bytes
                continue
            rows = _rows(work, wanted)
            if rows is None or left < 0:
                return None
            if part is None:
                part = _fitting(work, rows, left / whole.bytes)
                left = 0
            blocks = _in_blocks(estimator, wanted, cut, rows, passing)
            if blocks is None:
                return None
            found[number] = (work, blocks)
    return Shared(found, part)


def _smallest_block(chosen: Chosen, tensors: frozenset[str]) -> int:
    """Bytes of the largest of the smallest blocks of all these weights."""
    found = [0]
    for work, cut in chosen.values():
        estimator = Estimator(work, {})
        for wanted in (w for w in estimator.wanted if w.access.tensor in tensors):
            rows = _rows(work, wanted)
            blocks = dict(cut.blocks) | ({rows: block_choices(work, rows)[0]} if rows else {})
            part = estimator.part(wanted, blocks)
            found += [part.bytes] if part is not None else []
    return max(found)


def _rows(work: Work, wanted: Wanted) -> str | None:
    """The loop along which weights are cut: the longest of those that the result has, too."""
    several = [x for x in work.kept if x in wanted.access.names() and len(block_choices(work, x)) > 1]
    return max(several, key=lambda x: work.extents[x], default=None)


def _fitting(work: Work, loop: str, share: float) -> tuple[int, str, int] | None:
    """How much of a loop a share of its weights is, in whole calls; the rest is a multiple of two of them."""
    step, extent = block_choices(work, loop)[0], work.extents[loop]
    for several in (2 * step, step):
        rows = extent - up(extent - int(extent * share), several)
        if rows > 0 and extent % step == 0:
            return work.number, loop, rows
    return None


def _in_blocks(estimator: Estimator, wanted: Wanted, cut: Cut, loop: str, room: int) -> Cut | None:
    """The largest equal blocks of which two have room."""
    extent = estimator.work.extents[loop]
    for block in (b for b in reversed(block_choices(estimator.work, loop)) if extent % b == 0 and b < extent):
        blocks = {**dict(cut.blocks), loop: block}
        part = estimator.part(wanted, blocks)
        if part is not None and 2 * part.bytes <= room:
            order = (loop, *(x for x in cut.order if x != loop))
            return replace(cut, blocks=tuple(blocks.items()), order=order, twice=cut.twice | {wanted.access.tensor})
    return None
