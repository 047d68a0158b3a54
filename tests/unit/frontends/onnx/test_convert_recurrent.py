"""Recurrent nodes: both directions, lengths, and batches first, against the operators of one direction."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

from dovetail.frontends.onnx.entries import HostValue
from dovetail.frontends.onnx.file import from_proto
from dovetail.model.onnx_session import Session, reference
from tests.unit.frontends.onnx.single import Array, convert_many
from tests.unit.ops.single import apply_many, whole

STEPS, BATCH, INPUTS, HIDDEN = 4, 3, 2, 3
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
STATES = {"RNN": 1, "GRU": 1, "LSTM": 2}


def given(op: str, directions: int) -> list[Array]:
    """x, w, r and bias."""
    rows = GATES[op] * HIDDEN
    parts = [(STEPS, BATCH, INPUTS), (directions, rows, INPUTS), (directions, rows, HIDDEN), (directions, 2 * rows)]
    return [whole(*shape) / np.float32(8) for shape in parts]


def zeros(op: str) -> list[Array]:
    return [np.zeros((BATCH, HIDDEN), np.float32) for _ in range(STATES[op])]


@pytest.mark.parametrize("op", GATES)
def test_both_directions_stand_side_by_side(op: str) -> None:
    x, w, r, bias = given(op, 2)
    y, *last = convert_many(op, 1 + STATES[op], x, w, r, bias, hidden_size=HIDDEN, direction="bidirectional")
    for way in (0, 1):
        parts = (x, w[way], r[way], bias[way], *zeros(op))
        one, *ends = apply_many(op.lower(), 1 + STATES[op], *parts, reverse=way)
        np.testing.assert_array_equal(y[:, way], one)
        for found, expected in zip(last, ends, strict=True):
            np.testing.assert_array_equal(found[way], expected)


@pytest.mark.parametrize("op", GATES)
def test_sequences_of_several_lengths_run_backwards_from_their_own_end(op: str) -> None:
    x, w, r, bias = given(op, 1)
    lengths = np.array([4, 1, 3], np.int32)
    settings = {"hidden_size": HIDDEN, "direction": "reverse"}
    y, last = convert_many(op, 2, x, w, r, bias, lengths, **settings)  # type: ignore[arg-type]
    for b, n in enumerate(lengths):
        alone, end = convert_many(op, 2, x[:n, b : b + 1].copy(), w, r, bias, **settings)  # type: ignore[arg-type]
        np.testing.assert_array_equal(y[:n, 0, b], alone[:, 0, 0])
        assert not y[n:, 0, b].any()
        np.testing.assert_array_equal(last[0, b], end[0, 0])


@pytest.mark.parametrize("op", GATES)
def test_batches_may_come_first(op: str) -> None:
    x, w, r, bias = given(op, 1)
    first = np.full((BATCH, 1, HIDDEN), 0.5, np.float32)
    turned = x.transpose(1, 0, 2).copy()
    y, last = convert_many(op, 2, turned, w, r, bias, None, first, hidden_size=HIDDEN, layout=1)
    same, end = convert_many(op, 2, x, w, r, bias, None, first.transpose(1, 0, 2).copy(), hidden_size=HIDDEN)
    np.testing.assert_array_equal(y, same.transpose(2, 0, 1, 3))
    np.testing.assert_array_equal(last, end.transpose(1, 0, 2))


def test_activations_of_each_direction_have_their_own_numbers() -> None:
    x, w, r, bias = given("RNN", 2)
    settings = {
        "activations": ["Affine", "LeakyRelu"],
        "activation_alpha": [0.5, 0.25],
        "activation_beta": [0.125, 0.0],
    }
    y, _ = convert_many("RNN", 2, x, w, r, bias, hidden_size=HIDDEN, direction="bidirectional", **settings)  # type: ignore[arg-type]
    for way, (name, alpha, beta) in enumerate((("Affine", 0.5, 0.125), ("LeakyRelu", 0.25, 0.0))):
        parts = (x, w[way], r[way], bias[way], *zeros("RNN"))
        numbers = {"activations": name, "alpha": (alpha,), "beta": (beta,)}
        one, _ = apply_many("rnn", 2, *parts, reverse=way, **numbers)  # type: ignore[arg-type]
        np.testing.assert_array_equal(y[:, way], one)


@pytest.mark.parametrize("direction", ["forward", "reverse"])
@pytest.mark.parametrize("op", GATES)
def test_without_steps_the_first_states_are_the_last(op: str, direction: str) -> None:
    _, w, r, bias = given(op, 1)
    first = whole(1, BATCH, HIDDEN)
    x = np.zeros((0, BATCH, INPUTS), np.float32)
    y, last = convert_many(op, 2, x, w, r, bias, None, first, hidden_size=HIDDEN, direction=direction)
    assert y.shape == (0, 1, BATCH, HIDDEN)
    np.testing.assert_array_equal(last, first)


@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_a_length_known_at_run_time_alone_ends_with_the_last_step(direction: str) -> None:
    x, w, r, bias = given("GRU", 1)
    arrays = {"x": x, "w": w, "r": r, "b": bias}
    names = [*arrays, "lengths"]
    made = helper.make_node("GRU", names, ["y", "h"], hidden_size=HIDDEN, direction=direction)
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, array.shape) for name, array in arrays.items()]
    inputs.append(helper.make_tensor_value_info("lengths", TensorProto.INT32, (BATCH,)))
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("y", "h")]
    graph = helper.make_graph([made], "g", inputs, outputs)
    model = from_proto(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))
    session = Session(model, reference)
    made_by = []
    for first in (STEPS + 3, STEPS):
        feeds: dict[str, HostValue] = {**arrays, "lengths": np.array([first, 2, 3], np.int32)}
        made_by.append([np.asarray(value) for value in session.run(feeds).values()])
    for found, expected in zip(*made_by, strict=True):
        np.testing.assert_array_equal(found, expected)
