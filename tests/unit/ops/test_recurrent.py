"""Cells of recurrent layers against NumPy in float64."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from dovetail.base.errors import OperatorError
from tests.unit.ops.single import Array, apply, apply_many, broken

Floats = npt.NDArray[np.float64]
BATCH, INPUT, HIDDEN = 3, 4, 5


def sigmoid(x: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-x)))


def drawn(count: int, gates: int) -> tuple[Array, ...]:
    """x, ``count`` states, the two weights and two biases."""
    shapes = [(BATCH, INPUT), *[(BATCH, HIDDEN)] * count, (gates * HIDDEN, INPUT), (gates * HIDDEN, HIDDEN)]
    arrays = [broken(*shape) / 2 for shape in shapes]
    return (*arrays, broken(gates * HIDDEN), broken(gates * HIDDEN) / 2)


@pytest.mark.parametrize("gates", ["ifgo", "iofg", "gofi"])
@pytest.mark.parametrize("biased", [False, True])
def test_an_lstm_cell_has_its_gates_in_any_order(gates: str, biased: bool) -> None:
    x, h, c, w, r, bias, _ = drawn(2, 4)
    total = x.astype(np.float64) @ w.T + h.astype(np.float64) @ r.T + (bias if biased else 0)
    part = {gate: total[:, k * HIDDEN : (k + 1) * HIDDEN] for k, gate in enumerate(gates)}
    c_next = sigmoid(part["f"]) * c + sigmoid(part["i"]) * np.tanh(part["g"])
    h_next = sigmoid(part["o"]) * np.tanh(c_next)
    found = apply_many("lstm_cell", 2, x, h, c, w, r, *([bias] if biased else []), gates=gates)
    np.testing.assert_allclose(found[0], h_next, rtol=2e-6, atol=1e-6)
    np.testing.assert_allclose(found[1], c_next, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("gates", ["rzn", "zrn", "nzr"])
@pytest.mark.parametrize("biases", [0, 1, 2])
@pytest.mark.parametrize("late", [0, 1])
def test_a_gru_cell_resets_before_or_after_the_product(gates: str, biases: int, late: int) -> None:
    x, h, w, r, bias, recurrent = drawn(1, 3)
    wide = h.astype(np.float64)
    added, kept = (bias if biases else np.zeros(3 * HIDDEN)), (recurrent if biases == 2 else np.zeros(3 * HIDDEN))
    rows = {gate: slice(k * HIDDEN, (k + 1) * HIDDEN) for k, gate in enumerate(gates)}
    a = {g: x.astype(np.float64) @ w[at].T + added[at] for g, at in rows.items()}
    u = {g: wide @ r[at].T + kept[at] for g, at in rows.items()}
    reset, z = sigmoid(a["r"] + u["r"]), sigmoid(a["z"] + u["z"])
    early = (reset * wide) @ r[rows["n"]].T + kept[rows["n"]]
    n = np.tanh(a["n"] + (reset * u["n"] if late else early))
    operands = [x, h, w, r, bias, recurrent][: 4 + biases]
    found = apply("gru_cell", *operands, gates=gates, linear_before_reset=late)
    np.testing.assert_allclose(found, (1 - z) * n + z * wide, rtol=2e-6, atol=1e-6)


def test_gates_must_be_an_order_of_the_known_ones() -> None:
    x, h, c, w, r, *_ = drawn(2, 4)
    with pytest.raises(OperatorError, match="not an order of 'ifgo'"):
        apply_many("lstm_cell", 2, x, h, c, w, r, gates="iofc")
