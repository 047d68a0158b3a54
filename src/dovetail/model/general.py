"""Code for many shapes: what a model was compiled for before, and the general parts that follow from it.

A program that is met for the first time is compiled as it is. When another one of the same form comes, in a graph of
the same operators, the two become one with run-time sizes (``ir.generalise``); its part serves both and all that
follow. Nothing is used that does not become the program at hand, number by number.

    shapes = Shapes()                               first graph: special parts; later ones: general parts
    compile_graph(bound, shapes=shapes)
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256

from dovetail.base.errors import DovetailError
from dovetail.ir.generalise import Form, differences, form_of, generalise, instance_of
from dovetail.ir.graph.bound import BoundGraph
from dovetail.ir.graph.graph import Graph
from dovetail.ir.index import variable
from dovetail.ir.parse import parse
from dovetail.ir.program import Loop, Program, Statement
from dovetail.model.packed import Packed
from dovetail.model.parts import Part, settled
from dovetail.runtime.cache import Cache
from dovetail.schedule.collapse import joined

MOST_FAMILIES = 16
MOST_FORMS = 2048
MOST_ALIKE = 8
"""Programs, and general parts, of one form that are at hand: the latest ones."""
MOST_REFUSED = 3
"""So often a general program of some form is looked for in vain."""
_KIND = "general"


@dataclass(frozen=True, slots=True)
class Flat:
    """A program of a graph as it is compared with others: few dimensions, loops named by their place."""

    program: Program
    form: Form


@dataclass(frozen=True, slots=True)
class General:
    """A program with run-time sizes, and its part, once there is one."""

    flat: Flat
    part: Part

    def at(self, wanted: Flat) -> Part | None:
        """The part for ``wanted``; None where that is no instance."""
        sizes = instance_of(self.flat.program, self.flat.form, wanted.program, wanted.form)
        return None if sizes is None else settled(self.part, sizes)


class Shapes:
    """What one function was compiled for. ``dynamic``: None: the first shape gets code of its own, those that follow
    share some; True: all share; False: each has its own."""

    def __init__(self, dynamic: bool | None = None) -> None:
        self.dynamic = dynamic
        self.packed = Packed()
        self.seen_before = False
        """Whether the function has run in another shape without being compiled here."""
        self._families: OrderedDict[str, Family] = OrderedDict()

    def family(self, graph: Graph) -> Family:
        """Graphs of the same operators in the same order are taken for one graph in several shapes."""
        key = sha256("\n".join(node.op for node in graph.nodes).encode()).hexdigest()
        found = self._families.get(key)
        if found is None:
            found = self._families[key] = Family(self.dynamic, self.seen_before)
            if len(self._families) > MOST_FAMILIES:
                self._families.popitem(last=False)
        self._families.move_to_end(key)
        return found


@dataclass(slots=True)
class Family:
    """Graphs that differ in their shapes."""

    dynamic: bool | None
    seen_before: bool = False
    graphs: int = 0
    """How many have been compiled."""
    unread: BoundGraph | None = None
    """The latest one that was found compiled, so that nobody has seen its programs."""
    _seen: dict[str, list[Flat]] = field(default_factory=dict)
    _known: dict[str, list[General]] = field(default_factory=dict)
    _refused: dict[str, int] = field(default_factory=dict)

    @property
    def shares(self) -> bool:
        """Whether the next graph may have general parts."""
        return self.dynamic is True or (self.dynamic is None and (self.seen_before or self.graphs > 0))

    def look(self, programs: Iterable[Program]) -> None:
        """Programs of a graph in another shape: what comes later is compared with them."""
        for flat in map(flat_of, programs):
            if flat.form.text in self._seen or len(self._seen) < MOST_FORMS:
                alike = self._seen.setdefault(flat.form.text, [])
                if flat not in alike:
                    alike.append(flat)
                    del alike[:-MOST_ALIKE]

    def part(self, wanted: Flat) -> Part | None:
        """The general part at hand that serves ``wanted`` with the fewest sizes."""
        found = [part for one in self._known.get(wanted.form.text, ()) if (part := one.at(wanted)) is not None]
        return min(found, key=lambda part: len(part.sizes), default=None)

    def general(self, wanted: Flat) -> Program | None:
        """A general program of ``wanted`` and of what was seen that differs least from it."""
        text = wanted.form.text
        alike = self._seen.get(text, ())
        if not alike or self._refused.get(text, 0) >= MOST_REFUSED:
            return None
        nearest = min(reversed(alike), key=lambda flat: differences(flat.form, wanted.form))
        if nearest == wanted:
            return None
        found = generalise(nearest.program, wanted.program)
        if found is None:
            self.refuse(wanted)
        return found

    def keep(self, general: Program, part: Part) -> None:
        one = General(Flat(general, form_of(general)), part)
        known = self._known.setdefault(one.flat.form.text, [])
        known.append(one)
        del known[:-MOST_ALIKE]

    def refuse(self, wanted: Flat) -> None:
        """There is no general program of this form, or none that can be compiled."""
        self._refused[wanted.form.text] = self._refused.get(wanted.form.text, 0) + 1


def flat_of(program: Program) -> Flat:
    """Dimensions joined that are walked together, loops named by their place.

    Loops of one iteration stay: with a batch of one, programs are of the same form as with a batch of two.
    """
    plain = joined(program)
    taken = {t.name for t in plain.tensors} | {loop.name for s in plain.statements for loop in s.seq}
    prefix = "d"
    while any(name.startswith(prefix) and name[len(prefix) :].isdigit() for name in taken):
        prefix += "_"
    named = replace(plain, statements=tuple(_named(s, prefix) for s in plain.statements))
    return Flat(named, form_of(named))


def _named(statement: Statement, prefix: str) -> Statement:
    loops = tuple(Loop(f"{prefix}{number}", loop.extent) for number, loop in enumerate(statement.loops))
    names = {old.name: variable(new.name) for old, new in zip(statement.loops, loops, strict=True)}
    return statement.substitute(names, loops)


# -- on disk: general programs by form, so that another process need not see two shapes to know of them


def kept_generals(store: Cache | None, key: Mapping[str, str], form: Form) -> tuple[Program, ...]:
    """General programs of a form that have been compiled for what ``key`` says, in any process."""
    data = None if store is None else store.get(_KIND, _form_key(key, form))
    try:
        texts = [] if data is None else json.loads(data)
        return tuple(parse(text) for text in texts)
    except (ValueError, TypeError, DovetailError):
        return ()


def keep_general(store: Cache | None, key: Mapping[str, str], general: Program) -> None:
    form = form_of(general)
    if store is not None:
        texts = [str(one) for one in kept_generals(store, key, form)]
        if str(general) not in texts:
            store.put(_KIND, _form_key(key, form), json.dumps([*texts, str(general)][-MOST_ALIKE:]).encode())


def _form_key(key: Mapping[str, str], form: Form) -> dict[str, str]:
    return {**key, "form": sha256(form.text.encode()).hexdigest()}
