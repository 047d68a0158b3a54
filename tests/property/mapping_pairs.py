"""Random small (program, instruction) pairs in which the instruction has a fair chance to fit somewhere.

The program has one or two statements over two to four short loops; the instruction's value is a part of a program's
value with some subexpressions replaced by operands, its accesses are chosen freely.
"""

from __future__ import annotations

from random import Random

from dovetail.ir.parse import parse
from dovetail.ir.program import Program

_LOOPS = ("i", "j", "k", "m")
_NEEDLE_LOOPS = ("u", "v", "w")
_OPS = ("+", "*", "*", "-", "max", "min")

Tree = str | tuple[str, "Tree", "Tree"]
"""A leaf as text, or an operation and its arguments."""


def random_pair(seed: int) -> tuple[Program, Program]:
    """The program and the instruction with number ``seed``."""
    rng = Random(seed)
    integers = rng.random() < 0.5
    narrow = integers and rng.random() < 0.4
    writer = _Writer(rng, "i32" if integers else "f32", "i8" if narrow else "i32" if integers else "f32")
    program = writer.program()
    return parse(program), parse(writer.instruction())


class _Writer:
    """Writes both texts; ``tree`` is the value of the last statement, to be cut from."""

    def __init__(self, rng: Random, dtype: str, inputs: str) -> None:
        self.rng, self.dtype, self.inputs = rng, dtype, inputs
        self.tensors: dict[str, str] = {}
        self.tree: Tree = ""
        self.combine = "="
        self.fresh = 0
        self.leaves: list[str] = []
        self.places: dict[str, str] = {}

    def program(self) -> str:
        rng = self.rng
        statements = [self.statement(n) for n in range(1 if rng.random() < 0.8 else 2)]
        return "\n".join([*self.tensors.values(), *statements])

    def statement(self, number: int) -> str:
        rng = self.rng
        count = rng.choice((2, 3, 3, 4))
        loops = {name: rng.choice((1, 2, 2, 3, 3, 4)) for name in _LOOPS[:count]}
        kept = [name for name in loops if rng.random() < 0.6]
        self.combine = rng.choice(("+=", "+=", "+=", "max=", "="))
        if self.combine == "=":
            kept = list(loops)
        rng.shuffle(kept)
        written = self.indices(kept, loops, exact=self.combine == "=")
        self.leaves = []
        out = self.tensor(f"y{number}", "out", self.dtype, written, loops)
        self.tree = self.value(loops, number, 2)
        where = ""
        if rng.random() < 0.25:
            a, b = rng.choice(list(loops)), rng.choice(list(loops))
            where = f" where {a} + {b} >= 1" if rng.random() < 0.5 else f" where {a} >= 1"
        head = ", ".join(f"{name}<{extent}" for name, extent in loops.items())
        return f"for {head}{where}: {out} {self.combine} {_write(self.tree)}"

    def indices(self, names: list[str], loops: dict[str, int], exact: bool = False) -> list[str]:
        """Index texts over ``names``: mostly plain, sometimes scaled or added up."""
        found: list[str] = []
        left = list(names)
        while left:
            name = left.pop()
            if not exact and left and self.rng.random() < 0.2:
                found.append(f"{name} + {left.pop()}")
            else:
                found.append(f"2 * {name}" if self.rng.random() < 0.12 else name)
        return found

    def tensor(self, name: str, role: str, dtype: str, indices: list[str], loops: dict[str, int]) -> str:
        shape = []
        for text in indices:
            high = 0
            for term in text.split(" + "):
                factor, _, loop = term.rpartition(" * ")
                high += int(factor or 1) * (loops[loop] - 1)
            shape.append(str(high + 1))
        self.tensors[name] = f"{role} {name}: {dtype}[{', '.join(shape)}]"
        return f"{name}[{', '.join(indices)}]"

    def value(self, loops: dict[str, int], number: int, depth: int) -> Tree:
        rng = self.rng
        if depth == 0 or rng.random() < 0.2:
            if rng.random() < 0.1:
                return "2" if self.dtype == "i32" else "2.0"
            if self.leaves and rng.random() < 0.2:
                return rng.choice(self.leaves)
            self.fresh += 1
            used = [name for name in loops if rng.random() < 0.6]
            rng.shuffle(used)
            self.leaves.append(self.tensor(f"x{self.fresh}", "in", self.inputs, self.indices(used, loops), loops))
            return self.leaves[-1]
        op = rng.choice(_OPS)
        return (op, self.value(loops, number, depth - 1), self.value(loops, number, depth - 1))

    def instruction(self) -> str:
        rng = self.rng
        loops = {name: rng.choice((1, 2, 2, 2, 3)) for name in _NEEDLE_LOOPS[: rng.choice((1, 1, 2, 3))]}
        part = self.tree
        while isinstance(part, tuple) and rng.random() < 0.3:
            part = part[1] if rng.random() < 0.5 else part[2]
        operands: list[str] = []
        value = self.cut(part, loops, operands)
        combine = rng.choice((self.combine, self.combine, "+=", "=", "max="))
        names = list(loops)
        written = names if combine == "=" else [name for name in names if rng.random() < 0.6]
        self.tensors = {}
        if len(written) > 1 and combine != "=" and rng.random() < 0.4:
            written = [" + ".join(written[:2]), *written[2:]]
        elif combine != "=":
            written = self.indices(written, loops)
        acc = self.tensor("acc", "out" if combine == "=" else "inout", self.dtype, written, loops)
        head = ", ".join(f"{name}<{extent}" for name, extent in loops.items())
        return "\n".join([*self.tensors.values(), *operands, f"for {head}: {acc} {combine} {value}"])

    def cut(self, part: Tree, loops: dict[str, int], operands: list[str]) -> str:
        """``part`` with leaves and some inner nodes replaced by operands of the instruction."""
        if isinstance(part, tuple) and (not operands or self.rng.random() < 0.6):
            op, left, right = part
            a, b = self.cut(left, loops, operands), self.cut(right, loops, operands)
            return _write((op, a, b))
        if isinstance(part, str) and part in self.places:
            return self.places[part]
        used = [name for name in loops if self.rng.random() < 0.75]
        self.rng.shuffle(used)
        name = f"a{len(operands)}"
        dtype = self.rng.choice((self.inputs, self.inputs, self.dtype))
        self.tensors = {}
        text = self.tensor(name, "in", dtype, self.indices(used, loops), loops)
        operands.append(self.tensors[name])
        if isinstance(part, str):
            self.places[part] = text
        return text


def _write(tree: Tree) -> str:
    if isinstance(tree, str):
        return tree
    op, left, right = tree
    a, b = _write(left), _write(right)
    return f"{op}({a}, {b})" if op in ("max", "min") else f"({a} {op} {b})"
