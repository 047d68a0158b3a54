"""Compiled regions -> a model: which bytes each value is, and the steps over them.

A view is its operand's bytes under another shape. A value that the caller gets is made where the caller wants it; all
others lie in the arena for as long as they are needed, beside the work memory of the step that runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from dovetail.base.errors import LimitError
from dovetail.base.limits import ModelLimits
from dovetail.graph.grouping import Region
from dovetail.ir.graph.bound import BoundGraph
from dovetail.ir.graph.graph import Type
from dovetail.model.constants import Constants
from dovetail.model.hosts import node_text
from dovetail.model.memory import Lifetime, lay_out
from dovetail.model.packed import Packed
from dovetail.model.parts import Part
from dovetail.model.report import VIEW
from dovetail.runtime.arrays import Parameter
from dovetail.runtime.model_image import Copy, HostStep, Image, Machine, NativeStep, Place, Space, Tensor


@dataclass(frozen=True, slots=True)
class Piece:
    """A region; a compiled one with its part, and the graph's value for each of the names the part has."""

    region: Region
    part: Part | None = None
    values: Mapping[str, str] = field(default_factory=dict)
    in_place: tuple[tuple[str, str], ...] = ()
    """(operand, result) of the part that may share their bytes."""

    @property
    def results(self) -> tuple[str, ...]:
        return tuple(name for node in self.region.nodes for name in node.results)

    @property
    def operands(self) -> tuple[str, ...]:
        return tuple(name for node in self.region.nodes for name in node.operands)


def assemble(
    bound: BoundGraph,
    types: Mapping[str, Type],
    pieces: Sequence[Piece],
    machine: Machine,
    threads: int,
    packed: Packed | None = None,
) -> tuple[Image, Constants]:
    """The model that runs ``pieces`` one after the other, and its constants, of which others may share ``packed``."""
    return _Assembly(bound, types, pieces, Constants(bound.data, machine, threads, packed), machine, threads).image()


def check_memory(bound: BoundGraph, types: Mapping[str, Type], limits: ModelLimits) -> None:
    """Refuses a graph of which one value, or all constants together, take more than is allowed, by name."""
    for name, t in types.items():
        if _bytes(t) > limits.tensor_bytes:
            raise LimitError(
                f"'{bound.shown(name)}' takes {_bytes(t):,} bytes, the limit is {limits.tensor_bytes:,}",
                hint="ModelLimits(tensor_bytes=...)",
            )
    total = sum(_bytes(value.type) for value in bound.graph.constants)
    _check_total(total, "its constants take", limits)


def check_arena(image: Image, constants: Constants, limits: ModelLimits) -> None:
    _check_total(image.arena_bytes + sum(a.nbytes for a in constants.arrays), "it takes", limits)


class _Assembly:
    """Values are known by their roots: what a view is a view of, through all views."""

    def __init__(
        self,
        bound: BoundGraph,
        types: Mapping[str, Type],
        pieces: Sequence[Piece],
        constants: Constants,
        machine: Machine,
        threads: int,
    ) -> None:
        self.bound, self.types, self.machine, self.threads = bound, types, machine, threads
        self.graph = bound.graph
        self.constants = constants
        self.steps = [piece for piece in pieces if piece.region.kind != VIEW]
        self.roots: dict[str, str] = {}
        for piece in pieces:
            if piece.region.kind == VIEW:
                self.roots[piece.results[0]] = self.root(piece.operands[0])
        self.inputs = {value.name: number for number, value in enumerate(self.graph.inputs)}
        self.made = {name: number for number, piece in enumerate(self.steps) for name in piece.results}
        self.outputs, self.copied = self._outputs()
        self.offsets, self.work, self.arena_bytes = self._arena()

    def image(self) -> tuple[Image, Constants]:
        steps = tuple(self._step(number, piece) for number, piece in enumerate(self.steps))
        copies = tuple(Copy(self.place(self.root(self.graph.outputs[n])), n) for n in self.copied)
        inputs = tuple(self._parameter(value.name, False) for value in self.graph.inputs)
        outputs = tuple(self._parameter(name, True) for name in self.graph.outputs)
        image = Image(self.machine, self.threads, inputs, outputs, steps, copies, self.arena_bytes)
        return image, self.constants

    def root(self, value: str) -> str:
        return self.roots.get(value, value)

    def place(self, root: str) -> Place:
        """Where a value lies that is used as it is."""
        if root in self.inputs:
            return Place(Space.INPUT, self.inputs[root])
        if root in self.outputs:
            return Place(Space.OUTPUT, self.outputs[root])
        if self.graph.is_constant(root):
            return self.constants.whole(root)
        return Place(Space.ARENA, self.offsets[root])

    def _outputs(self) -> tuple[dict[str, int], list[int]]:
        """Roots that are made in an output; outputs that are copied: inputs, constants, what is an output already."""
        found: dict[str, int] = {}
        copied = []
        for number, name in enumerate(self.graph.outputs):
            root = self.root(name)
            if root in self.made and root not in found:
                found[root] = number
            else:
                copied.append(number)
        return found, copied

    def _arena(self) -> tuple[dict[str, int], list[tuple[int, int]], int]:
        """Offsets of values, offsets of each step's shared and private work memory, and the bytes of it all."""
        last, seen = self._last(), self._seen()
        values = [name for name in self.made if name in seen and name not in self.outputs]
        homes = self._homes(values, last)
        own = [name for name in values if homes[name] == name]
        ends = dict.fromkeys(own, 0)
        for name in values:
            ends[homes[name]] = max(ends[homes[name]], last[name])
        buffers = [Lifetime(_bytes(self.types[name]), self.made[name], ends[name]) for name in own]
        buffers += [Lifetime(length, n, n) for n, piece in enumerate(self.steps) for length in self._work(piece)]
        offsets, total = lay_out(buffers)
        work = offsets[len(own) :]
        pairs = [(work[2 * n], work[2 * n + 1]) for n in range(len(self.steps))]
        placed = dict(zip(own, offsets, strict=False))
        return {name: placed[homes[name]] for name in values}, pairs, total

    def _last(self) -> dict[str, int]:
        """The last step that reads each value, under any name; behind all steps for what the caller gets."""
        last = dict(self.made)
        for number, piece in enumerate(self.steps):
            for root in map(self.root, piece.operands):
                if root in last:
                    last[root] = max(last[root], number)
        for name in self.graph.outputs:
            if self.root(name) in last:
                last[self.root(name)] = len(self.steps)
        return last

    def _homes(self, values: Sequence[str], last: Mapping[str, int]) -> dict[str, str]:
        """Whose bytes each value lies in: its own, or those of an operand that dies where the value is made."""
        homes = {name: name for name in values}
        for number, piece in enumerate(self.steps):
            for operand, result in piece.in_place:
                old, new = self.root(piece.values[operand]), piece.values[result]
                if homes.get(new) == new and old in homes and last[old] == number:
                    homes[new] = homes[old]
        return homes

    def _seen(self) -> set[str]:
        """Values that leave their step: temporaries of a kernel are part of its work memory."""
        found: set[str] = set()
        for piece in self.steps:
            if piece.part is None:
                found.update(piece.results)
            else:
                found.update(piece.values[p.name] for p in piece.part.arguments if p.writable)
        return found

    def _work(self, piece: Piece) -> tuple[int, int]:
        if piece.part is None:
            return 0, 0
        units = self.threads if piece.part.parallel else 1
        return piece.part.shared_bytes, piece.part.private_bytes * units

    def _step(self, number: int, piece: Piece) -> NativeStep | HostStep:
        part = piece.part
        if part is None:
            (node,) = piece.region.nodes
            operands, results = (tuple(map(self._tensor, names)) for names in (node.operands, node.results))
            return HostStep(piece.region.title, node_text(node, self.types), operands, results)
        shared, private = self.work[number]
        return NativeStep(
            piece.region.title,
            part.entry,
            part.parallel,
            tuple(self._arguments(piece, part)),
            shared,
            private,
            part.private_bytes,
            part.status_bytes,
            tuple(self.bound.shown(piece.values.get(name, name)) for name in part.buffers),
            part.values,
        )

    def _arguments(self, piece: Piece, part: Part) -> Iterator[Place]:
        made = self.constants.made(part, piece.values) if part.ahead else {}
        for parameter in part.arguments:
            if parameter.name in made:
                yield made[parameter.name]
                continue
            value = piece.values[parameter.name]
            layout = part.layouts.get(parameter.name)
            yield self.place(self.root(value)) if layout is None else self.constants.laid_out(value, layout)

    def _tensor(self, value: str) -> Tensor:
        t = self.types[value]
        return Tensor(self.place(self.root(value)), t.dtype.name, _shape(t))

    def _parameter(self, value: str, writable: bool) -> Parameter:
        t = self.types[value]
        return Parameter(self.bound.shown(value), t.dtype.name, _shape(t), writable)


def _check_total(total: int, takes: str, limits: ModelLimits) -> None:
    if total > limits.memory_bytes:
        raise LimitError(
            f"the model is too large: {takes} {total:,} bytes, the limit is {limits.memory_bytes:,}",
            hint="ModelLimits(memory_bytes=...)",
        )


def _shape(t: Type) -> tuple[int, ...]:
    return tuple(extent.const for extent in t.shape)


def _bytes(t: Type) -> int:
    return prod(_shape(t)) * t.dtype.bytes
