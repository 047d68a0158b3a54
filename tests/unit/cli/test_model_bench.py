"""Systems side by side: what the processes are told."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

from dovetail.cli.model_bench import in_turns


def test_inputs_may_have_any_name(tmp_path: Path) -> None:
    names = ["file", "allow_pickle", "names", "a/b"]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in names]
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])
    graph = helper.make_graph([helper.make_node("Sum", names, ["y"])], "sum", values, [result])
    path = tmp_path / "sum.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]), path)
    feeds = {name: np.ones(4, np.float32) for name in names}
    (seconds,) = in_turns(["dovetail"], str(path), 1, feeds).values()
    assert seconds and all(s > 0 for s in seconds)
