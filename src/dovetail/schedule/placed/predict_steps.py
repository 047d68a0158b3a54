"""A nest made ready for prediction: every time that a later call may wait for is a number of the machine's state.

    clock      when the unit that runs the nest issues its next call
    end        when the last result is there
    pipe       when a unit's pipe, or its engine for asynchronous calls, is free
    port       when a memory's port is free
    token      when a copy that was started is there
    hazard     when a buffer may be read, or written (``predict_hazards``)

A buffer is one place. Where a loop goes through a buffer, so that each of its iterations has a place of its own, the
buffer is listed in the loop's ``own``, and its iterations do not wait for each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dovetail.ir.index import Condition, Index
from dovetail.schedule.placed.predict_cost import Cost, Machine, Share, Values, cost
from dovetail.schedule.placed.predict_keys import Item
from dovetail.targets.model import Instruction

CLOCK, END = 0, 1


@dataclass(slots=True, eq=False)
class CallStep:
    """A call; numbers are those of the state."""

    instruction: Instruction
    params: tuple[tuple[str, tuple[Index, ...]], ...]
    """Those that decide the cost."""
    shared: Share
    on: Machine
    pipe: int
    ports: tuple[int, ...]
    awaited: tuple[int, ...]
    """Hazards of its operands."""
    written: tuple[int, ...]
    read: tuple[int, ...]
    token: int
    """Negative when it is not started but called."""
    costs: dict[tuple[int, ...], Cost] = field(default_factory=dict)

    def cost(self, env: Mapping[str, int]) -> Cost:
        values = tuple([min([i.evaluate(env) for i in indices]) for _, indices in self.params])
        found = self.costs.get(values)
        if found is None:
            given: Values = tuple((name, value) for (name, _), value in zip(self.params, values, strict=True))
            found = self.costs[values] = cost(self.instruction, self.shared, self.on, given)
        return found


@dataclass(slots=True, eq=False)
class LoopStep:
    """A loop, with what decides it and its body as functions of the loops outside."""

    var: str
    lower: tuple[Index, ...]
    upper: tuple[Index, ...]
    step: int
    body: tuple[Step, ...]
    touched: tuple[int, ...]
    """Numbers of the state that it reads or changes."""
    own: tuple[int, ...]
    """Of buffers in which every iteration has a place of its own, as positions in ``touched``."""
    pairs: tuple[tuple[int, int], ...]
    """Of those, the place that loops come to first and the last."""
    items: tuple[Item, ...]
    own_items: tuple[Item, ...]
    """What decides the body, that depends on the loop itself, and what does not."""
    other_items: tuple[Item, ...]


@dataclass(slots=True, eq=False)
class WhenStep:
    conditions: tuple[Condition, ...]
    body: tuple[Step, ...]
    otherwise: tuple[Step, ...]


@dataclass(slots=True, eq=False)
class WaitStep:
    """Waits for some numbers of the state: a token, or all results for a barrier."""

    awaited: tuple[int, ...]


Step = CallStep | LoopStep | WhenStep | WaitStep


@dataclass(frozen=True, slots=True)
class Resource:
    """A unit's pipe ("unit"), its engine for asynchronous calls ("engine"), or a memory's port ("memory")."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Steps:
    """A nest: what is done, and what the numbers of the state stand for."""

    body: tuple[Step, ...]
    size: int
    """Of the state."""
    resources: Mapping[int, Resource]
    """Pipes, engines and ports among its numbers."""
