"""Loops that are almost one: some step is not like the others, or something else reads what is inside."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.recurrent_gallery.cells import Cell, States
from tests.recurrent_gallery.loops import Forwards, first, steps


class OtherWeights(Forwards):
    """The step in the middle has weights of its own."""

    def __init__(self, cell: Cell, other: Cell) -> None:
        super().__init__(cell)
        self.other = other

    def forward(self, x: Tensor) -> States:
        states, made = first(self.cell, x[0]), []
        for t, row in enumerate(x):
            states = (self.other if t == len(x) // 2 else self.cell)(row, *states)
            made.append(states[0])
        return torch.stack(made), *states


class Skips(Forwards):
    """The step in the middle is left out."""

    def forward(self, x: Tensor) -> States:
        rows = [row for t, row in enumerate(x) if t != len(x) // 2]
        made, states = steps(self.cell, rows, first(self.cell, x[0]))
        return torch.stack(made), *states


class AnyOrder(Forwards):
    """Steps in an order that no loop counts in."""

    def forward(self, x: Tensor) -> States:
        order = sorted(range(len(x)), key=lambda t: (t * 5) % len(x))
        made, states = steps(self.cell, [x[t] for t in order], first(self.cell, x[0]))
        return torch.stack(made), *states


class Resets(Forwards):
    """The state is forgotten in the middle."""

    def forward(self, x: Tensor) -> States:
        middle = len(x) // 2
        before, _ = steps(self.cell, list(x[:middle]), first(self.cell, x[0]))
        behind, states = steps(self.cell, list(x[middle:]), first(self.cell, x[0]))
        return torch.stack(before + behind), *states


class Crosses(Forwards):
    """Two chains with the same cell that change places in the middle."""

    def forward(self, x: Tensor) -> States:
        one, two = first(self.cell, x[0]), first(self.cell, x[0])
        for t, row in enumerate(x):
            one, two = self.cell(row, *one), self.cell(-row, *two)
            if t == len(x) // 2:
                one, two = two, one
        return one[0], two[0]


class Delayed(Forwards):
    """The state of two steps before."""

    def forward(self, x: Tensor) -> States:
        older = newer = first(self.cell, x[0])
        made = []
        for row in x:
            older, newer = newer, self.cell(row, *older)
            made.append(newer[0])
        return (torch.stack(made),)


class ReadsInside(Forwards):
    """A gate of one step is also a result."""

    def forward(self, x: Tensor) -> States:
        made, states = steps(self.cell, list(x), first(self.cell, x[0]))
        gates = self.cell.x(x[3]) + self.cell.h(made[2])
        return torch.stack(made), torch.sigmoid(gates), *states


class EverySecond(Forwards):
    """Only every second output is wanted."""

    def forward(self, x: Tensor) -> States:
        made, states = steps(self.cell, list(x), first(self.cell, x[0]))
        return torch.stack(made[::2]), *states


class Remembers(Forwards):
    """Every step sees the sum of all outputs before it, which grows with them."""

    def forward(self, x: Tensor) -> States:
        states, made = first(self.cell, x[0]), []
        for row in x:
            states = self.cell(row, *states)
            made.append(states[0])
            seen = torch.softmax(torch.stack(made).sum(2), dim=0)
            states = ((torch.stack(made) * seen.unsqueeze(2)).sum(0), *states[1:])
        return states


class Scaled(Forwards):
    """Each step's input is multiplied by a number of its own."""

    def forward(self, x: Tensor) -> States:
        rows = [row * (1 + t * t) for t, row in enumerate(x)]
        made, states = steps(self.cell, rows, first(self.cell, x[0]))
        return torch.stack(made), *states


class BentOnce(Forwards):
    """One step's state goes through one more tanh."""

    def forward(self, x: Tensor) -> States:
        states, made = first(self.cell, x[0]), []
        for t, row in enumerate(x):
            h, *rest = self.cell(row, *states)
            h = torch.tanh(h) if t == len(x) // 2 else h
            states = (h, *rest)
            made.append(h)
        return torch.stack(made), *states
