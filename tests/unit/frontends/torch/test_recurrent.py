"""Recurrent layers of PyTorch, exported, converted and evaluated; they stay whole on the way."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch
from torch import Tensor, nn
from torch.export import export
from torch.utils._pytree import tree_leaves

from dovetail.frontends.torch.decompose import traced_with
from dovetail.frontends.torch.elements import array_of, tensor_of
from dovetail.frontends.torch.partition import OwnPart, partition
from dovetail.ir.graph.evaluate import evaluate
from dovetail.ops.table import OPERATORS
from tests.unit.frontends.torch.traced import whole_numbers

X = whole_numbers(5, 3, 4) / 4
"""Steps, sequences, elements."""


def evaluated(module: nn.Module, *tensors: Tensor | tuple[Tensor, ...]) -> tuple[list[Tensor], list[str]]:
    """What the graph of ours computes, and its operators."""
    with torch.no_grad():
        program = traced_with(export(module, tensors).run_decompositions, whole=True)
    found = partition(program.graph, {})
    assert not found.fallbacks, found.fallbacks
    (part,) = found.parts
    assert isinstance(part, OwnPart)
    given = [*dict(module.named_parameters()).values(), *tree_leaves(tensors)]
    arrays = dict(zip(found.inputs, map(array_of, given), strict=True))
    names = [value.name for value in part.bound.graph.inputs]
    inputs = dict(zip(names, (arrays[node] for node in part.inputs), strict=True))
    made = evaluate(part.bound.graph, OPERATORS, inputs, part.bound.data)
    values = dict(zip(part.outputs, (part.bound.graph.outputs[n] for n in part.sources), strict=True))
    return [tensor_of(made[values[node]]) for node in found.outputs], [node.op for node in part.bound.graph.nodes]


def check(module: nn.Module, op: str, count: int, *tensors: Tensor | tuple[Tensor, ...]) -> None:
    torch.manual_seed(0)
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.4)
    module.eval()
    found, operators = evaluated(module, *tensors)
    with torch.no_grad():
        wanted = tree_leaves(module(*tensors))
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-6)
    assert operators.count(op) == count, operators
    assert "matmul" not in operators


@pytest.mark.parametrize("bias", [True, False])
def test_a_long_memory_is_one_operator_whatever_the_order_of_its_gates(bias: bool) -> None:
    check(nn.LSTM(4, 6, bias=bias), "lstm", 1, X)
    check(nn.GRU(4, 6, bias=bias), "gru", 1, X)


def test_layers_and_directions_are_one_operator_each() -> None:
    check(nn.LSTM(4, 6, 2, bidirectional=True, batch_first=True, dropout=0.5), "lstm", 4, X.transpose(0, 1))
    check(nn.GRU(4, 6, 3, dropout=0.5), "gru", 3, X)


@pytest.mark.parametrize("nonlinearity", ["tanh", "relu"])
def test_a_plain_layer_with_either_activation(nonlinearity: str) -> None:
    check(nn.RNN(4, 6, 1, nonlinearity, bidirectional=True), "rnn", 2, X)


def test_whole_numbers_stay_exact_through_a_plain_layer() -> None:
    layer = nn.RNN(4, 6, 2, "relu").eval()
    for seed, parameter in enumerate(layer.parameters()):
        parameter.data.copy_(whole_numbers(*parameter.shape, seed=seed) // 3)
    x = whole_numbers(4, 3, 4)
    with torch.no_grad():
        torch.testing.assert_close(evaluated(layer, x)[0], list(layer(x)), rtol=0, atol=0)


def test_first_states_are_those_of_their_layer_and_direction() -> None:
    h, c = whole_numbers(4, 3, 6, seed=1) / 8, whole_numbers(4, 3, 6, seed=2) / 8
    check(nn.LSTM(4, 6, 2, bidirectional=True), "lstm", 4, X, (h, c))
    check(nn.GRU(4, 6, 2, bidirectional=True), "gru", 4, X, h)


@pytest.mark.parametrize("bias", [True, False])
def test_a_projected_state_is_narrower_than_its_cells(bias: bool) -> None:
    check(nn.LSTM(4, 6, 2, bias=bias, proj_size=3, bidirectional=True), "projected_lstm", 4, X)


def test_one_sequence_without_an_axis_for_more() -> None:
    check(nn.LSTM(4, 6), "lstm", 1, X[:, 0])


def test_dropout_in_training_stays_with_pytorch() -> None:
    layer = nn.LSTM(4, 6, 2, dropout=0.5).train()
    with torch.no_grad():
        program = traced_with(export(layer, (X,)).run_decompositions, whole=True)
    (fallback,) = partition(program.graph, {}).fallbacks
    assert fallback.operator == "aten.lstm.input"
    assert "dropout" in fallback.reason
