"""The order of statements and of temporaries, from what they compute and not from what they are called.

A temporary goes by a *label*: a hash of its declaration and of the texts of the statements that write it, in which
other temporaries go by their labels. Where two labels are equal, the statements that read them are counted in too.
Statements are put in the smallest order of texts that keeps every read on its side of every write.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from dovetail.ir.loop_forms import Group
from dovetail.ir.loop_order import name_loops
from dovetail.ir.program import Combine, Statement

Texts = tuple[str, ...]
Named = tuple[str, Statement]


@dataclass(frozen=True, slots=True)
class Arranged:
    """Groups in order, temporaries in the order they are written, and whether any two were hard to tell apart."""

    groups: tuple[Group, ...]
    temps: tuple[str, ...]
    tied: bool


def arrange(groups: Sequence[Group], temps: Mapping[str, str], prefix: str) -> Arranged:
    """``groups`` with canonical loops and in canonical order; ``temps`` says how each temporary is declared."""
    labels, named = _label(groups, temps, prefix)
    used = {s.out.tensor for group in groups for s in group} | {a.tensor for g in groups for s in g for a in s.reads()}
    labels = {name: label for name, label in labels.items() if name in used}
    tied = len(set(labels.values())) < len(labels)
    if tied:
        labels = _label_by_readers(groups, labels, prefix)
        named = [[name_loops(s, labels, prefix) for s in group] for group in groups]
    ordered, written = _order(groups, named, labels, prefix)
    unwritten = sorted(labels.keys() - written, key=labels.__getitem__)
    return Arranged(tuple(ordered), (*written, *unwritten), tied)


def _order(
    groups: Sequence[Group], named: Sequence[Sequence[Named]], labels: Mapping[str, str], prefix: str
) -> tuple[list[Group], list[str]]:
    """Groups and the statements in them in order, and the temporaries as they are first written.

    Statements with equal texts are told apart by what they read of temporaries that already have their place.
    """
    placed = dict(labels)
    written: list[str] = []

    def ties(candidates: Sequence[Group]) -> Callable[[int], Texts]:
        return lambda number: tuple(name_loops(s, placed, prefix)[0] for s in candidates[number])

    ordered: list[Group] = []
    texts = [tuple(sorted(text for text, _ in group)) for group in named]
    for number in _in_order(texts, _depends(groups), ties(groups)):
        inside: list[Statement] = []
        singles = [(s,) for s in groups[number]]
        for place in _in_order([(text,) for text, _ in named[number]], _depends(singles), ties(singles)):
            _, statement = named[number][place]
            inside.append(statement)
            name = statement.out.tensor
            if name in labels and name not in written:
                written.append(name)
                placed[name] = f"~{len(written)}"
        ordered.append(tuple(inside))
    return ordered, written


# -- labels


def _label(groups: Sequence[Group], temps: Mapping[str, str], prefix: str) -> tuple[dict[str, str], list[list[Named]]]:
    """What each temporary holds at the end, and all statements with canonical loops and their texts."""
    labels = dict(temps)
    history: dict[str, list[str]] = {name: [] for name in temps}
    named: list[list[Named]] = []
    for group in groups:
        own = {s.out.tensor for s in group if s.out.tensor in temps}
        labels.update({name: temps[name] for name in own})
        distinct = 0
        while True:
            found = [name_loops(s, labels, prefix) for s in group]
            written: dict[str, list[str]] = {name: [] for name in own}
            for (text, _), s in zip(found, group, strict=True):
                if s.out.tensor in own:
                    written[s.out.tensor].append(text)
            labels.update({name: _hash(temps[name], history[name] + texts) for name, texts in written.items()})
            before, distinct = distinct, len({labels[name] for name in own})
            if distinct in (before, len(own)):
                break
        for name, texts in written.items():
            history[name] += texts
        named.append(found)
    return labels, named


def _label_by_readers(groups: Sequence[Group], labels: dict[str, str], prefix: str) -> dict[str, str]:
    """Labels told apart further by the statements that read them, as far as that goes."""
    statements = [s for group in groups for s in group]
    while True:
        texts: dict[str, list[str]] = {name: [] for name in labels}
        for s in statements:
            for name in {a.tensor for a in s.reads()} & labels.keys():
                texts[name].append(name_loops(s, {**labels, name: "~"}, prefix)[0])
        new = {name: _hash(label, texts[name]) for name, label in labels.items()}
        if len(set(new.values())) == len(set(labels.values())):
            return labels
        labels = new


def _hash(label: str, texts: Sequence[str]) -> str:
    return "~" + blake2b("\n".join((label, *sorted(texts))).encode(), digest_size=12).hexdigest()


# -- order


def _depends(groups: Sequence[Group]) -> list[set[int]]:
    """For each group the earlier ones it must follow.

    A read stays on its side of a write of the same tensor. Two writes may change places when they combine alike,
    since each element is written once or by one ``op=``.
    """
    readers: dict[str, list[int]] = {}
    writers: dict[str, list[tuple[int, Combine]]] = {}
    found: list[set[int]] = []
    for number, group in enumerate(groups):
        before: set[int] = set()
        for s in group:
            before.update(n for a in s.reads() for n, _ in writers.get(a.tensor, ()))
            before.update(readers.get(s.out.tensor, ()))
            before.update(n for n, combine in writers.get(s.out.tensor, ()) if combine is not s.combine)
        for s in group:
            writers.setdefault(s.out.tensor, []).append((number, s.combine))
            for a in s.reads():
                readers.setdefault(a.tensor, []).append(number)
        before.discard(number)
        found.append(before)
    return found


def _in_order(keys: Sequence[Texts], depends: Sequence[set[int]], tie: Callable[[int], Texts]) -> Iterator[int]:
    """Numbers, dependences first, smallest key first; ``tie`` decides among equal keys when it comes to that."""
    followers: list[list[int]] = [[] for _ in keys]
    open_ = [len(before) for before in depends]
    for number, before in enumerate(depends):
        for n in before:
            followers[n].append(number)
    ready = sorted((keys[n], n) for n in range(len(keys)) if not open_[n])
    while ready:
        equal = [n for key, n in ready if key == ready[0][0]]
        chosen = equal[0] if len(equal) == 1 else min(equal, key=tie)
        ready.remove((keys[chosen], chosen))
        yield chosen
        for n in followers[chosen]:
            open_[n] -= 1
            if not open_[n]:
                insort(ready, (keys[n], n))
