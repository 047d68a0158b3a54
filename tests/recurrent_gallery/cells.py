"""Cells in PyTorch: an input and states in, states out; the first state is the output of a step."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import layer_norm

States = tuple[Tensor, ...]


class Cell(nn.Module):  # type: ignore[misc]
    """``states`` are carried from step to step, ``widths`` of them if they differ."""

    states = 1

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.inputs, self.hidden = inputs, hidden
        self.widths = (hidden,) * self.states

    def linear(self, inputs: int, outputs: int, bias: bool = True) -> nn.Linear:
        layer = nn.Linear(inputs, outputs, bias)
        nn.init.normal_(layer.weight, std=0.4)
        return layer


class Chunked(Cell):
    """Both products added, cut into four by ``chunk``: i, f, g, o."""

    states = 2

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__(inputs, hidden)
        self.x, self.h = self.linear(inputs, 4 * hidden), self.linear(hidden, 4 * hidden)

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> States:
        i, f, g, o = (self.x(x) + self.h(h)).chunk(4, dim=1)
        return updated(i, f, g, o, c)


class Split(Chunked):
    """The order of ONNX, by ``split``, without a second bias."""

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> States:
        i, o, f, g = torch.split(self.x(x) + h @ self.h.weight.T, self.hidden, dim=1)
        return updated(i, f, g, o, c)


class Sliced(Chunked):
    """f, i, o, g, by slices, the products the other way round."""

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> States:
        gates, n = self.h(h) + self.x(x), self.hidden
        f, i, o, g = gates[:, :n], gates[:, n : 2 * n], gates[:, 2 * n : 3 * n], gates[:, 3 * n :]
        return updated(i, f, g, o, c)


class EightMatrices(Cell):
    """A matrix for each gate, of the input and of the state."""

    states = 2

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__(inputs, hidden)
        self.x = nn.ModuleList(self.linear(inputs, hidden, False) for _ in range(4))
        self.h = nn.ModuleList(self.linear(hidden, hidden) for _ in range(4))

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> States:
        i, f, g, o = (a(x) + b(h) for a, b in zip(self.x, self.h, strict=True))
        return updated(i, f, g, o, c)


class Joined(Cell):
    """As TensorFlow has it: one product of the input beside the state, i, j, f, o, and a forget bias of 1."""

    states = 2

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__(inputs, hidden)
        self.kernel = nn.Parameter(torch.randn(inputs + hidden, 4 * hidden) * 0.3)
        self.bias = nn.Parameter(torch.randn(4 * hidden) * 0.3)

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> States:
        i, j, f, o = torch.split(torch.cat([x, h], 1) @ self.kernel + self.bias, self.hidden, dim=1)
        return updated(i, f + 1.0, j, o, c)


class Peephole(Chunked):
    """Gates that see the cell's memory."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__(inputs, hidden)
        self.peep = nn.Parameter(torch.randn(3, hidden) * 0.3)

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> States:
        i, f, g, o = (self.x(x) + self.h(h)).chunk(4, dim=1)
        new = torch.sigmoid(f + self.peep[0] * c) * c + torch.sigmoid(i + self.peep[1] * c) * torch.tanh(g)
        return torch.sigmoid(o + self.peep[2] * new) * torch.tanh(new), new


class Coupled(Cell):
    """What is forgotten is what is written: f = 1 - i."""

    states = 2

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__(inputs, hidden)
        self.x, self.h = self.linear(inputs, 3 * hidden), self.linear(hidden, 3 * hidden)

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> States:
        i, g, o = (self.x(x) + self.h(h)).chunk(3, dim=1)
        i = torch.sigmoid(i)
        new = (1 - i) * c + i * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(new), new


class Normalised(Chunked):
    """A layer norm over all gates, and one over the memory."""

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> States:
        gates = layer_norm(self.x(x), (4 * self.hidden,)) + layer_norm(self.h(h), (4 * self.hidden,))
        i, f, g, o = gates.chunk(4, dim=1)
        new = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(layer_norm(new, (self.hidden,))), new


class Projected(Cell):
    """A state narrower than the memory."""

    states = 2

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__(inputs, hidden)
        self.widths = (hidden // 2, hidden)
        self.x, self.h = self.linear(inputs, 4 * hidden), self.linear(hidden // 2, 4 * hidden)
        self.out = self.linear(hidden, hidden // 2, False)

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> States:
        i, f, g, o = (self.x(x) + self.h(h)).chunk(4, dim=1)
        wide, new = updated(i, f, g, o, c)
        return self.out(wide), new


class ResetAfter(Cell):
    """A GRU whose reset meets the product of the state, as cuDNN and PyTorch have it."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__(inputs, hidden)
        self.x, self.h = self.linear(inputs, 3 * hidden), self.linear(hidden, 3 * hidden)

    def forward(self, x: Tensor, h: Tensor) -> States:
        (xr, xz, xn), (hr, hz, hn) = self.x(x).chunk(3, 1), self.h(h).chunk(3, 1)
        z = torch.sigmoid(xz + hz)
        return ((1 - z) * torch.tanh(xn + torch.sigmoid(xr + hr) * hn) + z * h,)


class ResetBefore(Cell):
    """A GRU whose reset meets the state, as the paper has it."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__(inputs, hidden)
        self.gates, self.new = self.linear(inputs + hidden, 2 * hidden), self.linear(inputs + hidden, hidden)

    def forward(self, x: Tensor, h: Tensor) -> States:
        r, z = torch.sigmoid(self.gates(torch.cat([x, h], 1))).chunk(2, 1)
        return (z * h + (1 - z) * torch.tanh(self.new(torch.cat([x, r * h], 1))),)


class Light(Cell):
    """LiGRU: no reset, and a relu."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__(inputs, hidden)
        self.x, self.h = self.linear(inputs, 2 * hidden), self.linear(hidden, 2 * hidden, False)

    def forward(self, x: Tensor, h: Tensor) -> States:
        a, z = (self.x(x) + self.h(h)).chunk(2, 1)
        z = torch.sigmoid(z)
        return (z * h + (1 - z) * torch.relu(a),)


class Minimal(Cell):
    """The minimal gated unit: one gate forgets and resets."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__(inputs, hidden)
        self.forget_x, self.forget_h = self.linear(inputs, hidden), self.linear(hidden, hidden, False)
        self.new_x, self.new_h = self.linear(inputs, hidden), self.linear(hidden, hidden, False)

    def forward(self, x: Tensor, h: Tensor) -> States:
        f = torch.sigmoid(self.forget_x(x) + self.forget_h(h))
        return ((1 - f) * h + f * torch.tanh(self.new_x(x) + self.new_h(f * h)),)


class Elman(Cell):
    """The plain one, with a relu."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__(inputs, hidden)
        self.x, self.h = self.linear(inputs, hidden), self.linear(hidden, hidden)

    def forward(self, x: Tensor, h: Tensor) -> States:
        return (torch.relu(self.x(x) + self.h(h)),)


class Linear(Cell):
    """A gated linear recurrence: the state meets a gate and nothing else."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__(inputs, hidden)
        self.x, self.gate = self.linear(inputs, hidden), self.linear(inputs, hidden)

    def forward(self, x: Tensor, h: Tensor) -> States:
        f = torch.sigmoid(self.gate(x))
        return (f * h + (1 - f) * self.x(x),)


class Tied(Chunked):
    """Looks like an LSTM; its input gate is its forget gate, and its output gate sees the candidate."""

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> States:
        i, _, g, o = (self.x(x) + self.h(h)).chunk(4, dim=1)
        return updated(i, i, g, o + g, c)


class Bent(Chunked):
    """Looks like an LSTM; its state goes through one more tanh."""

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> States:
        i, f, g, o = (self.x(x) + self.h(h)).chunk(4, dim=1)
        new, memory = updated(i, f, g, o, c)
        return torch.tanh(2 * new), memory


def updated(i: Tensor, f: Tensor, g: Tensor, o: Tensor, c: Tensor) -> States:
    """The next h and c of an LSTM."""
    new = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(new), new
