"""Nests made at random for timing: loops, conditions, edges, buffers used in turn, copies under way."""

from __future__ import annotations

import random

from dovetail.ir.index import Condition, Index, as_index, constant, variable
from dovetail.ir.nest import Call, Nest, Node, Start, Wait, When
from tests.unit.sim.machines import alloc, buffer, call, loop, parallel, place, product_arguments

_HELD = (buffer("s", "scratchpad", "i8", 16, 4, 4), buffer("acc", "sums", "i32", 8, 4, 4))


class Maker:
    """One nest per seed. With ``groups`` tokens are started several times before they are waited for, and places and
    counts jump where the next of an outer loop begins."""

    def __init__(self, seed: int, groups: bool = False) -> None:
        self.random = random.Random(seed)
        self.groups = groups
        self.names = 0
        self.tokens = 0
        self.terms: dict[tuple[str, str], Index] = {}

    def nest(self) -> Nest:
        spread = self.random.random() < 0.4
        if spread:
            inner = alloc(_HELD, *self.block(("p",), 2))
            body: Node = parallel("p", self.random.randint(1, 11), inner)
        else:
            body = alloc(_HELD, *self.block((), 3))
        return Nest(product_arguments(64, 64, 64), (), (body,), ("y",))

    def block(self, names: tuple[str, ...], depth: int, started: tuple[str, ...] = ()) -> tuple[Node, ...]:
        """``started`` tokens are waited for behind the block."""
        found: list[Node] = []
        waiting: list[str] = []
        for _ in range(self.random.randint(1, 4)):
            kind = self.random.random()
            known = (*started, *waiting) if self.groups else ()
            if known and self.random.random() < 0.3:
                found.append(Start(self.random.choice(known), self.copy(names)))
            elif self.groups and self.random.random() < 0.15:
                waiting.append(self.token())
                found.append(self.starts(names, (*known, waiting[-1])))
            elif depth > 0 and kind < 0.45:
                found.append(self.loop(names, depth, known))
            elif depth >= 0 and kind < 0.55 and names:
                body, other = self.block(names, -1), self.block(names, -1)
                found.append(When((self.condition(names),), body, other if self.random.random() < 0.4 else ()))
            elif kind < 0.75:
                waiting.append(self.token())
                found.append(Start(waiting[-1], self.copy(names)))
            elif kind < 0.8 and waiting:
                found.append(Wait(waiting.pop(self.random.randrange(len(waiting)))))
            else:
                found.append(self.compute(names))
        return (*found, *map(Wait, waiting))

    def token(self) -> str:
        self.tokens += 1
        return f"t{self.tokens}"

    def starts(self, names: tuple[str, ...], tokens: tuple[str, ...]) -> Node:
        """A fill of many copies; the last of ``tokens`` is started for sure."""
        self.names += 1
        inside = (*names, f"v{self.names}")
        chosen = (*self.random.choices(tokens, k=self.random.randint(0, 2)), tokens[-1])
        return loop(inside[-1], self.random.choice((3, 9, 30)), *(Start(t, self.copy(inside)) for t in chosen))

    def loop(self, names: tuple[str, ...], depth: int, started: tuple[str, ...] = ()) -> Node:
        self.names += 1
        name = f"v{self.names}"
        count = self.random.choice((1, 2, 3, 7, 12, 40 if self.groups else 19))
        lower: Index = constant(0)
        upper: tuple[Index, ...] = (constant(count),)
        if names and self.random.random() < 0.3:
            outer = variable(self.random.choice(names))
            if self.random.random() < 0.5:
                upper = (constant(count), outer * self.random.choice((-1, 1, 4)) + self.random.randint(1, 15))
            else:
                lower = outer * 4
                upper = (outer * 4 + 4, constant(self.random.randint(4, 30)))
        step, down = self.random.choice((1, 1, 2, 3)), self.random.random() < 0.2
        body = self.block((*names, name), depth - 1, started)
        return loop(name, upper, *body, lower=lower, step=step, downward=down)

    def condition(self, names: tuple[str, ...]) -> Condition:
        index = self.index(names) - self.random.randint(0, 12)
        return Condition(index, equal=self.random.random() < 0.2)

    def index(self, names: tuple[str, ...], buffer: str = "") -> Index:
        """Something small made of the loops around; places in one buffer mostly go the same way."""
        total = as_index(self.random.randint(0, 3))
        for name in names:
            term = self.term(name)
            if buffer and self.random.random() < 0.95:
                term = self.terms.setdefault((buffer, name), term)
            total = total + term
        return total

    def term(self, name: str) -> Index:
        if self.groups and self.random.random() < 0.25:
            outer, count = self.random.choice((4, 7, 19)), variable(name) + self.random.randint(0, 1)
            if self.random.random() < 0.4:
                return (count // outer + count % outer) % 2
            return count // outer % self.random.choice((2, 3, 8))
        kind = self.random.random()
        if kind < 0.4:
            return variable(name) * self.random.choice((1, 1, 2, -1))
        if kind < 0.55:
            return (variable(name) + self.random.randint(0, 1)) % self.random.choice((2, 3))
        return variable(name) // 2 if kind < 0.65 else constant(0)

    def copy(self, names: tuple[str, ...]) -> Call:
        tile, where = self.index(names, "s"), place("a", self.index(names) * 4, self.index(names) * 4)
        if self.random.random() < 0.3:
            sums = place("acc", self.index(names, "acc"), 0, 0)
            return call("drain", place("y", self.index(names) * 4, 0), sums, ld=64)
        if self.random.random() < 0.2:
            return call("fill_all", place("s", tile, 0, 0), where, ld=64)
        rows: tuple[Index, ...] = (constant(4),)
        if names and self.random.random() < 0.4:
            rows = (constant(4), variable(self.random.choice(names)) + 1)
        if names and self.groups and self.random.random() < 0.4:
            rows = (constant(4), (variable(self.random.choice(names)) + 1) % 12 * -1 + 12)
        return call("fill", place("s", tile, 0, 0), where, ld=64, m=rows, n=4)

    def compute(self, names: tuple[str, ...]) -> Call:
        sums = place("acc", self.index(names, "acc"), 0, 0)
        if self.random.random() < 0.25:
            return call("clear", sums)
        first, second = (place("s", self.index(names, "s"), 0, 0) for _ in range(2))
        return call("multiply", sums, first, second)


class Rows:
    """One nest per seed in the manner of a padded convolution: blocks by rows and columns, the next block's data
    fetched ahead across the end of a row, other copies at the edges, buffers in turn, products guarded at the edges."""

    def __init__(self, seed: int, most: int = 9) -> None:
        self.random = random.Random(seed)
        self.rows, self.columns = (self.random.randint(2, most) for _ in range(2))
        self.taps, self.block = self.random.randint(1, 3), self.random.randint(1, 4)
        self.pad = self.random.randint(0, self.taps - 1)
        self.turns = self.random.choice((1, 2, 2))
        self.batch = self.random.choice((1, 1, 3, 9))

    def nest(self) -> Nest:
        p, q = variable("p"), variable("q")
        count = p * self.columns + q
        ahead = (p + (q + 1) // self.columns) % self.rows, (q + 1) % self.columns
        more = When((Condition(-count + self.rows * self.columns - 2),), self.fetch(*ahead))
        parts: list[Node] = [Wait("x"), more, self.products(p, q)]
        if self.random.random() < 0.7:
            parts.insert(self.random.randint(0, 2), call("clear", place("acc", q % self.turns * 4, 0, 0)))
        parts += self.store(p, q)
        parts.insert(self.random.choice((0, len(parts) - 1)), When((Condition(count - 1),), (Wait("y"),)))
        body = loop("p", self.rows, loop("q", self.columns, *parts))
        whole = alloc(_HELD, *self.fetch(constant(0), constant(0)), body, Wait("y"))
        return Nest(product_arguments(64, 64, 64), (), (whole,), ("y",))

    def fetch(self, row: Index, column: Index) -> tuple[Node, ...]:
        """Copies of the rows of a block that lie inside, by the four cases of its first row and column."""
        first, left = row * self.block - self.pad, column * self.block - self.pad
        reach = self.block + self.taps - 1
        found: list[Node] = []
        for above in (False, True):
            for beside in (False, True):
                start: Index = -first if above else constant(0)
                ends = (constant(reach), -first + self.rows * self.block)
                width = (constant(4), left + reach if beside else -left + self.columns * self.block)
                tile = place("s", column % self.turns * 8 + variable("c"), 0, 0)
                source = place("a", (variable("c") + first) * 4, "b" if self.batch > 1 else 0)
                copy = Start("x", call("fill", tile, source, ld=64, m=width, n=4))
                inner: Node = loop("b", self.batch, copy) if self.batch > 1 else copy
                where = (self.inside(first, not above), self.inside(left, not beside))
                found.append(When(where, (loop("c", ends, inner, lower=start),)))
        return tuple(found)

    def inside(self, index: Index, wanted: bool) -> Condition:
        return Condition(index if wanted else -index - 1)

    def products(self, p: Index, q: Index) -> Node:
        tap, at = variable("r"), variable("i")
        row = p * self.block + at + tap - self.pad
        sums = place("acc", q % self.turns * 4 + at, 0, 0)
        operands = (place("s", q % self.turns * 8 + n, 0, 0) for n in (at + tap, tap))
        guards = (Condition(row), Condition(-row + self.rows * self.block - 1))
        one = call("multiply", sums, *operands)
        body = When(guards, (one,)) if self.pad else one
        return loop("r", self.taps, loop("i", self.block, body))

    def store(self, p: Index, q: Index) -> tuple[Node, ...]:
        at = variable("o")
        drain = call("drain", place("y", p * 4 + at, q * 4), place("acc", q % self.turns * 4 + at, 0, 0), ld=64)
        return (loop("o", self.block, Start("y", drain)),)
