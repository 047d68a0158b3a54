"""One instruction call on memories: operands found, every rule checked, the program run, what it wrote remembered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from dovetail.base.errors import SimulationError
from dovetail.ir.index import Access, Index, constant
from dovetail.ir.instruction_function import Run, dense_strides, instruction_function, touched
from dovetail.ir.nest import Call, Cell, Number, Operand, Place
from dovetail.ir.nest_verify import is_result, register_lanes
from dovetail.sim.large import is_large, large_function
from dovetail.sim.operands import check_parameters, laid_out, regions, target_shapes
from dovetail.sim.storage import Held, Lock, Segment, Span, span_of
from dovetail.sim.units import Topology, is_placed
from dovetail.targets.model import Instruction, Target

Array = npt.NDArray[np.generic]
_Found = tuple[Segment, int]
"""An operand: its segment, and the place of its first element there."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """An instruction with parameters: a function on storage, and which elements it touches."""

    run: Run
    reads: tuple[tuple[int, Span], ...]
    """Operand and elements."""
    written: int
    result: Span


class Execution:
    """Live buffers, started calls, and the unit that is at work."""

    def __init__(self, target: Target, topology: Topology, env: Mapping[str, int]) -> None:
        self.target, self.topology, self.env = target, topology, env
        self.memories = {m.name: m for m in target.memories}
        self.shapes = target_shapes(target)
        self.buffers: dict[str, Held] = {}
        self.unit: tuple[str, int] = ("", 0)
        self.pending: dict[tuple[str, str, int], list[Segment]] = {}
        self.calls = 0
        self._offsets: dict[tuple[int, tuple[int, ...]], Index | None] = {}
        """By the place's identity, which the nest keeps alive."""
        self._prepared: dict[tuple[str, tuple[bool, ...], tuple[int, ...], tuple[int, ...]], Prepared] = {}

    # -- calls

    def call(self, call: Call, token: str) -> None:
        """Run ``call``; with a ``token`` it goes on until the wait for it."""
        instruction = self.target.instruction(call.instruction)
        if instruction.broadcast:
            self.check_broadcast(instruction, call)
        if token:
            self.check_start(instruction, call)
        values = tuple(min(self.number(i) for i in indices) for _, indices in call.params)
        prepared = self.prepare(instruction, call, values)
        held = [self.buffers[o.buffer] for o in call.operands if isinstance(o, Cell | Place)]
        forked = [h for h in held if h.own]
        if self.unit[0] or not forked:
            self.run_on(self.unit, instruction, call, prepared, token)
            return
        owner = max((self.topology.owners[h.buffer.memory] for h in forked), key=lambda u: self.topology.totals[u])
        for number in range(self.topology.totals[owner]):
            self.run_on((owner, number), instruction, call, prepared, token)

    def run_on(
        self, unit: tuple[str, int], instruction: Instruction, call: Call, prepared: Prepared, token: str
    ) -> None:
        self.calls += 1
        found = [self.find(unit, n == prepared.written, call, n) for n in range(len(call.operands))]
        for number, span in prepared.reads:
            self.check_read(call, number, found[number], span)
        result, first = found[prepared.written]
        self.check_write(call, prepared.written, found[prepared.written], prepared.result)
        prepared.run([(segment.flat, place) for segment, place in found])
        written = prepared.result.moved(first)
        result.written[written.selection] = True
        if token:
            self.lock(call, token, found, prepared)

    def prepare(self, instruction: Instruction, call: Call, values: tuple[int, ...]) -> Prepared:
        in_registers = tuple(not isinstance(o, Place) for o in call.operands)
        parts = tuple(self.buffers[o.buffer].part if isinstance(o, Place) else 0 for o in call.operands)
        key = (instruction.name, in_registers, values, parts)
        found = self._prepared.get(key)
        if found is None:
            given = {name: value for (name, _), value in zip(call.params, values, strict=True)}
            check_parameters(instruction, given, self.where(call))
            found = self._prepared[key] = self.build(instruction, given, in_registers, parts)
        return found

    def build(
        self, instruction: Instruction, given: Mapping[str, int], in_registers: Sequence[bool], parts: Sequence[int]
    ) -> Prepared:
        boxes = regions(instruction, self.shapes, given, in_registers, parts)
        result = next(n for n, box in enumerate(boxes) if box.writes)
        on_host = self.runs_on_host(instruction)
        if (is_large(instruction, given) or on_host) and not any(in_registers):
            run, large_reads, large_span = large_function(instruction, self.shapes.layouts, boxes, given, on_host)
            return Prepared(run, large_reads, result, large_span)
        program = laid_out(instruction, self.shapes.layouts)
        cleared = 0
        if in_registers[result] and is_result(instruction.program, boxes[result].name):
            cleared = prod(boxes[result].extents)
        parameters = {s.name: given[s.name] for s in instruction.program.sizes}
        strides = {box.name: box.strides for box in boxes}
        run = instruction_function(program, [box.name for box in boxes], strides, parameters, cleared)
        reads, written = touched(run)
        span = span_of(written)
        if cleared:
            span = Span(0, max(cleared - 1, span.high))
        spans = tuple((t.operand, span_of(t)) for t in reads if t.high >= t.low)
        return Prepared(run, spans, written.operand, span)

    def runs_on_host(self, instruction: Instruction) -> bool:
        """The host's instructions are whole statements, which the reference evaluator runs as it runs the program's."""
        return self.target.host is not None and instruction.unit == self.target.host.name

    # -- operands

    def find(self, unit: tuple[str, int], writes: bool, call: Call, number: int) -> _Found:
        operand = call.operands[number]
        wanted = self.target.instruction(call.instruction).operands[number]
        if isinstance(operand, Cell):
            held = self.buffers[operand.buffer]
            steps = zip(operand.position, dense_strides(held.shape), strict=True)
            return self.seen(held, unit, writes), sum(p * s for p, s in steps) * held.buffer.lanes
        if isinstance(operand, Place):
            held = self.buffers[operand.buffer]
            self.check_memory(held, wanted.memory, call, wanted.name)
            segment, first = self.seen(held, unit, writes), self.offset(held, operand)
            self.check_alignment(held, segment, first, call, wanted.name)
            return segment, first
        lanes = register_lanes(self.target.instruction(call.instruction).program, wanted.name)
        value = operand.value if isinstance(operand, Number) else self.number(operand.index)
        spread: Array = np.full(lanes, value, wanted.dtype.numpy)
        return Segment(spread, np.ones(lanes, np.bool_), 0), 0

    def seen(self, held: Held, unit: tuple[str, int], writes: bool) -> Segment:
        owner = self.topology.owners[held.buffer.memory]
        return held.segment(self.topology.instance(owner, unit[0], unit[1]), writes and bool(unit[0]))

    def offset(self, held: Held, place: Place) -> int:
        """The place of an element; where nothing is read on the way, one index worked out once."""
        key = (id(place), held.strides)
        if key not in self._offsets:
            plain = not any(map(_is_indirect, place.indices))
            steps = zip(place.indices, held.strides, strict=True)
            self._offsets[key] = sum((i * stride for i, stride in steps), constant(0)) if plain else None
        known = self._offsets[key]
        return self.checked_offset(held, place.indices) if known is None else known.evaluate(self.env)

    def checked_offset(self, held: Held, indices: tuple[Index, ...]) -> int:
        total = 0
        for dimension, (index, stride) in enumerate(zip(indices, held.strides, strict=True)):
            value = self.number(index)
            if not 0 <= value < held.shape[dimension] and _is_indirect(index):
                raise SimulationError(
                    f"index {value} outside dimension {dimension} of {held.buffer}", where=self.at(str(index))
                )
            total += value * stride
        return total

    def number(self, index: Index) -> int:
        """An index where the loops stand now; indirect reads are made, and checked."""
        if _is_indirect(index):
            index = index.map_atoms(lambda atom: constant(self.element(atom)) if isinstance(atom, Access) else None)
        return index.evaluate(self.env)

    def element(self, access: Access) -> int:
        held = self.buffers[access.tensor]
        segment, place = self.seen(held, self.unit, False), self.checked_offset(held, access.indices)
        where = self.at(f"index {access}")
        if not 0 <= place < segment.flat.size:
            raise SimulationError(f"an index is read from element {place} of {held.buffer}", where=where)
        if not segment.written[place]:
            raise SimulationError(f"an index is read from {held.buffer} before it is written", where=where)
        for lock in segment.locks:
            if lock.writes and lock.span.meets(Span(place, place)):
                raise SimulationError(f"an index is read while '{lock.token}' writes it", where=where)
        return int(segment.flat[place])

    # -- asynchronous calls

    def lock(self, call: Call, token: str, found: Sequence[_Found], prepared: Prepared) -> None:
        segments = self.pending.setdefault((token, *self.unit), [])
        spans = [(n, span, False) for n, span in prepared.reads if n != prepared.written]
        for number, span, writes in (*spans, (prepared.written, prepared.result, True)):
            segment, first = found[number]
            segment.locks.append(Lock(token, call, span.moved(first), writes))
            segments.append(segment)

    def check_start(self, instruction: Instruction, call: Call) -> None:
        if not instruction.is_async:
            hint = f"async = true in {instruction.source}, or a plain call"
            raise SimulationError(f"start of {instruction.name}, which is not asynchronous", where=str(call), hint=hint)

    def check_broadcast(self, instruction: Instruction, call: Call) -> None:
        written = instruction.program.statements[-1].out.tensor
        for operand in instruction.operands:
            if operand.name != written and self.topology.is_private(operand.memory):
                raise SimulationError(
                    f"{call.instruction} sends from the memory '{operand.memory}' of one {instruction.broadcast}",
                    where=self.where(call),
                    why="a nest cannot say which of them sends, so its result has no meaning here",
                    hint="send from a memory that all of them share",
                )

    def wait(self, token: str) -> None:
        for segment in self.pending.pop((token, *self.unit), ()):
            segment.locks = [lock for lock in segment.locks if lock.token != token]

    def finish(self) -> None:
        """The nest has ended."""
        for token, unit, number in self.pending:
            where = f"on {unit} {number}" if unit else None
            raise SimulationError(f"'{token}' is started but never waited for", where=where)

    def check_free(self, held: Held) -> None:
        """A buffer's scope ends."""
        for segment in held.segments():
            for lock in segment.locks:
                verb = "writes" if lock.writes else "reads"
                raise SimulationError(
                    f"buffer '{held.buffer.name}' ends while '{lock.token}' still {verb} it",
                    where=self.at(f"start {lock.token} = {lock.call}"),
                    hint=f"wait {lock.token} inside the alloc",
                )

    # -- rules

    def check_memory(self, held: Held, wanted: str, call: Call, name: str) -> None:
        have = held.buffer.memory
        if have != wanted and (is_placed(self.memories[have]) or is_placed(self.memories[wanted])):
            what = f"operand '{name}' of {call.instruction} lies in memory '{have}'"
            raise SimulationError(what, where=self.where(call), why=f"the instruction takes it from '{wanted}'")

    def check_alignment(self, held: Held, segment: Segment, first: int, call: Call, name: str) -> None:
        memory = self.memories[held.buffer.memory]
        place = first % held.part if held.part else first
        address = segment.address + place * held.buffer.dtype.bytes
        if is_placed(memory) and address % memory.align:
            raise SimulationError(
                f"operand '{name}' of {call.instruction} starts at address {address} of '{memory.name}'",
                where=self.where(call),
                why=f"addresses there are multiples of {memory.align}",
                hint="tiles whose rows fill whole multiples",
            )

    def check_bounds(self, call: Call, number: int, found: _Found, span: Span) -> None:
        segment, first = found
        low, high = first + span.low, first + span.high
        if low < 0 or high >= segment.flat.size:
            operand, name = call.operands[number], self.operand_name(call, number)
            raise SimulationError(
                f"{call.instruction} touches elements {low}..{high} of {segment.flat.size} through operand '{name}'",
                where=self.where(call),
                why=f"{self.shown(operand)} is too small for what the instruction reaches from there",
            )

    def check_read(self, call: Call, number: int, found: _Found, span: Span) -> None:
        self.check_bounds(call, number, found, span)
        segment, first = found
        here = span.moved(first)
        ready = segment.written[here.selection]
        if not ready.all():
            place = here.low + int(np.argmin(ready)) if here.places is None else int(here.places[int(np.argmin(ready))])
            name = self.operand_name(call, number)
            raise SimulationError(
                f"{call.instruction} reads element {place} of {self.shown(call.operands[number])} "
                f"through operand '{name}' before anything wrote it",
                where=self.where(call),
                hint="clear or fill it first",
            )
        for lock in segment.locks:
            if lock.writes and lock.span.meets(here):
                raise self.too_early(call, number, lock, "reads")

    def check_write(self, call: Call, number: int, found: _Found, span: Span) -> None:
        if span.high < span.low:
            return
        self.check_bounds(call, number, found, span)
        segment, first = found
        for lock in segment.locks:
            if lock.span.meets(span.moved(first)):
                raise self.too_early(call, number, lock, "writes")

    def too_early(self, call: Call, number: int, lock: Lock, verb: str) -> SimulationError:
        return SimulationError(
            f"{call.instruction} {verb} {self.shown(call.operands[number])} while the copy '{lock.token}' "
            f"{'writes' if lock.writes else 'reads'} it",
            where=self.where(call),
            why=f"started by {lock.call}",
            hint=f"wait {lock.token} before this call",
        )

    # -- words

    def operand_name(self, call: Call, number: int) -> str:
        return self.target.instruction(call.instruction).operands[number].name

    def shown(self, operand: Operand) -> str:
        if isinstance(operand, Cell | Place):
            return f"{self.buffers[operand.buffer].buffer}"
        return str(operand)

    def where(self, call: Call) -> str:
        return self.at(f"call {call}")

    def at(self, text: str) -> str:
        """``text``, and where the loops and units stand."""
        values = ", ".join(f"{name} = {value}" for name, value in self.env.items())
        place = f"\nat {values}" if values else ""
        return f"{text}{place}\non {self.unit[0]} {self.unit[1]}" if self.unit[0] else f"{text}{place}"


def _is_indirect(index: Index) -> bool:
    return not index.is_affine and any(True for _ in index.reads())
