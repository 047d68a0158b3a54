"""Loops over steps around a cell, which exporters flatten. x[t, b, i] in; outputs of all steps and last states out."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from tests.recurrent_gallery.cells import Cell, States


class Forwards(nn.Module):  # type: ignore[misc]
    """From the first step to the last, all outputs stacked."""

    def __init__(self, cell: Cell) -> None:
        super().__init__()
        self.cell = cell

    def forward(self, x: Tensor) -> States:
        made, states = steps(self.cell, list(x), first(self.cell, x[0]))
        return torch.stack(made), *states


class BatchFirst(Forwards):
    """x[b, t, i], and outputs joined along the second axis."""

    def forward(self, x: Tensor) -> States:
        rows = [x[:, t, :] for t in range(x.shape[1])]
        made, states = steps(self.cell, rows, first(self.cell, rows[0]))
        return torch.cat([h.unsqueeze(1) for h in made], dim=1), *states


class Unbound(Forwards):
    """By ``unbind``, with a first state from outside; the outputs of all steps are not wanted."""

    def forward(self, x: Tensor, *given: Tensor) -> States:
        return steps(self.cell, list(x.unbind(0)), given)[1]


class Backwards(Forwards):
    """From the last step to the first."""

    def forward(self, x: Tensor) -> States:
        made, states = steps(self.cell, list(x)[::-1], first(self.cell, x[0]))
        return torch.stack(made[::-1]), *states


class BothWays(nn.Module):  # type: ignore[misc]
    """One cell forwards and another backwards, side by side."""

    def __init__(self, there: Cell, back: Cell) -> None:
        super().__init__()
        self.there, self.back = there, back

    def forward(self, x: Tensor) -> States:
        forth, _ = steps(self.there, list(x), first(self.there, x[0]))
        back, _ = steps(self.back, list(x)[::-1], first(self.back, x[0]))
        return (torch.cat([torch.stack(forth), torch.stack(back[::-1])], dim=2),)


class Stacked(nn.Module):  # type: ignore[misc]
    """Layer after layer, each over all steps."""

    def __init__(self, *cells: Cell) -> None:
        super().__init__()
        self.cells = nn.ModuleList(cells)

    def forward(self, x: Tensor) -> States:
        rows = list(x)
        for cell in self.cells:
            rows, states = steps(cell, rows, first(cell, rows[0]))
        return torch.stack(rows), *states


class Interleaved(Stacked):
    """Step after step, each through all layers."""

    def forward(self, x: Tensor) -> States:
        states = [first(cell, x[0]) for cell in self.cells]
        made = []
        for row in x:
            for place, cell in enumerate(self.cells):
                states[place] = cell(row, *states[place])
                row = states[place][0]
            made.append(row)
        return torch.stack(made), *states[-1]


def steps(cell: Cell, rows: Sequence[Tensor], states: States) -> tuple[list[Tensor], States]:
    """The output of each step, and the last states."""
    made = []
    for row in rows:
        states = cell(row, *states)
        made.append(states[0])
    return made, states


def first(cell: Cell, row: Tensor) -> States:
    return tuple(row.new_zeros(row.shape[0], width) for width in cell.widths)
