"""Loops, conditions and shares of parallel work in one LLVM function.

What becomes of the nodes inside them is decided by ``lower``, handed in by the function being built.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from dovetail.codegen.arithmetic import Arithmetic
from dovetail.codegen.shares import STRETCH
from dovetail.ir.index import Condition, Index, constant
from dovetail.ir.nest import Loop, Node, Parallel, When

LowerNodes = Callable[[tuple[Node, ...]], None]


class Control:
    """Control flow of one function."""

    def __init__(self, arithmetic: Arithmetic, lower: LowerNodes) -> None:
        self.arithmetic = arithmetic
        self.function = arithmetic.function
        self.lower = lower

    def loop(self, node: Loop) -> None:
        """A bottom-tested loop; no test before it where it certainly runs, no loop where it certainly runs once."""
        bounds = self.arithmetic.bounds
        lower = bounds.largest(tuple(map(self.arithmetic.index, node.lower)))
        upper = bounds.smallest(tuple(map(self.arithmetic.index, node.upper)))
        runs = all(bounds.not_negative(u - low - 1) for u in upper for low in lower)
        if runs and any(bounds.not_negative(low + node.step - u) for u in upper for low in lower):
            self._once(node, lower)
            return
        first, end = self.arithmetic.largest(lower), self.arithmetic.smallest(upper)
        with bounds.variable(node.var, lower, tuple(_last(lower, u, node.step) for u in upper)):
            if node.downward:
                self._downward(node, first, end, runs)
            else:
                self.counted(node.var, first, end, node.step, runs, node.body)

    def parallel(self, node: Parallel, unit: str, units: str, share: int | None) -> None:
        """This unit's contiguous share: ``unit * extent / units`` up to that of the next unit.

        With a ``share`` number, units that are done go on with what others have left (``shares``), and shares are taken
        from their ends where that is asked for.
        """
        bounds = self.arithmetic.bounds
        extents = bounds.smallest(tuple(map(self.arithmetic.index, node.extent)))
        extent = self.arithmetic.smallest(extents)
        with bounds.variable(node.var, (constant(0),), tuple(e - 1 for e in extents)):
            if share is not None and self.function.level(extent) == 0:
                backward = self.arithmetic.value(node.backward)
                taken = f"ptr %status, i64 {share}, i64 {unit}, i64 {units}, i64 {extent}, i64 {backward}"
                self._taken(node, taken)
                return
            before = self.arithmetic.multiply(extent, unit)
            after = self.arithmetic.add(before, extent)
            first = self.function.pure(f"udiv i64 {before}, {units}", before, units)
            end = self.function.pure(f"udiv i64 {after}, {units}", after, units)
            self.counted(node.var, first, end, 1, False, node.body)

    def _taken(self, node: Parallel, share: str) -> None:
        """Stretches of iterations, one after the other, until none is left."""
        function = self.function
        label, after, stretch = function.fresh("l"), function.fresh("l"), function.fresh("v")
        first = function.local(f"call {STRETCH} @take({share}, i64 -1)")
        start = function.local(f"extractvalue {STRETCH} {first}, 0")
        some = function.local(f"icmp sge i64 {start}, 0")
        function.do(f"br i1 {some}, label {label}, label {after}")
        before = function.block
        with function.loop_body(label, stretch) as phi:
            begin = function.pure(f"extractvalue {STRETCH} {stretch}, 0", stretch)
            end = function.pure(f"extractvalue {STRETCH} {stretch}, 1", stretch)
            self.counted(node.var, begin, end, 1, True, node.body)
            following = function.local(f"call {STRETCH} @take({share}, i64 {begin})")
            start = function.local(f"extractvalue {STRETCH} {following}, 0")
            some = function.local(f"icmp sge i64 {start}, 0")
            function.do(f"br i1 {some}, label {label}, label {after}")
            phi.append(f"  {stretch} = phi {STRETCH} [ {first}, %{before} ], [ {following}, %{function.block} ]")
        function.start_block(after)

    def when(self, node: When) -> None:
        """A branch; conditions known here are not tested."""
        open_ones: list[Condition] = []
        for condition in node.conditions:
            known = self.arithmetic.decide(condition)
            if known is False:
                self.lower(node.otherwise)
                return
            if known is None:
                open_ones.append(condition)
        if not open_ones:
            self.lower(node.body)
            return
        self._branch(node, open_ones)

    def counted(self, var: str, first: str, end: str, step: int, runs: bool, body: tuple[Node, ...]) -> None:
        """``var`` = first, first + step, ... below end."""
        sign = "ne" if step == 1 else "slt"  # an inequality would be rewritten in a way that costs a second counter
        self._repeat(var, first, "add", step, (sign, end), None if runs else ("slt", first, end), body)

    def _downward(self, node: Loop, first: str, end: str, runs: bool) -> None:
        """The same iterations, last one first."""
        distance = self.arithmetic.add(end, self.arithmetic.scaled(first, -1) if first != "0" else "0")
        steps = self.arithmetic.add(distance, "-1")
        if node.step > 1:
            steps = self.function.pure(f"sdiv i64 {steps}, {node.step}", steps)
        last = self.arithmetic.add(first, self.arithmetic.scaled(steps, node.step))
        guard = None if runs else ("slt", first, end)
        self._repeat(node.var, last, "sub", node.step, ("sge", first), guard, node.body)

    def _once(self, node: Loop, lower: tuple[Index, ...]) -> None:
        """The body alone. A single bound takes the variable's place, so that indices still cancel."""
        if len(lower) == 1:
            self.arithmetic.replaced[node.var] = lower[0]
            self.lower(node.body)
            del self.arithmetic.replaced[node.var]
            return
        with self.arithmetic.bounds.variable(node.var, lower, lower):
            self.arithmetic.variables[node.var] = self.arithmetic.largest(lower)
            self.lower(node.body)
            del self.arithmetic.variables[node.var]

    def _repeat(
        self,
        var: str,
        start: str,
        change: str,
        step: int,
        goes_on: tuple[str, str],
        guard: tuple[str, str, str] | None,
        body: tuple[Node, ...],
    ) -> None:
        function = self.function
        label, after, variable = function.fresh("l"), function.fresh("l"), function.fresh("v")
        if guard is None:
            function.do(f"br label {label}")
        else:
            sign, left, right = guard
            enters = function.pure(f"icmp {sign} i64 {left}, {right}", left, right)
            function.do(f"br i1 {enters}, label {label}, label {after}")
        before = function.block
        with function.loop_body(label, variable) as phi:
            self.arithmetic.variables[var] = variable
            self.lower(body)
            del self.arithmetic.variables[var]
            following = function.fresh()
            phi.append(f"  {variable} = phi i64 [ {start}, %{before} ], [ {following}, %{function.block} ]")
            function.do(f"{following} = {change} nsw i64 {variable}, {step}")
            sign, limit = goes_on
            again = function.fresh()
            function.do(f"{again} = icmp {sign} i64 {following}, {limit}")
            function.do(f"br i1 {again}, label {label}, label {after}")
        function.start_block(after)

    def _branch(self, node: When, conditions: list[Condition]) -> None:
        """Conditions that read an index are tested last, each only where those before it hold."""
        function = self.function
        inside, outside, after = (function.fresh("l") for _ in range(3))
        otherwise = outside if node.otherwise else after
        plain = [c for c in conditions if not c.index.is_indirect]
        if plain:
            test = reduce(self._both, [self.arithmetic.holds(c) for c in plain])
            further = function.fresh("l") if len(plain) < len(conditions) else inside
            function.do(f"br i1 {test}, label {further}, label {otherwise}")
            function.start_block(further)
        reading = [c for c in conditions if c.index.is_indirect]
        for number, condition in enumerate(reading):
            test = self.arithmetic.holds(condition)
            further = function.fresh("l") if number < len(reading) - 1 else inside
            function.do(f"br i1 {test}, label {further}, label {otherwise}")
            function.start_block(further)
        known = [Condition(self.arithmetic.index(c.index), c.equal) for c in conditions]
        with self.arithmetic.bounds.given(known):
            self.lower(node.body)
        function.do(f"br label {after}")
        if node.otherwise:
            function.start_block(outside)
            with self.arithmetic.bounds.given(_opposite(known)):
                self.lower(node.otherwise)
            function.do(f"br label {after}")
        function.start_block(after)

    def _both(self, a: str, b: str) -> str:
        return self.function.pure(f"and i1 {a}, {b}", a, b)


def _last(lower: tuple[Index, ...], upper: Index, step: int) -> Index:
    """The largest value a loop variable can take below ``upper``."""
    distance = upper - lower[0] - 1
    if len(lower) == 1 and distance.is_constant and distance.const >= 0:
        return lower[0] + distance.const // step * step
    return upper - 1


def _opposite(conditions: list[Condition]) -> list[Condition]:
    """What is known where a single inequality fails."""
    if len(conditions) != 1 or conditions[0].equal:
        return []
    return [Condition(-conditions[0].index - 1)]
