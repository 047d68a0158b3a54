"""The modules of ``benchmarks.recurrent_cases``; apart from it, since they need PyTorch to be defined."""

import torch
from torch import Tensor, nn


class HandWritten(nn.Module):  # type: ignore[misc]
    """An LSTM as people write it: two linear layers and a loop over the steps."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.inputs, self.state = nn.Linear(hidden, 4 * hidden), nn.Linear(hidden, 4 * hidden)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        h = x.new_zeros(x.shape[1], self.state.in_features)
        c, steps = h, []
        for t in range(x.shape[0]):
            i, f, g, o = (self.inputs(x[t]) + self.state(h)).chunk(4, dim=1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            steps.append(h)
        return torch.stack(steps), h, c


class Layer(nn.Module):  # type: ignore[misc]
    """One layer of PyTorch's own."""

    def __init__(self, kind: str, hidden: int) -> None:
        super().__init__()
        self.layer = {"lstm": nn.LSTM, "gru": nn.GRU}[kind](hidden, hidden)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        y, last = self.layer(x)
        return (y, *last) if isinstance(last, tuple) else (y, last)
