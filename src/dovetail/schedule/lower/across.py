"""Results whose lanes are rows of memory: what lies side by side in the rows is written in one go.

    store_strided(y[k, p], r0) {S}  store_strided(y[k, p+1], r1) {S}  ..   ->   store_rows(y[k, p], r0, r1, ..) {S}

A store of its own for every element takes as long as a short product; the machine says for how many neighbours it has
an instruction that does better.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from dovetail.base.dtypes import DType
from dovetail.ir.index import Index, constant
from dovetail.ir.nest import Call, Operand, Place
from dovetail.schedule.repertoire import Repertoire


@dataclass
class Neighbours:
    """Vectors to be stored, each beside the one before."""

    instructions: Repertoire
    dtype: DType
    lanes: int
    stride: Index = field(default_factory=lambda: constant(0))
    places: list[Place] = field(default_factory=list)
    values: list[Operand] = field(default_factory=list)

    @property
    def is_full(self) -> bool:
        """No instruction writes more of them."""
        return len(self.places) == self.instructions.rows_at_once(self.dtype.name, self.lanes)[0]

    def follows(self, place: Place, stride: Index) -> bool:
        """Whether a vector at ``place`` goes on from the last one."""
        if not self.places or stride != self.stride or place.buffer != self.places[-1].buffer:
            return False
        (*before, last), (*after, own) = self.places[-1].indices, place.indices
        return before == after and own - last == constant(1)

    def add(self, place: Place, value: Operand, stride: Index) -> None:
        self.places.append(place)
        self.values.append(value)
        self.stride = stride

    def written(self) -> tuple[Call, ...]:
        """Calls that store all of them; none are left."""
        calls: list[Call] = []
        at = 0
        for count in self.instructions.row_parts(self.dtype.name, self.lanes, len(self.places)):
            key = ("store_rows", count) if count > 1 else ("store", False, True)
            entry = self.instructions.find(key[0], self.dtype.name, self.lanes, *key[1:])
            assert entry is not None, "a strided store is there where lanes were chosen across memory"
            values = self.values[at : at + count]
            operands = tuple(self.places[at] if s == "out" else values[int(s)] for s in entry.sources)
            calls.append(Call(entry.instruction.name, operands, ((entry.stride, (self.stride,)),)))
            at += count
        self.places.clear()
        self.values.clear()
        return tuple(calls)
