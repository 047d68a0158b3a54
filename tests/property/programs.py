"""Random small valid programs: several statements, conditions, run-time sizes, steps, indirect access, every dtype.

``programs()`` draws a program and values for its sizes. All arithmetic is exact on the inputs that ``fill`` makes, so
results may be compared bit for bit. ``exact=False`` adds functions that round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st

from dovetail.base.dtypes import DTYPES, DType, Kind
from dovetail.ir.expr import Apply, Cast, Expr, Literal, Position, Read
from dovetail.ir.index import Access, Condition, Index, affine, constant, variable
from dovetail.ir.program import Combine, Loop, Program, Role, Size, Statement, Tensor

DRAWN_DTYPES = ("f32", "i32", "f64", "i8", "f16", "bf16", "i16", "i64", "u8", "u16", "u32", "u64", "bool")
_LOOPS = "ijkl"
_NAMES = {Role.IN: "x", Role.CONST: "w", Role.OUT: "y", Role.INOUT: "z", Role.TEMP: "s"}
_FLOAT_OPS = ("add", "sub", "mul", "max", "min")
_INT_OPS = ("add", "sub", "mul", "max", "min", "and", "or", "xor", "floordiv", "mod")
_BOOL_OPS = ("and", "or", "xor")
_COMPARE = ("lt", "le", "eq", "ne", "gt", "ge")
_ROUNDING = ("exp", "tanh", "sqrt", "sigmoid")


@dataclass(frozen=True, slots=True)
class Case:
    """A program and a value for each of its sizes."""

    program: Program
    sizes: dict[str, int]

    def __repr__(self) -> str:
        return f"sizes={self.sizes}\n{self.program}"


@st.composite
def programs(
    draw: st.DrawFn,
    max_statements: int = 3,
    exact: bool = True,
    indirect: bool = True,
    extents: Sequence[int] = (1, 2, 3, 4),
) -> Case:
    """A valid program with one to ``max_statements`` parts and at least one output, of loops as long as ``extents``."""
    maker = _Maker(draw, exact, indirect, extents)
    if draw(st.booleans()):
        low = draw(st.integers(0, 2))
        maker.sizes["n"] = Size("n", low, low + draw(st.integers(0, max(extents) - 1)))
    parts = draw(st.integers(1, max_statements))
    for number in range(parts):
        part = draw(st.sampled_from(("plain", "plain", "contraction", "steps", "two halves", "scatter")))
        {
            "plain": maker.plain,
            "contraction": maker.contraction,
            "steps": maker.steps,
            "two halves": maker.two_halves,
            "scatter": maker.scatter if indirect else maker.plain,
        }[part](number == parts - 1)
    sizes = {size.name: draw(st.integers(size.low, size.high)) for size in maker.sizes.values()}
    return Case(Program(tuple(maker.tensors.values()), tuple(maker.statements), tuple(maker.sizes.values())), sizes)


@dataclass(slots=True)
class _Maker:
    """Collects declarations and statements; every ``make`` keeps the program valid."""

    draw: st.DrawFn
    exact: bool
    indirect: bool
    extents: Sequence[int]
    sizes: dict[str, Size] = field(default_factory=dict)
    tensors: dict[str, Tensor] = field(default_factory=dict)
    statements: list[Statement] = field(default_factory=list)
    readable: list[str] = field(default_factory=list)

    # -- parts: each appends one or more statements

    def plain(self, last: bool) -> None:
        """``for ...: t[...] op value``: pointwise, reduced, shifted, reversed, split or overlapping outputs."""
        loops = self.loops(1, 3)
        out_dtype = self.dtype()
        combine = self.draw(st.sampled_from(list(Combine)))
        indices, shape = self.output(loops, combine)
        where = () if combine is Combine.SET else self.conditions(loops)
        role = self.role(last)
        value = self.value(loops, out_dtype, 3)
        name = self.declare(role, out_dtype, shape)
        self.add(Statement(loops, Access(name, indices), combine, self.fit(value, combine, out_dtype), where))

    def contraction(self, last: bool) -> None:
        """``t[...] += a * b``, sometimes of three factors, with conditions: what matrix multiplication covers."""
        loops = self.loops(2, 4)
        dtype = self.dtype()
        indices, shape = self.output(loops, Combine.ADD)
        value: Expr = Read(self.read_new(loops, self.family(dtype)))
        for _ in range(self.draw(st.integers(1, 2))):
            value = Apply("and" if dtype.kind is Kind.BOOL else "mul", (value, self.leaf_read(loops, dtype)))
        name = self.declare(self.role(last), dtype, shape)
        self.add(Statement(loops, Access(name, indices), Combine.ADD, value, self.conditions(loops)))

    def two_halves(self, last: bool) -> None:
        """Two statements that each write a part of one tensor with ``=``."""
        loops = self.loops(1, 2)
        gap = self.draw(st.integers(1, 2))
        dtype = self.dtype()
        first = loops[0]
        short = (Loop(first.name, constant(gap)), *loops[1:])
        values = [self.value(loops, dtype, 2), self.value(short, dtype, 2)]
        rest = tuple(loop.extent for loop in loops[1:])
        name = self.declare(self.role(last), dtype, (first.extent + gap, *rest))
        tail = tuple(variable(loop.name) for loop in loops[1:])
        self.add(Statement(loops, Access(name, (variable(first.name), *tail)), Combine.SET, values[0]))
        shifted = (variable(first.name) + first.extent, *tail)
        self.add(Statement(short, Access(name, shifted), Combine.SET, values[1]))

    def steps(self, last: bool) -> None:
        """A recurrence: ``h[t + 1]`` from ``h[t]``, by way of a sum over the previous step or not."""
        dtype = self.draw(st.sampled_from([DTYPES[n] for n in ("i32", "i8", "u16", "f32", "f64")]))
        width, count = self.loops(1, 1)[0], self.extent()
        step = Loop("t", count)
        i, t = variable(width.name), variable("t")
        start = self.value((width,), dtype, 1)
        drive = Read(self.read_new((step, width), dtype))
        state = self.declare(self.role(last), dtype, (count + 1, width.extent))
        self.add(Statement((width,), Access(state, (constant(0), i)), Combine.SET, start))
        before: Expr = Read(Access(state, (t, i)))
        if self.draw(st.booleans()):
            other = Loop("u", width.extent)
            total = self.declare(Role.TEMP, dtype, (count, width.extent), reads=False)
            weight = Read(self.read_new((width, other), dtype))
            value = Apply("mul", (weight, Read(Access(state, (t, variable("u"))))))
            self.add(Statement((width, other), Access(total, (t, i)), Combine.ADD, value, (), (step,)))
            before = Read(Access(total, (t, i)))
        value = Apply("max", (Apply("min", (Apply("add", (before, drive)), Literal(9))), Literal(0)))
        self.add(Statement((width,), Access(state, (t + 1, i)), Combine.SET, value, (), (step,)))

    def scatter(self, last: bool) -> None:
        """``y[idx[i]] op= value`` into an ``inout``."""
        loops = self.loops(1, 1)
        dtype = self.dtype()
        combine: Combine = self.draw(st.sampled_from([Combine.ADD, Combine.MAX, Combine.MIN]))
        value = self.fit(self.value(loops, dtype, 2), combine, dtype)
        index = self.declare(Role.IN, DTYPES["i32"], (loops[0].extent,), reads=False)
        name = self.declare(Role.INOUT, dtype, (constant(self.draw(st.integers(1, 4))),), reads=False)
        out = Access(name, (affine(((Access(index, (variable(loops[0].name),)), 1),)),))
        self.add(Statement(loops, out, combine, value))

    # -- pieces

    def loops(self, least: int, most: int) -> tuple[Loop, ...]:
        count = self.draw(st.integers(least, most))
        return tuple(Loop(_LOOPS[n], self.extent()) for n in range(count))

    def extent(self) -> Index:
        if len(self.sizes) > 0 and self.draw(st.booleans()):
            return variable("n") + self.draw(st.integers(0, 2))
        return constant(self.draw(st.sampled_from(self.extents)))

    def dtype(self) -> DType:
        return DTYPES[self.draw(st.sampled_from(DRAWN_DTYPES))]

    def role(self, last: bool) -> Role:
        return Role.OUT if last else self.draw(st.sampled_from((Role.OUT, Role.TEMP)))

    def declare(self, role: Role, dtype: DType, shape: Sequence[Index], reads: bool = True) -> str:
        name = f"{_NAMES[role]}{len(self.tensors)}"
        self.tensors[name] = Tensor(role, name, dtype, tuple(shape))
        if reads:
            self.readable.append(name)
        return name

    def add(self, statement: Statement) -> None:
        self.statements.append(statement)

    def output(self, loops: tuple[Loop, ...], combine: Combine) -> tuple[tuple[Index, ...], tuple[Index, ...]]:
        """Indices that write a whole tensor, and its shape. ``op=`` may leave loops out, or overlap."""
        used = list(self.draw(st.permutations(loops)))
        if combine is not Combine.SET:
            used = used[: self.draw(st.integers(0, len(used)))]
            if len(used) == 2 and self.draw(st.booleans()):
                a, b = used
                return (variable(a.name) * 2 + variable(b.name),), (a.extent * 2 + b.extent,)
        indices, shape = [], []
        for loop in used:
            kind = self.draw(st.sampled_from(("plain", "plain", "reversed", "split")))
            i = variable(loop.name)
            if kind == "reversed":
                indices.append(loop.extent - 1 - i)
                shape.append(loop.extent)
            elif kind == "split" and loop.extent == constant(4):
                indices += [i // 2, i % 2]
                shape += [constant(2), constant(2)]
            else:
                indices.append(i)
                shape.append(loop.extent)
        return tuple(indices), tuple(shape)

    def conditions(self, loops: tuple[Loop, ...]) -> tuple[Condition, ...]:
        found = []
        for _ in range(self.draw(st.integers(0, 2))):
            index = constant(self.draw(st.integers(-2, 3)))
            for loop in loops:
                index += variable(loop.name) * self.draw(st.integers(-1, 1))
            if self.draw(st.integers(0, 3)) == 0:
                index = index % 2 - 1
            found.append(Condition(index, equal=self.draw(st.integers(0, 3)) == 0))
        return tuple(found)

    # -- values

    def value(self, loops: tuple[Loop, ...], near: DType, depth: int) -> Expr:
        """An expression of the family of ``near``: reads of floats for floats, of integers for integers."""
        if depth == 0 or self.draw(st.integers(0, 3)) == 0:
            return self.leaf(loops, near)
        if near.kind is Kind.BOOL:
            if self.draw(st.booleans()):
                kind = self.family(DTYPES[self.draw(st.sampled_from(("f32", "i32", "u8")))])
                pair = self.operand(loops, kind, depth), self.value(loops, kind, depth - 1)
                return Apply(self.draw(st.sampled_from(_COMPARE)), pair)
            pair = self.value(loops, near, depth - 1), self.value(loops, near, depth - 1)
            return Apply(self.draw(st.sampled_from(_BOOL_OPS)), pair)
        choice = self.draw(st.integers(0, 6))
        if choice == 0:
            return Apply(self.draw(st.sampled_from(("neg", "abs"))), (self.operand(loops, near, depth),))
        if choice == 1:
            condition = self.value(loops, DTYPES["bool"], depth - 1)
            return Apply("select", (condition, self.value(loops, near, depth - 1), self.value(loops, near, depth - 1)))
        if choice == 2:
            return Cast(near, self.value(loops, DTYPES[self.draw(st.sampled_from(("i32", "f32")))], depth - 1))
        if choice == 3 and not self.exact and near.is_float:
            return Apply(self.draw(st.sampled_from(_ROUNDING)), (self.value(loops, near, depth - 1),))
        ops = _FLOAT_OPS if near.is_float else _INT_OPS
        pair = self.operand(loops, near, depth), self.operand(loops, near, depth)
        return Apply(self.draw(st.sampled_from(ops)), pair)

    def operand(self, loops: tuple[Loop, ...], near: DType, depth: int) -> Expr:
        """A value that is no literal or position by itself: those fold when read back, and have no type."""
        value = self.value(loops, near, depth - 1)
        return Read(self.read_new(loops, near)) if isinstance(value, Literal | Position) else value

    def leaf_read(self, loops: tuple[Loop, ...], near: DType) -> Expr:
        return Read(self.read_new(loops, self.family(near)))

    def leaf(self, loops: tuple[Loop, ...], near: DType) -> Expr:
        kind = self.draw(st.integers(0, 9))
        if kind == 0:
            number = Literal(self.number(near))
            return Cast(near, number) if near.is_integer and number.value < 0 else number
        if kind == 1 and near.name in ("i64", "f32", "f64"):
            position = Position(variable(self.draw(st.sampled_from(loops)).name))
            return position if near.name == "i64" else Cast(near, position)
        old = [n for n in self.readable if self.suits(self.tensors[n].dtype, near)]
        if kind <= 6 and old:
            access = self.read_old(loops, self.draw(st.sampled_from(old)))
            if access is not None:
                return Read(access)
        return self.leaf_read(loops, near)

    def number(self, near: DType) -> int | float | bool:
        if near.kind is Kind.BOOL:
            return self.draw(st.booleans())
        if near.is_float:
            return float(self.draw(st.integers(-3, 3)))
        return self.draw(st.integers(0 if near.kind is Kind.UNSIGNED else -3, 3))

    def family(self, near: DType) -> DType:
        """A dtype that may be mixed with ``near``."""
        if near.is_float:
            return DTYPES[self.draw(st.sampled_from(("f32", "f16", "bf16", near.name)))]
        if near.kind is Kind.SIGNED:
            return DTYPES[self.draw(st.sampled_from(("i8", "u8", near.name)))]
        return near

    def suits(self, dtype: DType, near: DType) -> bool:
        return dtype.kind is near.kind and (not dtype.is_integer or dtype.bits <= near.bits)

    # -- accesses

    def read_new(self, loops: tuple[Loop, ...], dtype: DType) -> Access:
        """An access to a new input whose shape is as large as the indices reach."""
        indices, shape = [], []
        for loop in self.draw(st.permutations(loops))[: self.draw(st.integers(1, 3))]:
            i = variable(loop.name)
            kind = self.draw(st.sampled_from(("plain", "shifted", "strided", "window", "split", "through")))
            if kind == "shifted":
                indices.append(i + 1)
                shape.append(loop.extent + 1)
            elif kind == "strided":
                indices.append(i * 2)
                shape.append(loop.extent * 2)
            elif kind == "window":
                other = self.draw(st.sampled_from(loops))
                indices.append(i + variable(other.name))
                shape.append(loop.extent + other.extent)
            elif kind == "split":
                indices += [i // 2, i % 2]
                shape += [loop.extent, constant(2)]
            elif kind == "through" and self.indirect:
                through = self.declare(
                    Role.IN, DTYPES[self.draw(st.sampled_from(("i32", "i64", "u8")))], (loop.extent,), False
                )
                indices.append(affine(((Access(through, (i,)), 1),)))
                shape.append(constant(self.draw(st.integers(1, 4))))
            else:
                indices.append(i)
                shape.append(loop.extent)
        role = self.draw(st.sampled_from((Role.IN, Role.CONST)))
        return Access(self.declare(role, dtype, shape), tuple(indices))

    def read_old(self, loops: tuple[Loop, ...], name: str) -> Access | None:
        """An access to a tensor that exists, None when no index is sure to lie inside."""
        indices = []
        for extent in self.tensors[name].shape:
            fitting = [variable(loop.name) for loop in loops if loop.extent == extent]
            fitting += [extent - 1 - i for i in fitting]
            if extent.is_constant and extent.const > 0:
                fitting += [variable(loop.name) % extent.const for loop in loops] + [constant(0)]
            if not fitting:
                return None
            indices.append(self.draw(st.sampled_from(fitting)))
        return Access(name, tuple(indices))

    def fit(self, value: Expr, combine: Combine, dtype: DType) -> Expr:
        """``value`` in a type that ``op=`` takes."""
        return value if combine is Combine.SET or dtype.is_float else Cast(dtype, value)
