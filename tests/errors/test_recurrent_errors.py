"""Recurrent layers that mean nothing, and the messages that say so, word for word.

``recurrent/<case>.txt`` is the message of the case of that name. Run with ``--update-golden`` to rewrite them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from dovetail.base.errors import DovetailError
from dovetail.frontends.onnx.file import from_proto
from dovetail.model.onnx_session import Session, reference

FOLDER = Path(__file__).parent / "recurrent"
STEPS, BATCH, INPUTS, HIDDEN = 4, 2, 3, 2


def layer(
    op: str = "GRU",
    direction: str = "forward",
    lengths: tuple[int, ...] | None = None,
    weights: int = HIDDEN,
    **attributes: object,
) -> ModelProto:
    """A model of one layer; ``weights`` as wide as the state is said to be."""
    gates = {"GRU": 3, "LSTM": 4, "RNN": 1}[op]
    arrays = {"w": np.ones((1, gates * weights, INPUTS), np.float32)}
    arrays["r"] = np.ones((1, gates * weights, HIDDEN), np.float32)
    if lengths is not None:
        arrays["lengths"] = np.array(lengths, np.int32)
    given = ["x", "w", "r", *(["", "lengths"] if lengths is not None else [])]
    made = helper.make_node(op, given, ["y"], "layer", hidden_size=HIDDEN, direction=direction, **attributes)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [STEPS, BATCH, INPUTS])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    constants = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    graph = helper.make_graph([made], "g", [x], [y], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


CASES: dict[str, Callable[[], ModelProto]] = {
    "length-beyond-the-steps": lambda: layer(lengths=(4, 5)),
    "length-beyond-the-steps-backwards": lambda: layer("LSTM", "reverse", lengths=(5, 1)),
    "length-below-zero": lambda: layer("RNN", lengths=(-1, 4)),
    "lengths-of-another-batch": lambda: layer(lengths=(4, 4, 3)),
    "directions-without-weights": lambda: layer(direction="bidirectional"),
    "activation-unknown": lambda: layer("RNN", activations=["Swish"]),
    "activations-too-few": lambda: layer("LSTM", activations=["Tanh"]),
    "weights-of-another-width": lambda: layer(weights=HIDDEN + 1),
}


@pytest.mark.parametrize("case", CASES)
def test_a_wrong_layer_is_refused_with_this_message(case: str, update_golden: bool) -> None:
    with pytest.raises(DovetailError) as caught:
        Session(from_proto(CASES[case]()), reference).run({"x": np.ones((STEPS, BATCH, INPUTS), np.float32)})
    path, found = FOLDER / f"{case}.txt", f"{type(caught.value).__name__}: {caught.value}\n"
    if update_golden:
        path.write_text(found)
    assert found == path.read_text()


def test_every_golden_message_has_its_case() -> None:
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(CASES)
