"""PyTorch's own samples of a few of its operators, through torch.compile; the benchmark runs all of them."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("expecttest", reason="PyTorch's samples need it")

import torch

from benchmarks.torch_operators import name_of, operators, outcomes

SAMPLE = (
    "add",
    "clamp",
    "where",
    "atan2",
    "log1p",
    "sigmoid",
    "cumsum",
    "argmax",
    "var",
    "softmax",
    "index_select",
    "gather",
    "scatter_add",
    "index_add",
    "cat",
    "roll",
    "tril",
    "matmul",
    "addmm",
    "nn.functional.linear",
    "nn.functional.conv2d",
    "nn.functional.max_pool2d",
    "nn.functional.layer_norm",
    "nn.functional.gelu",
    "nn.functional.interpolate.bilinear",
)
SAMPLES_EACH = 2


@pytest.mark.parametrize("name", SAMPLE)
def test_an_operator_is_compiled_and_right(name: str) -> None:
    (op,) = (op for op in operators() if name_of(op) == name)
    with torch.no_grad():
        (outcome,) = outcomes([op], SAMPLES_EACH)
    assert outcome.mismatches == []
    assert outcome.without_fallback, outcome.fallbacks
