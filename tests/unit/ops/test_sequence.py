"""Recurrent layers against steps in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from dovetail.base.errors import OperatorError
from tests.unit.ops.single import Array, apply_many, whole

STEPS, BATCH, INPUTS, HIDDEN = 4, 3, 2, 3


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def given(gates: int) -> tuple[Array, ...]:
    """x, w, r, bias and the first state, of small numbers."""
    parts = [(STEPS, BATCH, INPUTS), (gates * HIDDEN, INPUTS), (gates * HIDDEN, HIDDEN), (2 * gates * HIDDEN,)]
    return tuple(whole(*shape) / np.float32(8) for shape in (*parts, (BATCH, HIDDEN)))


def gates_at(x: Array, w: Array, r: Array, bias: Array, h: Array, count: int) -> list[Array]:
    own, state = np.split(bias, 2)
    return np.split(x @ w.T + h @ r.T + own + state, count, axis=1)


def test_a_plain_layer_carries_one_state() -> None:
    x, w, r, bias, h = given(1)
    y, last = apply_many("rnn", 2, x, w, r, bias, h)
    for t in range(STEPS):
        h = np.tanh(gates_at(x[t], w, r, bias, h, 1)[0])
        np.testing.assert_allclose(y[t], h, rtol=2e-6, atol=1e-6)
    np.testing.assert_array_equal(last, y[-1])


def test_whole_numbers_stay_exact_with_an_activation_that_does_not_round() -> None:
    x, w, r, bias, h = (np.rint(part * 2) for part in given(1))
    y, _ = apply_many("rnn", 2, x, w, r, bias, h, activations="Relu", clip=64.0)
    for t in range(STEPS):
        h = np.maximum(np.clip(gates_at(x[t], w, r, bias, h, 1)[0], -64, 64), 0)
        np.testing.assert_array_equal(y[t], h)


@pytest.mark.parametrize("forget", [0, 1])
def test_a_long_memory_sees_its_cell_through_peepholes(forget: int) -> None:
    x, w, r, bias, h = given(4)
    c, peepholes = whole(BATCH, HIDDEN, low=-3) / np.float32(4), whole(3 * HIDDEN) / np.float32(4)
    y, h_last, c_last = apply_many("lstm", 3, x, w, r, bias, h, c, peepholes, input_forget=forget)
    pi, po, pf = np.split(peepholes, 3)
    for t in range(STEPS):
        i, o, f, g = gates_at(x[t], w, r, bias, h, 4)
        i = sigmoid(i + pi * c)
        c = (1 - i if forget else sigmoid(f + pf * c)) * c + i * np.tanh(g)
        h = sigmoid(o + po * c) * np.tanh(c)
        np.testing.assert_allclose(y[t], h, rtol=2e-6, atol=1e-6)
    np.testing.assert_allclose(c_last, c, rtol=2e-6, atol=1e-6)
    np.testing.assert_array_equal(h_last, y[-1])


@pytest.mark.parametrize("late", [0, 1])
@pytest.mark.parametrize("reverse", [0, 1])
def test_a_gated_unit_resets_before_or_after_its_weights(late: int, reverse: int) -> None:
    x, w, r, bias, h = given(3)
    y, last = apply_many("gru", 2, x, w, r, bias, h, linear_before_reset=late, reverse=reverse)
    own, state = np.split(bias, 2)
    for t in reversed(range(STEPS)) if reverse else range(STEPS):
        z, reset, _ = (sigmoid(gate) for gate in gates_at(x[t], w, r, bias, h, 3))
        inside = x[t] @ w[2 * HIDDEN :].T + own[2 * HIDDEN :]
        if late:
            new = np.tanh(inside + reset * (h @ r[2 * HIDDEN :].T + state[2 * HIDDEN :]))
        else:
            new = np.tanh(inside + (reset * h) @ r[2 * HIDDEN :].T + state[2 * HIDDEN :])
        h = (1 - z) * new + z * h
        np.testing.assert_allclose(y[t], h, rtol=2e-6, atol=1e-6)
    np.testing.assert_array_equal(last, y[0 if reverse else -1])


def test_a_sequence_that_has_ended_keeps_its_state_and_gives_zeros() -> None:
    x, w, r, bias, h = given(1)
    lengths = np.array([4, 1, 2])
    y, last = apply_many("rnn", 2, x, w, r, bias, h, lengths)
    whole_y, _ = apply_many("rnn", 2, x, w, r, bias, h)
    for b, n in enumerate(lengths):
        np.testing.assert_array_equal(y[:n, b], whole_y[:n, b])
        assert not y[n:, b].any()
        np.testing.assert_array_equal(last[b], y[n - 1, b])
    with pytest.raises(OperatorError, match="backwards"):
        apply_many("rnn", 2, x, w, r, bias, h, lengths, reverse=1)


def test_activations_are_named() -> None:
    with pytest.raises(OperatorError, match="no activation 'sine'"):
        apply_many("rnn", 2, *given(1), activations="Sine")
    with pytest.raises(OperatorError, match="1 activations, not 2"):
        apply_many("gru", 2, *given(3), activations="Tanh")


@pytest.mark.parametrize("reverse", [0, 1])
def test_a_projected_state_is_what_the_next_step_sees(reverse: int) -> None:
    narrow = 2
    x, w, _, bias, _ = given(4)
    r, projection = whole(4 * HIDDEN, narrow) / np.float32(8), whole(narrow, HIDDEN) / np.float32(4)
    h, c = whole(BATCH, narrow) / np.float32(4), whole(BATCH, HIDDEN) / np.float32(4)
    y, h_last, c_last = apply_many("projected_lstm", 3, x, w, r, bias, h, c, projection, reverse=reverse)
    for t in reversed(range(STEPS)) if reverse else range(STEPS):
        i, o, f, g = gates_at(x[t], w, r, bias, h, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = (sigmoid(o) * np.tanh(c)) @ projection.T
        np.testing.assert_allclose(y[t], h, rtol=2e-6, atol=1e-6)
    np.testing.assert_allclose(h_last, h, rtol=2e-6, atol=1e-6)
    np.testing.assert_allclose(c_last, c, rtol=2e-6, atol=1e-6)


def test_a_projection_fits_its_states() -> None:
    x, w, r, bias, h = given(4)
    with pytest.raises(OperatorError, match="projection"):
        apply_many("projected_lstm", 3, x, w, r, bias, h, whole(BATCH, HIDDEN), whole(HIDDEN + 1, HIDDEN))
