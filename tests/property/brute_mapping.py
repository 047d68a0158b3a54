"""Instruction mapping by brute force, from the definition: try everything, evaluate every point.

Nothing here comes from ``dovetail.mapping``. Operands are found by trying every subexpression in every place and
comparing texts; loops by trying every way to give statement loops to instruction loops; what a binding may do is
decided by visiting all points. Restricted to what ``random_pairs`` makes: affine indices, fixed extents, one type of
arithmetic in a statement, no casts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise, product
from math import inf, isnan, nan, prod

from dovetail.ir.expr import Apply, Expr, Literal, Read, children, names, walk
from dovetail.ir.index import Access
from dovetail.ir.program import Combine, Program, Statement

Point = dict[str, int]
Found = tuple[int, tuple[int, ...] | None, tuple[tuple[str, tuple[str, ...]], ...], tuple[str, ...], frozenset[str]]
"""Statement, node, loops, operands, and "kind operand" of each adapter."""

_COMMUTE = {"add", "mul", "max", "min"}
_ENDS = {"f32": (0, 1, inf, -inf), "i32": (0, 1, -(2**31), 2**31 - 1), "i8": (0, 1, -128, 127)}


@dataclass(frozen=True)
class Place:
    """``expr`` is to be computed by ``pattern``; ``result`` is what the whole statement writes, if it is covered."""

    mode: str
    node: tuple[int, ...] | None
    expr: Expr
    pattern: Expr
    result: Access | None


def brute_fits(program: Program, instruction: Program, depth: int) -> set[Found]:
    """All fits of ``instruction`` in ``program`` that use at most ``depth`` fusings, temporaries and identities."""
    found: set[Found] = set()
    for number, statement in enumerate(program.statements):
        for place in _places(statement, instruction):
            for operands in _operands(place, program, statement, instruction):
                found |= set(_bindings(number, place, operands, program, statement, instruction, depth))
    return found


# -- places and operands


def _places(statement: Statement, instruction: Program) -> Iterator[Place]:
    needle = instruction.statements[0]
    value = needle.value
    operates = bool(children(value))
    whole_set = statement.combine is Combine.SET
    nodes = [(path, node) for path, node in _nodes(statement.value, ()) if children(node)]
    inner = [(path, node) for path, node in nodes if not (whole_set and path == ())]
    if needle.combine is Combine.SET:
        if whole_set and (operates or type(value) is type(statement.value)):
            yield Place("set", None, statement.value, value, statement.out)
        if operates:
            if statement.combine.function:
                step = Apply(statement.combine.function, (Read(statement.out), statement.value))
                yield Place("self", None, step, value, statement.out)
            for path, node in inner:
                yield Place("node", path, node, value, None)
        return
    if needle.combine is statement.combine:
        yield Place("reduce", None, statement.value, value, statement.out)
    assert needle.combine.function is not None
    chain = Apply(needle.combine.function, (Read(needle.out), value))
    if whole_set and children(statement.value):
        yield Place("chain", None, statement.value, chain, statement.out)
        if operates:
            yield Place("once", None, statement.value, value, statement.out)
    for path, node in inner:
        yield Place("chain", path, node, chain, None)
        if operates and whole_set:
            yield Place("once", path, node, value, None)


def _operands(place: Place, program: Program, statement: Statement, instruction: Program) -> Iterator[dict[str, Expr]]:
    """Every choice of subexpressions for operands that turns the pattern into the expression."""
    kind = _type(statement, program)
    if kind != _type(instruction.statements[0], instruction):
        return
    out = instruction.dtypes[instruction.statements[0].out.tensor].name
    there = program.dtypes[statement.out.tensor].name
    allowed = {"reduce": {there}, "self": {there}, "set": {there, kind}}.get(
        place.mode, {kind} if place.result is None else {there, kind}
    )
    if out not in allowed:
        return
    tensors = list(dict.fromkeys(node.access.tensor for node in walk(place.pattern) if isinstance(node, Read)))
    texts = {value: _text(value, {}) for value in walk(place.expr)}
    want = texts[place.expr]
    choices = [[v for v in texts if _carries(instruction.dtypes[t].name, v, program, kind)] for t in tensors]
    for chosen in product(*choices):
        if place.mode == "self" and Read(statement.out) not in chosen:
            continue
        if _text(place.pattern, {t: texts[v] for t, v in zip(tensors, chosen, strict=True)}) == want:
            yield dict(zip(tensors, chosen, strict=True))


def _carries(operand: str, value: Expr, program: Program, kind: str) -> bool:
    if isinstance(value, Literal):
        return operand == kind or abs(value.value) < 100
    have = program.dtypes[value.access.tensor].name if isinstance(value, Read) else kind
    return have == operand or (have, operand) in {("i8", "i32"), ("i8", "f32")}


def _type(statement: Statement, program: Program) -> str:
    kinds = {program.dtypes[a.tensor].name for a in (statement.out, *statement.reads())}
    return "f32" if "f32" in kinds else "i32" if "i32" in kinds else "i8"


def _nodes(e: Expr, path: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], Expr]]:
    yield path, e
    for number, child in enumerate(children(e)):
        yield from _nodes(child, (*path, number))


def _text(e: Expr, bound: dict[str, str]) -> str:
    """``e`` with operands replaced, spelled so that the order of commutative arguments does not matter."""
    if isinstance(e, Read) and e.access.tensor in bound:
        return bound[e.access.tensor]
    if isinstance(e, Apply):
        args = [_text(arg, bound) for arg in e.args]
        return f"{e.function}({', '.join(sorted(args) if e.function in _COMMUTE else args)})"
    return repr(float(e.value)) if isinstance(e, Literal) else str(e)


# -- loops


def _bindings(
    number: int,
    place: Place,
    operands: dict[str, Expr],
    program: Program,
    statement: Statement,
    instruction: Program,
    depth: int,
) -> Iterator[Found]:
    needle = instruction.statements[0]
    most = {loop.name: loop.extent.const for loop in needle.loops}
    loops = [loop.name for loop in statement.loops if loop.extent.const > 1]
    cost = sum(not isinstance(v, Read | Literal) for v in operands.values()) + (place.mode == "once")
    choices: list[str | None] = [None, *(name for name, extent in most.items() if extent > 1)]
    for given in product(choices, repeat=len(loops)):
        groups = {name: tuple(h for h, n in zip(loops, given, strict=True) if n == name) for name in most}
        fusings = sum(max(0, len(group) - 1) for group in groups.values())
        if cost + fusings > depth:
            continue
        trial = Trial(place, operands, program, statement, instruction, groups, most)
        if not trial.is_sound():
            continue
        adapters = trial.adapters()
        if adapters is not None:
            bound = tuple((loop.name, groups[loop.name]) for loop in needle.loops)
            yield number, place.node, bound, trial.operand_texts(), frozenset(adapters)


@dataclass(frozen=True)
class Trial:
    """One choice of operands and loops, decided by visiting points."""

    place: Place
    operands: dict[str, Expr]
    program: Program
    statement: Statement
    instruction: Program
    groups: dict[str, tuple[str, ...]]
    most: dict[str, int]

    @property
    def needle(self) -> Statement:
        return self.instruction.statements[0]

    @property
    def reduced(self) -> set[str]:
        return {loop.name for loop in self.needle.loops} - self.needle.out.names()

    def extents(self) -> Point:
        return {loop.name: loop.extent.const for loop in self.statement.loops}

    def points(self) -> Iterator[Point]:
        extents = self.extents()
        for values in product(*(range(extent) for extent in extents.values())):
            yield dict(zip(extents, values, strict=True))

    def slot(self, operand: str) -> Access:
        """Where the instruction reads (or starts) ``operand``."""
        found = (a for a in self.needle.reads() if a.tensor == operand)
        return next(found, self.needle.out)

    def operand_texts(self) -> tuple[str, ...]:
        out = self.needle.out.tensor
        texts = [] if self.place.result is None else [f"{out} = {self.place.result}"]
        if self.place.mode == "once":
            texts.append(f"{out} = {_neutral(self.needle.combine, self.instruction, self.needle)}")
        return tuple(sorted([*texts, *(f"{name} = {value}" for name, value in self.operands.items())]))

    # soundness

    def is_sound(self) -> bool:
        return self.loops_are_allowed() and self.elements_agree()

    def loops_are_allowed(self) -> bool:
        """Operands do not change along loops they have no index for; sums only run over sums."""
        for name, group in self.groups.items():
            for loop in group:
                for operand, value in self.operands.items():
                    if name not in self.slot(operand).names() and self.changes(value, loop):
                        return False
                if name in self.reduced:
                    if self.place.mode != "reduce" or self.changes(self.statement.out, loop):
                        return False
                elif self.place.result is not None and not self.changes(self.place.result, loop):
                    return False
        return True

    def changes(self, value: Expr | Access, loop: str) -> bool:
        inside = [value] if isinstance(value, Access) else _accesses(value)
        return any(_changes(access, loop, tuple(self.extents().items())) for access in inside)

    def elements_agree(self) -> bool:
        calls: dict[tuple[int, ...], list[tuple[Point, Point]]] = {}
        bound = {h for group in self.groups.values() for h in group}
        for point in self.points():
            tiles, within = [], {}
            for name, group in self.groups.items():
                flat = 0
                for h in group:
                    flat = flat * self.extents()[h] + point[h]
                tiles.append(flat // self.most[name])
                within[name] = flat % self.most[name]
            outside = [v for h, v in point.items() if h not in bound]
            calls.setdefault((*tiles, *outside), []).append((point, within))
        return all(self.call_agrees(call) for call in calls.values())

    def call_agrees(self, call: list[tuple[Point, Point]]) -> bool:
        for operand, value in self.operands.items():
            held = [(_at(self.slot(operand), u), tuple(_at(a, p) for a in _accesses(value))) for p, u in call]
            if not _function(held):
                return False
        result = self.place.result
        if result is None:
            return _function([(_at(self.needle.out, u), tuple(p.values())) for p, u in call])
        pairs = [(_at(self.needle.out, u), _at(result, p)) for p, u in call]
        return _function(pairs) and _function([(b, a) for a, b in pairs])

    # adapters

    def adapters(self) -> list[str] | None:
        """ "kind operand" of everything needed; None when points that are not there would contribute."""
        found: list[str] = []
        for operand, value in self.held():
            found += self.layout(operand, value)
        for edges in (self.pads(), self.guards()):
            if edges is None:
                return None
            found += edges
        return found

    def held(self) -> Iterator[tuple[str, Expr | Access]]:
        if self.place.result is not None:
            yield self.needle.out.tensor, self.place.result
        yield from self.operands.items()

    def layout(self, operand: str, value: Expr | Access) -> list[str]:
        slot = self.needle.out if isinstance(value, Access) else self.slot(operand)
        found = []
        used = [n for n, group in self.groups.items() if group and n in slot.names()]
        varying = [n for n in used if any(self.changes(value, h) for h in self.groups[n])]
        if set(varying) != set(used):
            found.append(f"broadcast {operand}")
        access = value if isinstance(value, Access) else value.access if isinstance(value, Read) else None
        if access is None:
            return found
        if varying:
            found += [f"{kind} {operand}" for kind in self.order(slot, access, varying)]
        if self.program.dtypes[access.tensor] != self.instruction.dtypes[operand]:
            found.append(f"convert {operand}")
        return found

    def order(self, slot: Access, access: Access, varying: list[str]) -> list[str]:
        steps = {n: self.step(access, self.groups[n]) for n in varying}
        if None in steps.values():
            return ["pack"]
        inner = next([n for n in varying if n in i.names()] for i in reversed(slot.indices) if i.names() & set(varying))
        index = next(i for i in reversed(slot.indices) if i.names() & set(varying))
        if all(steps[n] == index.coefficient(n) for n in inner):
            return []
        return ["transpose"] if any(steps[n] == 1 for n in varying if n not in inner) else ["pack"]

    def step(self, access: Access, group: tuple[str, ...]) -> int | None:
        shape = [extent.const for extent in self.program.tensor(access.tensor).shape]
        strides = [prod(shape[d + 1 :]) for d in range(len(shape))]
        zero = dict.fromkeys(self.extents(), 0)
        addresses = []
        for values in product(*(range(self.extents()[h]) for h in group)):
            place = _at(access, {**zero, **dict(zip(group, values, strict=True))})
            addresses.append(sum(i * s for i, s in zip(place, strides, strict=True)))
        steps = {b - a for a, b in pairwise(addresses)}
        return steps.pop() if len(steps) == 1 else None

    def pads(self) -> list[str] | None:
        found = []
        for name, group in self.groups.items():
            if prod(self.extents()[h] for h in group) % self.most[name] == 0:
                continue
            if name in self.reduced and self.fill({name}, set()) is None:
                return None
            slots = {access.tensor: access for access in (self.needle.out, *self.needle.reads())}
            found += [f"pad {tensor}" for tensor, access in slots.items() if name in access.names()]
        return found

    def guards(self) -> list[str] | None:
        found: list[str] = []
        bound = {h for group in self.groups.values() for h in group}
        for condition in self.statement.where:
            inside = condition.names() & bound
            if not inside:
                continue
            readers = {operand for operand, value in self.operands.items() if names(value) & inside}
            filled: set[str] = set()
            result = self.place.result
            if result is None or self.statement.combine is Combine.SET or condition.names() <= result.names():
                found += [] if result is None else [f"mask {self.needle.out.tensor}"]
            else:
                touched = {n for n, group in self.groups.items() if set(group) & inside}
                answer = self.fill(touched, readers)
                if answer is None:
                    return None
                filled = answer
            found += [f"zero-fill {operand}" for operand in readers | filled]
        return found

    def fill(self, loops: set[str], readers: set[str]) -> set[str] | None:
        """Operands to fill so that the instruction's value is neutral, whatever the others hold."""
        kept = ""
        if self.place.mode == "self":
            kept = next(o for o, v in self.operands.items() if v == Read(self.statement.out))
        reads = list(dict.fromkeys(self.needle.reads()))
        able = {a.tensor for a in reads if a.tensor != kept and all(self.tells(a, loop) for loop in loops)}
        for chosen in (able & readers, able):
            if self.can_fill(chosen, [a.tensor for a in reads], kept):
                return chosen
        return None

    def tells(self, access: Access, loop: str) -> bool:
        """Whether the element of ``access`` gives away the value of ``loop``."""
        pairs = []
        for values in product(*(range(extent) for extent in self.most.values())):
            u = dict(zip(self.most, values, strict=True))
            pairs.append((_at(access, u), u[loop]))
        return _function(pairs)

    def can_fill(self, chosen: set[str], tensors: list[str], kept: str) -> bool:
        """Fills tried are 0, 1 and the ends of the operand's range; the others take these and what is special."""
        kinds = {t: self.instruction.dtypes[t].name for t in tensors}
        wraps = _type(self.needle, self.instruction) != "f32"
        others = [t for t in tensors if t not in chosen]
        order = sorted(chosen)
        neutral = _neutral(self.needle.combine, self.instruction, self.needle)
        for fill in product(*(_ENDS[kinds[t]] for t in order)):
            values = dict(zip(order, fill, strict=True))
            rest = product(*((*_ENDS[kinds[t]], *((-2.5, nan) if kinds[t] == "f32" else ())) for t in others))
            trials = [{**values, **dict(zip(others, t, strict=True))} for t in rest]
            if all(_same(_evaluate(self.needle.value, t, wraps), t[kept] if kept else neutral) for t in trials):
                return True
        return False


def _neutral(combine: Combine, instruction: Program, needle: Statement) -> int | float:
    dtype = instruction.dtypes[needle.out.tensor].name
    if combine is Combine.ADD:
        return 0.0 if dtype == "f32" else 0
    if combine is Combine.MUL:
        return 1.0 if dtype == "f32" else 1
    low, high = {"f32": (-inf, inf), "i32": (-(2**31), 2**31 - 1), "i8": (-128, 127)}[dtype]
    return low if combine is Combine.MAX else high


def _same(a: float, b: float) -> bool:
    return a == b or (isnan(a) and isnan(b))


def _evaluate(e: Expr, values: dict[str, int | float], wraps: bool) -> int | float:
    if isinstance(e, Read):
        return values[e.access.tensor]
    if isinstance(e, Literal):
        return e.value
    assert isinstance(e, Apply)
    value = _apply(e.function, [_evaluate(arg, values, wraps) for arg in e.args])
    return (int(value) + 2**31) % 2**32 - 2**31 if wraps else value


def _apply(function: str, args: list[int | float]) -> int | float:
    a, b = args if len(args) == 2 else (args[0], 0)
    if function in ("max", "min"):
        return nan if isnan(a) or isnan(b) else max(a, b) if function == "max" else min(a, b)
    return {"add": a + b, "sub": a - b, "mul": a * b, "neg": -a}[function]


@cache
def _changes(access: Access, loop: str, extents: tuple[tuple[str, int], ...]) -> bool:
    """Whether the element changes when only ``loop`` does."""
    names = [name for name, _ in extents]
    for values in product(*(range(extent) for _, extent in extents)):
        point = dict(zip(names, values, strict=True))
        if _at(access, point) != _at(access, {**point, loop: 0}):
            return True
    return False


def _accesses(value: Expr) -> Iterator[Access]:
    return (node.access for node in walk(value) if isinstance(node, Read))


def _at(access: Access, point: Point) -> tuple[int, ...]:
    return tuple(index.evaluate(point) for index in access.indices)


def _function(pairs: Sequence[tuple[object, object]]) -> bool:
    """Whether the first of each pair decides the second."""
    return len({first for first, _ in pairs}) == len(set(pairs))
