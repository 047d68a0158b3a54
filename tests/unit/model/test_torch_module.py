"""Modules exported and compiled ahead: shapes, keywords, state that changes, and what it refuses."""

from __future__ import annotations

import copy

import pytest

pytest.importorskip("torch")

import torch
from torch import Tensor

from dovetail.base.errors import CallError, UnsupportedError
from dovetail.model.torch_module import compile_module
from tests.unit.frontends.torch.traced import whole_numbers


class Block(torch.nn.Module):  # type: ignore[misc]
    """One block of a transformer."""

    def __init__(self, width: int = 16, heads: int = 2) -> None:
        super().__init__()
        self.heads = heads
        self.first, self.second = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.mix, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.feed = torch.nn.Sequential(
            torch.nn.Linear(width, 2 * width), torch.nn.GELU(), torch.nn.Linear(2 * width, width)
        )

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        batch, length, width = x.shape
        parts = self.mix(self.first(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = torch.nn.functional.scaled_dot_product_attention(*parts, attn_mask=mask)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.feed(self.second(x))


def test_a_block_of_a_transformer_for_two_lengths() -> None:
    torch.manual_seed(0)
    block = Block().eval()
    run = compile_module(block, (torch.randn(1, 5, 16),), strict=True, threads=1, jobs=1)
    with torch.no_grad():
        for length in (5, 3):
            x = torch.randn(1, length, 16)
            torch.testing.assert_close(run(x), block(x))
    assert run.report.fallbacks == ()


def test_structures_and_plain_values_come_back_as_they_are() -> None:
    class Parts(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Tensor, *, scale: float, pair: tuple[Tensor, Tensor]) -> dict[str, object]:
            return {"sum": x * scale + pair[0], "nothing": None, "list": [pair[1] + 1, 3]}

    x, y = whole_numbers(2, 3), whole_numbers(2, 3, seed=1)
    keywords = {"scale": 2.0, "pair": (x, y)}
    run = compile_module(Parts(), (x,), keywords, threads=1, jobs=1)
    found = run(x, **keywords)
    assert isinstance(found, dict)
    assert found["nothing"] is None
    torch.testing.assert_close((found["sum"], found["list"]), (x * 2 + x, [y + 1, 3]), rtol=0, atol=0)


def test_state_that_a_module_writes_is_written() -> None:
    torch.manual_seed(0)
    norm = torch.nn.BatchNorm1d(4)
    other = copy.deepcopy(norm)
    run = compile_module(norm, (torch.randn(6, 4),), strict=True, threads=1, jobs=1)
    for _ in range(2):
        x = torch.randn(6, 4)
        torch.testing.assert_close(run(x), other(x).detach())
    torch.testing.assert_close(dict(norm.named_buffers()), dict(other.named_buffers()))


def test_parameters_are_those_of_the_call() -> None:
    layer, x = torch.nn.Linear(4, 2), whole_numbers(3, 4)
    run = compile_module(layer, (x,), threads=1, jobs=1)
    with torch.no_grad():
        layer.weight.mul_(2.0)
    layer.bias = torch.nn.Parameter(torch.ones(2))
    torch.testing.assert_close(run(x), layer(x).detach())


def test_an_input_that_needs_gradients_is_refused() -> None:
    run = compile_module(torch.nn.Linear(4, 2), (torch.ones(3, 4),), threads=1, jobs=1)
    with pytest.raises(CallError, match="needs gradients"):
        run(torch.ones(3, 4, requires_grad=True))


def test_strict_names_the_operator_and_the_reason() -> None:
    class Sorted(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Tensor) -> Tensor:
            return torch.sort(x)[0]

    with pytest.raises(UnsupportedError, match=r"aten\.sort\.default cannot be taken: there is no conversion"):
        compile_module(Sorted(), (torch.ones(3),), strict=True)
    run = compile_module(Sorted(), (torch.ones(3),))
    torch.testing.assert_close(run(torch.tensor([2.0, 1.0, 3.0])), torch.tensor([1.0, 2.0, 3.0]))
    assert "aten.sort.default: there is no conversion of it" in str(run.report)
