"""PyTorch modules and graphs over several shapes: code with run-time sizes, exact on whole numbers."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch
from torch import Tensor

from dovetail.model import torch_backend
from dovetail.model.torch_module import compile_module
from tests.unit.frontends.torch.traced import whole_numbers


class Mixing(torch.nn.Module):  # type: ignore[misc]
    """Products with a weight, and of what comes out with itself."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(whole_numbers(width, width), requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.relu(x @ self.weight)
        return (h @ h.transpose(1, 2)) @ h + x


SHAPES = [(2, 5, 8), (3, 7, 8), (4, 6, 8), (2, 1, 8), (1, 4, 8)]


@pytest.mark.parametrize("dynamic", [None, True, False])
def test_a_module_in_several_shapes(dynamic: bool | None) -> None:
    module = Mixing().eval()
    run = compile_module(module, (whole_numbers(*SHAPES[0]),), threads=1, jobs=1, cache=False, dynamic=dynamic)
    sized = []
    for shape in SHAPES:
        x = whole_numbers(*shape)
        assert torch.equal(run(x), module(x)), shape
        sized.append(any(row.sizes for part in run.report.parts for row in part.rows))
    assert sized[:3] == {None: [False, True, True], True: [True, True, True], False: [False] * 3}[dynamic]


def test_sizes_that_pytorch_leaves_open_are_run_time_sizes() -> None:
    torch._dynamo.reset()
    module = Mixing().eval()
    run = torch.compile(module, backend="dovetail", dynamic=True, options={"cache": False, "jobs": 1, "threads": 1})
    with torch.no_grad():
        for shape in SHAPES[:4]:
            x = whole_numbers(*shape)
            assert torch.equal(run(x), module(x)), shape
            assert any(row.sizes for part in torch_backend.reports()[-1].parts for row in part.rows), shape


def test_who_wants_no_run_time_sizes_says_so() -> None:
    torch._dynamo.reset()
    module = Mixing().eval()
    options = {"cache": False, "jobs": 1, "threads": 1, "dynamic": False}
    run = torch.compile(module, backend="dovetail", dynamic=True, options=options)
    with torch.no_grad():
        for shape in SHAPES[:3]:
            run(whole_numbers(*shape))
            assert not any(row.sizes for part in torch_backend.reports()[-1].parts for row in part.rows)
