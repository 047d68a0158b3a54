"""What a nest means, in NumPy: every call's instruction is run as its own program, in order.

Freshly allocated storage holds NaN or a conspicuous integer, so a nest that uses what it never wrote is found out.
Lanes of a result that an instruction does not write are zero, or its neutral element, as in the reference evaluator.
A started call takes effect when it is waited for: one that nobody waits for, or whose operands change in between,
shows. For small instances; every node becomes a Python closure once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod

import numpy as np
import numpy.typing as npt

from dovetail.base.dtypes import DType, Kind
from dovetail.base.errors import CodegenError, IndexRangeError
from dovetail.ir.index import Access, Atom, Condition, Index, Quotient, affine, constant
from dovetail.ir.instruction_function import Run, Storage, dense_strides, instruction_function
from dovetail.ir.nest import (
    Alloc,
    Barrier,
    Buffer,
    Call,
    Cell,
    Fetch,
    Loop,
    Nest,
    Node,
    Number,
    Operand,
    Parallel,
    Place,
    Start,
    Wait,
    When,
    calls,
)
from dovetail.ir.nest_verify import InstructionLike, is_result, register_lanes

Array = npt.NDArray[np.generic]
Env = dict[str, int]
Step = Callable[[Env], None]
Count = Callable[[Env], int]
Find = Callable[[Env], Storage]
_NOTHING = (Barrier, Fetch)
"""Nodes that mean nothing to one unit."""
_PREPARED = 1024
"""Instructions that stay prepared from one evaluation to the next."""


def evaluate_nest(
    nest: Nest, instructions: Mapping[str, InstructionLike], arrays: Mapping[str, Array], sizes: Mapping[str, int]
) -> dict[str, Array]:
    """The arguments ``nest`` writes, run by one unit on ``arrays`` (all arguments, not changed) with ``sizes``."""
    evaluator = _Evaluator(nest, instructions, sizes)
    for buffer in nest.arguments:
        evaluator.load(buffer, arrays[buffer.name])
    step = evaluator.nodes(nest.body)
    with np.errstate(all="ignore"):
        step({})
    if evaluator.pending:
        raise CodegenError(f"call '{min(evaluator.pending)}' is started but never waited for")
    return {b.name: evaluator.view(b).copy() for b in nest.arguments if b.name in nest.written}


class _Evaluator:
    """Turns nodes into closures over flat storage."""

    def __init__(self, nest: Nest, instructions: Mapping[str, InstructionLike], sizes: Mapping[str, int]) -> None:
        self.instructions = instructions
        self.sizes = {name: constant(sizes[name]) for name in nest.sizes}
        self.storage: dict[str, Array] = {}
        self.buffers: dict[str, Buffer] = {}
        self.pending: dict[str, list[Callable[[], None]]] = {}
        self.registers = {o.buffer for call in calls(nest.body) for o in call.operands if isinstance(o, Cell)}
        self.functions: dict[tuple[str, tuple[int, ...]], Run] = {}

    # -- storage

    def load(self, buffer: Buffer, array: Array) -> None:
        shape = self.numbers(buffer.shape)
        if array.shape != shape:
            raise CodegenError(f"array of shape {array.shape} for {buffer}, expected {shape}")
        self.allocate(buffer)
        self.view(buffer)[...] = array

    def allocate(self, buffer: Buffer) -> None:
        self.buffers[buffer.name] = buffer
        shape = self.numbers(buffer.shape)
        count = prod(shape) * buffer.lanes
        if buffer.strides:
            steps = zip(shape, self.numbers(buffer.strides), strict=True)
            count = 1 + sum((extent - 1) * stride for extent, stride in steps)
        self.storage[buffer.name] = np.full(max(count, 0), _garbage(buffer.dtype), buffer.dtype.numpy)

    def view(self, buffer: Buffer) -> Array:
        """A buffer in memory in its own shape."""
        flat, shape = self.storage[buffer.name], self.numbers(buffer.shape)
        strides = tuple(s * flat.itemsize for s in self.strides(buffer))
        return np.lib.stride_tricks.as_strided(flat, shape, strides)

    def strides(self, buffer: Buffer) -> tuple[int, ...]:
        return self.numbers(buffer.strides) if buffer.strides else dense_strides(self.numbers(buffer.shape))

    def numbers(self, indices: tuple[Index, ...]) -> tuple[int, ...]:
        return tuple([i.substitute(self.sizes).evaluate({}) if i.terms else i.const for i in indices])

    # -- nodes

    def nodes(self, nodes: tuple[Node, ...]) -> Step:
        steps = tuple(self.node(node) for node in nodes if not isinstance(node, _NOTHING))
        if len(steps) == 1:
            return steps[0]

        def run(env: Env) -> None:
            for step in steps:
                step(env)

        return run

    def node(self, node: Node) -> Step:
        if isinstance(node, Call):
            return self.call(node)
        if isinstance(node, Loop):
            return self.loop(node)
        if isinstance(node, Parallel):
            return self.loop(Loop(node.var, (constant(0),), node.extent, 1, node.body))
        if isinstance(node, Alloc):
            return self.alloc(node)
        if isinstance(node, When):
            return self.when(node)
        if isinstance(node, Start):
            return self.start(node)
        assert isinstance(node, Wait)
        token = node.token
        return lambda env: self.finish(token)

    def loop(self, node: Loop) -> Step:
        lower, upper = [self.index(i) for i in node.lower], [self.index(i) for i in node.upper]
        body, var, step, downward = self.nodes(node.body), node.var, node.step, node.downward

        def run(env: Env) -> None:
            values = range(max([low(env) for low in lower]), min([up(env) for up in upper]), step)
            for value in reversed(values) if downward else values:
                env[var] = value
                body(env)
            env.pop(var, None)

        return run

    def alloc(self, node: Alloc) -> Step:
        buffer = node.buffer
        self.buffers[buffer.name] = buffer
        body = self.nodes(node.body)

        def run(env: Env) -> None:
            self.allocate(buffer)
            body(env)

        return run

    def when(self, node: When) -> Step:
        """Conditions that read an index are tested last, each only where those before it hold."""
        ordered = sorted(node.conditions, key=lambda c: c.index.is_indirect)
        tests = [self.condition(c) for c in ordered]
        body, otherwise = self.nodes(node.body), self.nodes(node.otherwise)
        return lambda env: (body if all(test(env) for test in tests) else otherwise)(env)

    def start(self, node: Start) -> Step:
        step, token = self.call(node.call), node.token

        def run(env: Env) -> None:
            then = dict(env)
            self.pending.setdefault(token, []).append(lambda: step(then))

        return run

    def finish(self, token: str) -> None:
        for call in self.pending.pop(token, ()):
            call()

    # -- calls

    def call(self, call: Call) -> Step:
        instruction = self.instructions[call.instruction]
        finds = [self.operand(instruction, n, o) for n, o in enumerate(call.operands)]
        names = tuple(name for name, _ in call.params)
        values = [[self.index(i) for i in indices] for _, indices in call.params]
        in_registers = tuple(not isinstance(o, Place) for o in call.operands)

        def run(env: Env) -> None:
            given = tuple([min([v(env) for v in value]) for value in values]) if values else ()
            function = self.functions.get((call.instruction, given))
            if function is None:
                values_of = tuple(zip(names, given, strict=True))
                function = _function(_Prepared(id(instruction), values_of, in_registers, instruction))
                self.functions[call.instruction, given] = function
            function([find(env) for find in finds])

        return run

    def operand(self, instruction: InstructionLike, number: int, operand: Operand) -> Find:
        """Where an operand is; numbers and values get storage of their own."""
        if isinstance(operand, Place):
            return self.place(operand)
        if isinstance(operand, Cell):
            buffer = self.buffers[operand.buffer]
            strides = dense_strides(self.numbers(buffer.shape))
            first = sum(p * s for p, s in zip(operand.position, strides, strict=True)) * buffer.lanes
            name, storage = operand.buffer, self.storage
            return lambda env: (storage[name], first)
        wanted = instruction.operands[number]
        lanes = register_lanes(instruction.program, wanted.name)
        if isinstance(operand, Number):
            spread: Array = np.full(lanes, operand.value, wanted.dtype.numpy)
            return lambda env: (spread, 0)
        value = self.index(operand.index)
        return lambda env: (np.full(lanes, value(env), np.int64), 0)

    def place(self, place: Place) -> Find:
        buffer = self.buffers[place.buffer]
        name, storage = place.buffer, self.storage
        terms: list[tuple[Atom, int]] = []
        first = 0
        checks: list[tuple[Count, int, int]] = []
        shape = self.numbers(buffer.shape)
        for dimension, (index, stride) in enumerate(zip(place.indices, self.strides(buffer), strict=True)):
            known = index.substitute(self.sizes)
            terms += [(atom, c * stride) for atom, c in known.terms]
            first += known.const * stride
            if index.is_indirect:
                checks.append((self.index(index), shape[dimension], dimension))
        offset = self.index(affine(terms, first))
        if not checks:
            return lambda env: (storage[name], offset(env))

        def checked(env: Env) -> Storage:
            for value, extent, dimension in checks:
                if not 0 <= value(env) < extent:
                    raise IndexRangeError(f"index {value(env)} outside dimension {dimension} of {buffer}")
            return storage[name], offset(env)

        return checked

    # -- indices

    def condition(self, condition: Condition) -> Callable[[Env], bool]:
        value = self.index(condition.index)
        return (lambda env: value(env) == 0) if condition.equal else (lambda env: value(env) >= 0)

    def index(self, index: Index) -> Count:
        index = index.substitute(self.sizes)
        const = index.const
        if not index.terms:
            return lambda env: const
        if index.is_affine:
            return _affine(index)
        parts = [(self.atom(atom), c) for atom, c in index.terms]
        return lambda env: const + sum(c * part(env) for part, c in parts)

    def atom(self, atom: object) -> Count:
        if isinstance(atom, str):
            return lambda env: env[atom]
        if isinstance(atom, Access):
            find = self.place(Place(atom.tensor, atom.indices))
            return lambda env: _element(find(env))
        assert hasattr(atom, "index") and hasattr(atom, "divisor")
        inner, divisor = self.index(atom.index), atom.divisor
        if isinstance(atom, Quotient):
            return lambda env: inner(env) // divisor
        return lambda env: inner(env) % divisor


@dataclass(frozen=True, slots=True)
class _Prepared:
    """An instruction, known by the object it is, with parameters, and which of its operands are in registers."""

    identity: int
    values: tuple[tuple[str, int], ...]
    in_registers: tuple[bool, ...]
    instruction: InstructionLike = field(compare=False)


@lru_cache(maxsize=_PREPARED)
def _function(prepared: _Prepared) -> Run:
    """The instruction with these parameters and strides. Registers keep their shape whatever the parameters."""
    instruction, in_registers, values = prepared.instruction, prepared.in_registers, dict(prepared.values)
    program = instruction.program
    parameters, high = {s.name: values[s.name] for s in program.sizes}, {s.name: s.high for s in program.sizes}
    for size in program.sizes:
        if not size.low <= values[size.name] <= size.high:
            why = f"it lies in {size.low}..{size.high}"
            raise CodegenError(f"{instruction.name} called with {size.name} = {values[size.name]}", why=why)
    strides: dict[str, tuple[int, ...]] = {}
    cleared = 0
    for operand, is_register in zip(instruction.operands, in_registers, strict=True):
        shape = [e.evaluate(high if is_register else parameters) for e in program.tensor(operand.name).shape]
        named = tuple(values[s] if isinstance(s, str) else s for s in operand.strides)
        strides[operand.name] = named or dense_strides(shape)
        if is_register and is_result(program, operand.name):
            cleared = prod(shape)
    return instruction_function(program, [o.name for o in instruction.operands], strides, parameters, cleared)


def _affine(index: Index) -> Count:
    const = index.const
    pairs = tuple((str(name), c) for name, c in index.terms)
    if len(pairs) == 1:
        name, factor = pairs[0]
        return lambda env: const + factor * env[name]
    if len(pairs) == 2:
        (one, a), (two, b) = pairs
        return lambda env: const + a * env[one] + b * env[two]

    def value(env: Env) -> int:
        total = const
        for name, c in pairs:
            total += c * env[name]
        return total

    return value


def _element(storage: Storage) -> int:
    flat, place = storage
    if not 0 <= place < flat.size:
        raise IndexRangeError(f"an indirect index is read from element {place} of {flat.size}")
    return int(flat[place])


def _garbage(dtype: DType) -> int | float:
    """What no correct result is made of."""
    if dtype.is_float:
        return float("nan")
    return dtype.high if dtype.kind is Kind.BOOL else dtype.high // 3 * 2
