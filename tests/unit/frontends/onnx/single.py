"""One ONNX node on arrays, by its conversion alone: what would run on the host is an error here."""

from __future__ import annotations

from collections.abc import Collection
from typing import cast

import numpy as np
import numpy.typing as npt
from onnx import helper, numpy_helper

from dovetail.frontends.onnx.file import from_proto
from dovetail.model.onnx_session import Session, reference

Given = npt.NDArray[np.generic]
Array = npt.NDArray[np.float64]
"""Whatever the dtype is: NumPy's type annotations know no arithmetic of arrays in general."""


def convert(op: str, *given: Given | None, opset: int = 21, fixed: Collection[int] = (), **attributes: object) -> Array:
    """The one result of a node; an input that is None is left out."""
    return convert_many(op, 1, *given, opset=opset, fixed=fixed, **attributes)[0]


def convert_many(
    op: str, results: int, *given: Given | None, opset: int = 21, fixed: Collection[int] = (), **attributes: object
) -> tuple[Array, ...]:
    """The results of a node; inputs in ``fixed`` are constants of the model."""
    names = ["" if array is None else f"i{number}" for number, array in enumerate(given)]
    present = {number: np.asarray(array) for number, array in enumerate(given) if array is not None}
    inputs = [
        helper.make_tensor_value_info(names[number], helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for number, array in present.items()
        if number not in fixed
    ]
    weights = [numpy_helper.from_array(array, names[n]) for n, array in present.items() if n in fixed]
    outputs = [helper.make_empty_tensor_value_info(f"o{number}") for number in range(results)]
    node = helper.make_node(op, names, [value.name for value in outputs], **attributes)
    graph = helper.make_graph([node], "g", inputs, outputs, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    session = Session(from_proto(model), reference)
    found = session.run({names[n]: array for n, array in present.items() if n not in fixed})
    assert not session.report.host, f"{op} ran on the host"
    return tuple(cast(Array, found[f"o{number}"]) for number in range(results))
