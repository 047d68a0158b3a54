"""The gallery: every model that is a recurrence however it is written, and those that only look like one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import onnx
import torch
from torch import Tensor, nn

from tests.recurrent_gallery import cells, odd_loops, onnx_models
from tests.recurrent_gallery.loops import Backwards, BatchFirst, BothWays, Forwards, Interleaved, Stacked, Unbound
from tests.recurrent_gallery.onnx_models import BATCH, HIDDEN, INPUTS, STEPS

Cell = cells.Cell


@dataclass(frozen=True, slots=True)
class Spelling:
    """A PyTorch module with its inputs, or a model of ONNX; ``loops`` are layers times directions."""

    model: Callable[[], nn.Module | onnx.ModelProto]
    steps: int = STEPS
    loops: int = 1
    inputs: Callable[[int], tuple[Tensor, ...]] = lambda steps: (torch.randn(steps, BATCH, INPUTS),)
    by_onnx: bool = False
    """A module goes through PyTorch's ONNX exporter."""


def _loop(cell: type[Cell], around: Callable[[Cell], nn.Module] = Forwards) -> Callable[[], nn.Module]:
    return lambda: around(cell(INPUTS, HIDDEN))


def _two(
    around: Callable[[Cell, Cell], nn.Module], cell: type[Cell] = cells.Chunked, deep: bool = True
) -> Callable[[], nn.Module]:
    return lambda: around(cell(INPUTS, HIDDEN), cell(HIDDEN if deep else INPUTS, HIDDEN))


def _batch_first(steps: int) -> tuple[Tensor, ...]:
    return (torch.randn(BATCH, steps, INPUTS),)


def _with_states(count: int) -> Callable[[int], tuple[Tensor, ...]]:
    return lambda steps: (torch.randn(steps, BATCH, INPUTS), *(torch.randn(BATCH, HIDDEN) / 4 for _ in range(count)))


class Celled(nn.Module):  # type: ignore[misc]
    """A cell of PyTorch's own as one of ours."""

    def __init__(self, cell: nn.Module, states: int) -> None:
        super().__init__()
        self.cell, self.widths, self.states = cell, (HIDDEN,) * states, states

    def forward(self, x: Tensor, *states: Tensor) -> tuple[Tensor, ...]:
        made = self.cell(x, states if self.states > 1 else states[0])
        return made if self.states > 1 else (made,)


SPELLINGS: Mapping[str, Spelling] = {
    "nn.LSTM": Spelling(lambda: nn.LSTM(INPUTS, HIDDEN)),
    "nn.GRU, stacked": Spelling(lambda: nn.GRU(INPUTS, HIDDEN, 2), loops=2),
    "nn.RNN, relu": Spelling(lambda: nn.RNN(INPUTS, HIDDEN, nonlinearity="relu", bias=False)),
    "nn.LSTM, both ways, batch first": Spelling(
        lambda: nn.LSTM(INPUTS, HIDDEN, bidirectional=True, batch_first=True), loops=2, inputs=_batch_first
    ),
    "nn.LSTM, projected": Spelling(lambda: nn.LSTM(INPUTS, HIDDEN, proj_size=4)),
    "nn.LSTMCell in a loop": Spelling(lambda: Forwards(Celled(nn.LSTMCell(INPUTS, HIDDEN), 2))),
    "nn.GRUCell in a loop": Spelling(lambda: Forwards(Celled(nn.GRUCell(INPUTS, HIDDEN), 1))),
    "nn.RNNCell in a loop": Spelling(lambda: Forwards(Celled(nn.RNNCell(INPUTS, HIDDEN), 1))),
    "LSTM, chunk, 5 steps": Spelling(_loop(cells.Chunked), steps=5, by_onnx=True),
    "LSTM, chunk, 25 steps": Spelling(_loop(cells.Chunked), steps=25),
    "LSTM, chunk, 100 steps": Spelling(_loop(cells.Chunked), steps=100, by_onnx=True),
    "LSTM, split, i o f g": Spelling(_loop(cells.Split), by_onnx=True),
    "LSTM, slices, f i o g": Spelling(_loop(cells.Sliced)),
    "LSTM, slices, exported to ONNX": Spelling(_loop(cells.Sliced), by_onnx=True),
    "LSTM, eight matrices": Spelling(_loop(cells.EightMatrices)),
    "LSTM, eight matrices, exported to ONNX": Spelling(_loop(cells.EightMatrices), by_onnx=True),
    "LSTM, joined, forget bias 1": Spelling(_loop(cells.Joined)),
    "LSTM, joined, exported to ONNX, 25 steps": Spelling(_loop(cells.Joined), steps=25, by_onnx=True),
    "LSTM, batch first": Spelling(_loop(cells.Chunked, BatchFirst), inputs=_batch_first),
    "LSTM, unbind, states from outside": Spelling(_loop(cells.Chunked, Unbound), inputs=_with_states(2)),
    "LSTM, backwards": Spelling(_loop(cells.Chunked, Backwards), by_onnx=True),
    "LSTM, both ways": Spelling(_two(BothWays, deep=False), loops=2),
    "LSTM, stacked": Spelling(_two(Stacked), loops=2, by_onnx=True),
    "LSTM, stacked, step by step": Spelling(_two(Interleaved), loops=2, by_onnx=True),
    "LSTM with peepholes": Spelling(_loop(cells.Peephole), by_onnx=True),
    "LSTM, coupled gates": Spelling(_loop(cells.Coupled), by_onnx=True),
    "LSTM, layer norm": Spelling(_loop(cells.Normalised), by_onnx=True),
    "LSTM, projected": Spelling(_loop(cells.Projected), by_onnx=True),
    "GRU, reset after": Spelling(_loop(cells.ResetAfter), by_onnx=True),
    "GRU, reset before": Spelling(_loop(cells.ResetBefore), by_onnx=True),
    "LiGRU": Spelling(_loop(cells.Light), by_onnx=True),
    "minimal gated unit": Spelling(_loop(cells.Minimal), by_onnx=True),
    "Elman, relu": Spelling(_loop(cells.Elman), steps=25, by_onnx=True),
    "gated linear recurrence": Spelling(_loop(cells.Linear), steps=25, by_onnx=True),
    "ONNX LSTM": Spelling(lambda: onnx_models.node("LSTM")),
    "ONNX LSTM, both ways, peepholes, lengths": Spelling(
        lambda: onnx_models.node("LSTM", "bidirectional", lengths=True, peepholes=True, states=True, clip=2.0), loops=2
    ),
    "ONNX GRU, reset before": Spelling(lambda: onnx_models.node("GRU", states=True)),
    "ONNX GRU, reset after, backwards": Spelling(lambda: onnx_models.node("GRU", "reverse", linear_before_reset=1)),
    "ONNX RNN, backwards, lengths": Spelling(lambda: onnx_models.node("RNN", "reverse", lengths=True)),
    "ONNX Scan": Spelling(lambda: onnx_models.body(onnx_models.SCAN)),
    "ONNX Loop": Spelling(lambda: onnx_models.body(onnx_models.LOOP)),
}


@dataclass(frozen=True, slots=True)
class LookAlike:
    """``never``: how many steps no loop that is found may have; 0 where any that computes the same will do."""

    model: Callable[[], nn.Module]
    never: int = 0
    steps: int = 9


LOOK_ALIKES: Mapping[str, LookAlike] = {
    "one step has other weights": LookAlike(_two(odd_loops.OtherWeights, deep=False), never=9),
    "one step is left out": LookAlike(_loop(cells.Chunked, odd_loops.Skips), never=9),
    "steps in another order": LookAlike(_loop(cells.Chunked, odd_loops.AnyOrder)),
    "a state that is reset": LookAlike(_loop(cells.Chunked, odd_loops.Resets), never=9),
    "two chains that cross": LookAlike(_loop(cells.Elman, odd_loops.Crosses)),
    "the state of two steps before": LookAlike(_loop(cells.Elman, odd_loops.Delayed)),
    "a gate that is read outside": LookAlike(_loop(cells.Chunked, odd_loops.ReadsInside)),
    "every second output": LookAlike(_loop(cells.Chunked, odd_loops.EverySecond)),
    "a memory that grows": LookAlike(_loop(cells.Elman, odd_loops.Remembers), never=9),
    "inputs times other numbers": LookAlike(_loop(cells.Elman, odd_loops.Scaled)),
    "one more tanh in one step": LookAlike(_loop(cells.Chunked, odd_loops.BentOnce), never=9),
    "gates that are tied": LookAlike(_loop(cells.Tied)),
    "one more tanh in every step": LookAlike(_loop(cells.Bent)),
    "GRU of the other form": LookAlike(_loop(cells.ResetBefore)),
    "two steps": LookAlike(_loop(cells.Chunked), never=2, steps=2),
}
