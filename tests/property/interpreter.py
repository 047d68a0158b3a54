"""A second, slow meaning of programs: point by point, in plain Python. It also notices what ``verify`` must refuse."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product

import numpy as np
import numpy.typing as npt

from dovetail.base.dtypes import DTYPES, DType, Kind, compute_type
from dovetail.ir.expr import (
    Apply,
    Bitcast,
    Cast,
    Expr,
    Literal,
    Position,
    Read,
    argument_types,
    statement_type,
    value_type,
)
from dovetail.ir.index import Access, Index, Quotient, Remainder
from dovetail.ir.program import Combine, Loop, Program, Role, Statement, Tensor

Array = npt.NDArray[np.generic]
Number = int | float | bool
Element = tuple[str, tuple[int, ...]]
Point = tuple[tuple[str, int], ...]

_SCALAR: dict[str, Callable[..., Number]] = {
    "add": lambda a, b: a or b if isinstance(a, bool) else a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a and b if isinstance(a, bool) else a * b,
    "neg": lambda a: -a,
    "abs": abs,
    "max": lambda a, b: a if a != a or a >= b else b,
    "min": lambda a, b: a if a != a or a <= b else b,
    "select": lambda c, a, b: a if c else b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "floordiv": lambda a, b: a // b if b else 0,
    "mod": lambda a, b: a % b if b else 0,
}


class Violation(Exception):
    """The program has no meaning: an index out of range, an element written twice or read too early."""


class Interpreter:
    """Runs ``program`` on ``arrays``; ``memory`` holds every tensor as a dict of elements."""

    def __init__(self, program: Program, arrays: Mapping[str, Array], sizes: Mapping[str, int]) -> None:
        self.program, self.sizes, self.dtypes = program, dict(sizes), program.dtypes
        self.shapes = {t.name: tuple(e.evaluate(sizes) for e in t.shape) for t in program.tensors}
        self.memory: dict[Element, Number] = {}
        self.writer: dict[Element, tuple[Combine, Point]] = {}
        self.started: set[str] = set()
        for tensor in program.tensors:
            self._start(tensor, arrays)

    def _start(self, tensor: Tensor, arrays: Mapping[str, Array]) -> None:
        ops = {s.combine for s in self.program.statements if s.out.tensor == tensor.name} - {Combine.SET}
        if tensor.role in (Role.OUT, Role.TEMP) and len(ops) > 1:
            raise Violation(f"{tensor.name} has several op=")
        for place in product(*map(range, self.shapes[tensor.name])):
            if tensor.name in arrays:
                self.memory[tensor.name, place] = _number(arrays[tensor.name][place].item(), tensor.dtype)
            elif ops:
                self.memory[tensor.name, place] = next(iter(ops)).neutral(tensor.dtype)

    def run(self) -> dict[str, Array]:
        for group in self.program.groups():
            statements = [self.program.statements[n] for n in group]
            if statements[0].seq:
                self.started |= {s.out.tensor for s in statements}
            for step in _points(statements[0].seq, self.sizes):
                for statement in statements:
                    self._statement(statement, {**self.sizes, **dict(step)}, step)
            self.started |= {s.out.tensor for s in statements}
        for tensor in self.program.tensors:
            if tensor.role is Role.OUT and tensor.name not in self.started:
                raise Violation(f"{tensor.name} is never written")
        return {t.name: self._array(t) for t in self.program.outputs}

    def _array(self, tensor: Tensor) -> Array:
        array = np.zeros(self.shapes[tensor.name], tensor.dtype.numpy)
        for place in np.ndindex(array.shape):
            if (tensor.name, place) not in self.memory:
                raise Violation(f"{tensor.name}{place} is never written")
            array[place] = self.memory[tensor.name, place]
        return array

    def _statement(self, statement: Statement, fixed: dict[str, int], step: Point) -> None:
        """All points read what was there before the statement; contributions meet in its own type."""
        out = self.dtypes[statement.out.tensor]
        own = statement_type(statement.value, self.dtypes, out)
        new: dict[Element, Number] = {}
        at: dict[Element, set[Point]] = {}
        read: list[tuple[Element, Point]] = []
        for point in _points(statement.loops, fixed):
            values = {**fixed, **dict(point)}
            self.read_here: list[Element] = []
            if not self._present(statement, values):
                continue
            value = self._value(statement.value, own, values)
            element = self._element(statement.out, values)
            if statement.combine is Combine.SET:
                if element in self.writer or element in new:
                    raise Violation(f"{element} is written twice")
                new[element] = value
            else:
                if self.writer.get(element, (statement.combine,))[0] is not statement.combine:
                    raise Violation(f"{element} is written in two ways")
                start = new[element] if element in new else _convert(self.memory[element], out, own)
                new[element] = _wrap(_SCALAR[statement.combine.function or ""](start, value), own)
            read += [(e, point) for e in self.read_here]
            at.setdefault(element, set()).add(point)
        for element, point in read:
            if at.get(element, set()) - {point}:
                raise Violation(f"{element} is read and written by different points")
        for element, value in new.items():
            self.writer[element] = (statement.combine, step)
            self.memory[element] = _store(value, own, out)

    def _present(self, statement: Statement, values: dict[str, int]) -> bool:
        for condition in sorted(statement.where, key=lambda c: any(True for _ in c.index.reads())):
            value = self._index(condition.index, values)
            if not (value == 0 if condition.equal else value >= 0):
                return False
        return True

    def _index(self, index: Index, values: dict[str, int]) -> int:
        total = index.const
        for atom, factor in index.terms:
            if isinstance(atom, str):
                total += factor * values[atom]
            elif isinstance(atom, Quotient):
                total += factor * (self._index(atom.index, values) // atom.divisor)
            elif isinstance(atom, Remainder):
                total += factor * (self._index(atom.index, values) % atom.divisor)
            else:
                total += factor * int(self._load(atom, values))
        return total

    def _element(self, access: Access, values: dict[str, int]) -> Element:
        place = tuple(self._index(i, values) for i in access.indices)
        if not all(0 <= p < n for p, n in zip(place, self.shapes[access.tensor], strict=True)):
            raise Violation(f"{access} is {place}")
        return access.tensor, place

    def _load(self, access: Access, values: dict[str, int]) -> Number:
        element = self._element(access, values)
        role = self.program.tensor(access.tensor).role
        if role in (Role.OUT, Role.TEMP) and (element not in self.memory or access.tensor not in self.started):
            raise Violation(f"{element} is read before it is written")
        self.read_here.append(element)
        return self.memory[element]

    def _value(self, e: Expr, own: DType, values: dict[str, int]) -> Number:
        if isinstance(e, Literal):
            return _convert(e.value, DTYPES["i64"] if isinstance(e.value, int) else DTYPES["f64"], own)
        if isinstance(e, Read):
            return _convert(self._load(e.access, values), self.dtypes[e.access.tensor], own)
        if isinstance(e, Position):
            return _convert(self._index(e.index, values), DTYPES["i64"], own)
        if isinstance(e, Cast):
            inner = compute_type(value_type(e.arg, self.dtypes, None))
            return _convert(_store(self._value(e.arg, inner, values), inner, e.dtype), e.dtype, own)
        if isinstance(e, Bitcast):
            inner = value_type(e.arg, self.dtypes, None)
            stored = _store(self._value(e.arg, compute_type(inner), values), compute_type(inner), inner)
            bits = np.asarray(stored, inner.numpy).view(e.dtype.numpy)
            return _convert(_number(bits.item(), e.dtype), e.dtype, own)
        return self._apply(e, own, values)

    def _apply(self, e: Apply, own: DType, values: dict[str, int]) -> Number:
        args = []
        for arg, kind in zip(e.args, argument_types(e, self.dtypes, own), strict=True):
            inner = compute_type(value_type(arg, self.dtypes, kind))
            args.append(_convert(self._value(arg, inner, values), inner, kind))
        result = _SCALAR[e.function](*args)
        return _convert(result, DTYPES["bool"], own) if isinstance(result, bool) else _wrap(result, own)


def interpret(program: Program, arrays: Mapping[str, Array], sizes: Mapping[str, int]) -> dict[str, Array]:
    """All outputs of ``program``; raises a Violation where it has no meaning."""
    return Interpreter(program, arrays, sizes).run()


def _points(loops: tuple[Loop, ...], fixed: Mapping[str, int]) -> Iterator[Point]:
    names = [loop.name for loop in loops]
    for values in product(*(range(loop.extent.evaluate(fixed)) for loop in loops)):
        yield tuple(zip(names, values, strict=True))


def _number(value: object, dtype: DType) -> Number:
    if dtype.kind is Kind.BOOL:
        return bool(value)
    return float(str(value)) if dtype.is_float else int(str(value))


def _wrap(value: Number, own: DType) -> Number:
    return (int(value) - own.low) % (1 << own.bits) + own.low if own.is_integer else value


def _convert(value: Number, source: DType, target: DType) -> Number:
    if target.is_float:
        return float(value)
    if target.kind is Kind.BOOL:
        return value != 0
    if source.is_float and not isinstance(value, int):
        return 0 if value != value else min(max(int(min(max(value, -(2.0**70)), 2.0**70)), target.low), target.high)
    return _wrap(int(value), target)


def _store(value: Number, source: DType, target: DType) -> Number:
    value = _convert(value, source, target)
    if not target.is_float:
        return value
    with np.errstate(all="ignore"):
        return float(np.asarray(value, np.float64).astype(target.numpy))
