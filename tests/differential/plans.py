"""Random plans for a program: tiles of any size in any order, lanes, units, holds, statements under others' tiles.

Most keep the program's meaning; the others must be refused.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import strategies as st

from dovetail.ir.index import variable
from dovetail.ir.plan import Digit, Hold, Leaf, Plan, PlanNode, Tile
from dovetail.ir.program import Program, Statement
from dovetail.schedule.lanes import lane_counts
from dovetail.schedule.repertoire import repertoire
from dovetail.targets.model import Target

STEPS = (1, 1, 2, 3, 4, 5, 8, 16)


@st.composite
def plans(draw: st.DrawFn, program: Program, target: Target) -> Plan:
    """A plan for ``program``; many of them are legal."""
    maker = _Maker(draw, program, target)
    nodes: list[PlanNode] = []
    for group in program.groups():
        numbers = list(group)
        if program.statements[group[0]].seq:
            nodes.append(maker.steps(numbers))
        else:
            nodes += maker.statements(numbers)
    if len(nodes) > 1 and draw(st.integers(0, 3)) == 0:
        nodes = maker.joined(nodes)
    return Plan(tuple(nodes))


@dataclass(slots=True)
class _Maker:
    draw: st.DrawFn
    program: Program
    target: Target
    count: int = 0

    def name(self) -> str:
        self.count += 1
        return f"t{self.count}"

    def steps(self, numbers: list[int]) -> PlanNode:
        body = tuple(self.statements(numbers))
        for depth in reversed(range(len(self.program.statements[numbers[0]].seq))):
            loops = tuple((n, self.program.statements[n].seq[depth].name) for n in numbers)
            body = (Tile(self.name(), loops, 1, body),)
        return body[0]

    def statements(self, numbers: list[int]) -> list[PlanNode]:
        return [self.statement(n) for n in numbers]

    def statement(self, number: int) -> PlanNode:
        """Tiles around a leaf; sometimes the output in registers, sometimes a read in another layout."""
        statement = self.program.statements[number]
        node: PlanNode = self.leaf(number, statement)
        if not statement.loops:
            return node
        chosen = [self.draw(st.sampled_from(statement.loops)).name for _ in range(self.draw(st.integers(0, 4)))]
        steps = [self.draw(st.sampled_from(STEPS)) for _ in chosen]
        unit_at = self.draw(st.integers(-2, len(chosen)))
        hold_at = self.draw(st.integers(-1, len(chosen)))
        for at in reversed(range(len(chosen))):
            unit = self.target.units[0].name if at == unit_at else ""
            holds = self.holds(statement) if at == hold_at else ()
            unrolled, downward = (self.draw(st.integers(0, 7)) == 0 for _ in range(2))
            pairs = ((number, chosen[at]),)
            node = Tile(self.name(), pairs, steps[at], (node,), unit, unrolled, downward and not unit, holds)
        return node

    def leaf(self, number: int, statement: Statement) -> Leaf:
        widths = lane_counts(statement, self.program.dtypes, repertoire(self.target))
        if not statement.loops or self.draw(st.booleans()):
            return Leaf(number)
        return Leaf(number, self.draw(st.sampled_from(statement.loops)).name, self.draw(st.sampled_from(widths)))

    def holds(self, statement: Statement) -> tuple[Hold, ...]:
        found: list[Hold] = []
        registers = self.target.registers
        assert registers is not None
        if self.draw(st.booleans()):
            found.append(Hold(statement.out.tensor, registers.name, fetched=self.draw(st.booleans())))
        reads = list(statement.reads())
        if len(reads) > 0 and self.draw(st.booleans()):
            access = reads[self.draw(st.integers(0, len(reads) - 1))]
            found.append(self.layout(access.tensor, len(access.indices)))
        return tuple(found)

    def layout(self, tensor: str, rank: int) -> Hold:
        digits: list[Digit] = []
        for dimension in range(rank):
            if self.draw(st.booleans()):
                size = self.draw(st.sampled_from((2, 3, 4, 8)))
                digits += [Digit(dimension, size), Digit(dimension, 1, size)]
            else:
                digits.append(Digit(dimension))
        order = self.draw(st.permutations(digits))
        shared, fetched = self.draw(st.booleans()), self.draw(st.booleans())
        return Hold(tensor, self.target.main.name, tuple(order), shared=shared, fetched=fetched)

    def joined(self, nodes: list[PlanNode]) -> list[PlanNode]:
        """One node placed under a tile of its left neighbour, over the loops that walk the same dimension."""
        at = self.draw(st.integers(0, len(nodes) - 2))
        first, second = nodes[at], nodes[at + 1]
        if not isinstance(first, Tile):
            return nodes
        pairs = [p for n in _statements(second) for p in self.matching(first.loops[0], n)]
        inner = replace(first, loops=(*first.loops, *pairs[:1]), body=(*first.body, second))
        return [*nodes[:at], inner, *nodes[at + 2 :]]

    def matching(self, pair: tuple[int, str], number: int) -> list[tuple[int, str]]:
        """Loops of statement ``number`` that read, along one dimension, what ``pair`` writes."""
        out, other = self.program.statements[pair[0]].out, self.program.statements[number]
        extents = {x.name: x.extent for x in self.program.statements[pair[0]].all_loops}
        found = []
        for loop in other.loops:
            if loop.extent != extents[pair[1]]:
                continue
            for access in (other.out, *other.reads()):
                same = zip(out.indices, access.indices, strict=False)
                if access.tensor == out.tensor and (variable(pair[1]), variable(loop.name)) in same:
                    found.append((number, loop.name))
        return found


def _statements(node: PlanNode) -> list[int]:
    return [leaf.statement for leaf in Plan((node,)).leaves()]
