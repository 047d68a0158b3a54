"""Random programs of forms that ``programs`` does not draw: padding, quasi-affine indices, parts written one by one,
steps that read further back, ``inout`` that is read and written, mixed types, positions and bitcasts.

Everything is drawn freely and kept only where it is valid.
"""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import assume
from hypothesis import strategies as st

from dovetail.base.dtypes import DTYPES, DType, Kind
from dovetail.base.errors import DovetailError
from dovetail.ir.expr import Apply, Bitcast, Cast, Expr, Literal, Position, Read
from dovetail.ir.index import Access, Condition, Index, constant, variable
from dovetail.ir.program import Combine, Loop, Program, Role, Size, Statement
from dovetail.ir.verify import verify
from tests.property.programs import Case, _Maker

_BITS = {"f32": "i32", "i32": "f32", "f16": "u16", "u16": "f16", "i64": "f64", "f64": "i64", "u8": "i8", "i8": "u8"}


@st.composite
def wide_programs(draw: st.DrawFn, max_parts: int = 3) -> Case:
    """A valid program without indirect access."""
    maker = _Wide(draw, True, False, (1, 2, 3, 4))
    if draw(st.integers(0, 2)) == 0:
        low = draw(st.integers(0, 2))
        maker.sizes["n"] = Size("n", low, low + draw(st.integers(0, 3)))
    parts = draw(st.integers(1, max_parts))
    for number in range(parts):
        draw(st.sampled_from(maker.parts))(number == parts - 1)
    sizes = {size.name: draw(st.integers(size.low, size.high)) for size in maker.sizes.values()}
    found = Program(tuple(maker.tensors.values()), tuple(maker.statements), tuple(maker.sizes.values()))
    assume(_is_valid(found))
    return Case(found, sizes)


def _is_valid(program: Program) -> bool:
    try:
        verify(program)
    except DovetailError:
        return False
    return True


class _Wide(_Maker):
    """More parts, and values of more kinds."""

    @property
    def parts(self) -> tuple[Callable[[bool], None], ...]:
        own = (
            self.windows,
            self.quasi,
            self.by_condition,
            self.history,
            self.sums,
            self.changed,
            self.outside,
            self.mixed,
        )
        return (*own, self.plain, self.contraction, self.steps)

    # -- parts

    def windows(self, last: bool) -> None:
        """``t[i, c] op= x[s*i + d*j - p] * w`` where that is inside, in one or two dimensions."""
        dims = self.draw(st.integers(1, 2))
        loops: list[Loop] = []
        taps: list[Loop] = []
        indices: list[Index] = []
        shape: list[Index] = []
        where: list[Condition] = []
        for k in range(dims):
            i, j = (
                Loop("ij"[k], constant(self.draw(st.integers(1, 4)))),
                Loop("rs"[k], constant(self.draw(st.integers(1, 3)))),
            )
            step, gap, before = (self.draw(st.integers(*bounds)) for bounds in ((1, 2), (1, 2), (0, 2)))
            extent = self.draw(st.integers(1, 8))
            index = variable(i.name) * step + variable(j.name) * gap - before
            where += [Condition(index), Condition(constant(extent - 1) - index)]
            loops, taps, indices, shape = [*loops, i], [*taps, j], [*indices, index], [*shape, constant(extent)]
        channel = Loop("c", self.extent())
        order = self.draw(st.permutations([(variable("c"), channel.extent), *zip(indices, shape, strict=True)]))
        dtype = DTYPES[self.draw(st.sampled_from(("f32", "i32", "f16")))]
        x = self.declare(Role.IN, dtype, [e for _, e in order], reads=False)
        value: Expr = Read(Access(x, tuple(i for i, _ in order)))
        if self.draw(st.booleans()):
            w = self.declare(Role.CONST, dtype, [*(t.extent for t in taps), channel.extent], reads=False)
            value = Apply("mul", (value, Read(Access(w, (*(variable(t.name) for t in taps), variable("c"))))))
        kept = self.draw(st.permutations([*loops, channel] if self.draw(st.booleans()) else loops))
        out = self.declare(self.role(last), dtype, [loop.extent for loop in kept])
        combine = self.draw(st.sampled_from((Combine.ADD, Combine.MAX)))
        access = Access(out, tuple(variable(loop.name) for loop in kept))
        self.add(Statement((*loops, channel, *taps), access, combine, value, tuple(where)))

    def quasi(self, last: bool) -> None:
        """Reads and writes through quotients and remainders."""
        loops = self.loops(1, 3)
        dtype = self.dtype()
        shape = [constant(self.draw(st.integers(2, 9))) for _ in range(2)]
        x = self.declare(Role.IN, dtype, shape, reads=False)
        value: Expr = Read(Access(x, (self.crooked(loops), self.crooked(loops))))
        combine = self.draw(st.sampled_from((Combine.ADD, Combine.MAX, Combine.SET)))
        indices, extents = self.output(loops, combine)
        if combine is not Combine.SET and self.draw(st.booleans()):
            indices, extents = (self.crooked(loops),), (constant(self.draw(st.integers(2, 9))),)
        out = self.declare(self.role(last), dtype, extents)
        where = () if combine is Combine.SET else self.conditions(loops)
        self.add(Statement(loops, Access(out, indices), combine, value, where))

    def crooked(self, loops: tuple[Loop, ...]) -> Index:
        index = constant(self.draw(st.integers(0, 3)))
        for loop in loops:
            index += variable(loop.name) * self.draw(st.integers(-1, 3))
        kind = self.draw(st.integers(0, 3))
        if kind == 0:
            return index
        divisor = self.draw(st.integers(2, 4))
        return index // divisor if kind == 1 else index % divisor if kind == 2 else index // divisor % 2

    def by_condition(self, last: bool) -> None:
        """Two statements with ``=`` whose conditions share out the elements."""
        loops = self.loops(1, 2)
        dtype = self.dtype()
        test = variable(loops[0].name) - self.draw(st.integers(0, 3))
        values = [self.value(loops, dtype, 1) for _ in range(2)]
        out = self.declare(self.role(last), dtype, [loop.extent for loop in loops])
        access = Access(out, tuple(variable(loop.name) for loop in loops))
        for value, where in zip(values, (Condition(test), Condition(-test - 1)), strict=True):
            self.add(Statement(loops, access, Combine.SET, value, (where,)))

    def history(self, last: bool) -> None:
        """Steps that read two steps back, or all that went before."""
        dtype = DTYPES[self.draw(st.sampled_from(("i32", "f32", "u16")))]
        count = constant(self.draw(st.integers(1, 4)))
        width = Loop("i", self.extent())
        i, t, u = variable("i"), variable("t"), variable("u")
        h = self.declare(self.role(last), dtype, (count + 2, width.extent), reads=False)
        for k in range(2):
            start = Read(self.read_new((width,), dtype))
            self.add(Statement((width,), Access(h, (constant(k), i)), Combine.SET, start))
        before: Expr = Apply("sub", (Read(Access(h, (t + 1, i))), Read(Access(h, (t, i)))))
        step = (Loop("t", count),)
        if self.draw(st.booleans()):
            total = self.declare(Role.TEMP, dtype, (count, width.extent), reads=False)
            inner, where = (width, Loop("u", count + 2)), (Condition(t + 1 - u),)
            self.add(Statement(inner, Access(total, (t, i)), Combine.MAX, Read(Access(h, (u, i))), where, step))
            before = Read(Access(total, (t, i)))
        value = Apply("min", (Apply("max", (before, Literal(0))), Literal(7)))
        self.add(Statement((width,), Access(h, (t + 2, i)), Combine.SET, value, (), step))

    def sums(self, last: bool) -> None:
        """Several statements of one ``op=`` into one tensor."""
        loops = self.loops(1, 3)
        dtype = self.dtype()
        combine = self.draw(st.sampled_from((Combine.ADD, Combine.MAX, Combine.MIN)))
        values = [self.fit(self.value(loops, dtype, 2), combine, dtype) for _ in range(self.draw(st.integers(2, 3)))]
        kept = loops[: self.draw(st.integers(0, len(loops)))]
        out = self.declare(self.role(last), dtype, [loop.extent for loop in kept])
        access = Access(out, tuple(variable(loop.name) for loop in kept))
        for value in values:
            self.add(Statement(loops, access, combine, value, self.conditions(loops)))

    def changed(self, last: bool) -> None:
        """An ``inout`` that is read, changed, and read again."""
        loops = self.loops(1, 2)
        dtype = self.dtype()
        combine = self.draw(st.sampled_from(list(Combine)))
        name = self.declare(Role.INOUT, dtype, [loop.extent for loop in loops], reads=False)
        access = Access(name, tuple(variable(loop.name) for loop in loops))
        self.copied(loops, access, dtype)
        value = self.fit(self.value(loops, dtype, 1), combine, dtype)
        where = self.conditions(loops) if self.draw(st.booleans()) else ()
        if combine is Combine.SET and self.draw(st.booleans()):
            value = Apply("max", (value, Read(access))) if dtype.kind is not Kind.BOOL else Read(access)
        inner = loops
        if combine is not Combine.SET and self.draw(st.booleans()):
            inner = (*loops, Loop("k", self.extent()))
            value = self.fit(self.value(inner, dtype, 1), combine, dtype)
        self.add(Statement(inner, access, combine, value, where))
        self.copied(loops, access, dtype)

    def copied(self, loops: tuple[Loop, ...], access: Access, dtype: DType) -> None:
        if self.draw(st.booleans()):
            out = self.declare(Role.OUT, dtype, [loop.extent for loop in loops])
            self.add(Statement(loops, Access(out, tuple(variable(lo.name) for lo in loops)), Combine.SET, Read(access)))

    def outside(self, last: bool) -> None:
        """Numbers without dimensions, and results that nothing is read for."""
        dtype = self.dtype()
        loops = self.loops(1, 2)
        total = self.declare(self.draw(st.sampled_from((Role.OUT, Role.TEMP))), dtype, (), reads=False)
        combine = Combine.MAX if dtype.kind is not Kind.BOOL else Combine.ADD
        self.add(Statement(loops, Access(total, ()), combine, self.leaf_read(loops, dtype), self.conditions(loops)))
        out = self.declare(self.role(last), dtype, [loop.extent for loop in loops])
        value = Read(Access(total, ())) if self.draw(st.booleans()) else Literal(self.number(dtype))
        self.add(Statement(loops, Access(out, tuple(variable(lo.name) for lo in loops)), Combine.SET, value))

    def mixed(self, last: bool) -> None:
        """Arithmetic of several types, positions and bits, stored in any type."""
        loops = self.loops(1, 3)
        out_dtype = self.dtype()
        value = self.any_value(loops, 3)
        combine = self.draw(st.sampled_from((Combine.SET, Combine.ADD, Combine.MAX)))
        indices, shape = self.output(loops, combine)
        name = self.declare(self.role(last), out_dtype, shape)
        self.add(Statement(loops, Access(name, indices), combine, value))

    def any_value(self, loops: tuple[Loop, ...], depth: int) -> Expr:
        kind = self.draw(st.integers(0, 7)) if depth else self.draw(st.integers(0, 2))
        if kind == 0:
            number = self.draw(st.sampled_from((0, 1, 2, -3, 0.5, -2.0, True)))
            return Literal(number)
        if kind == 1:
            index = self.crooked(loops)
            return Cast(DTYPES["i64"], Literal(index.const)) if index.is_constant else Position(index)
        if kind == 2:
            return Read(self.read_new(loops, self.dtype()))
        if kind == 3:
            return Cast(self.dtype(), self.any_value(loops, depth - 1))
        if kind == 4:
            source = self.draw(st.sampled_from(sorted(_BITS)))
            inner = Cast(DTYPES[source], self.any_value(loops, depth - 1))
            whole = (
                Apply("add", (inner, Read(self.read_new(loops, DTYPES[source])))) if self.draw(st.booleans()) else inner
            )
            return Bitcast(DTYPES[_BITS[source]], whole) if DTYPES[_BITS[source]].is_integer else whole
        if kind == 5:
            test = Apply(self.draw(st.sampled_from(("lt", "eq", "ge"))), self.two(loops, depth))
            return Apply("select", (test, *self.two(loops, depth)))
        return Apply(self.draw(st.sampled_from(("add", "sub", "mul", "max", "min"))), self.two(loops, depth))

    def two(self, loops: tuple[Loop, ...], depth: int) -> tuple[Expr, Expr]:
        return self.any_value(loops, depth - 1), self.any_value(loops, depth - 1)
