"""How far a file is taken: read and checked, made into graphs for inputs such as it says it takes, or also run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dovetail.base.errors import UnsupportedError
from dovetail.frontends.onnx.elements import ELEMENTS, STRING
from dovetail.frontends.onnx.file import read
from dovetail.frontends.onnx.inline import Names, Work
from dovetail.frontends.onnx.model import OnnxModel, OnnxValue, TensorType
from dovetail.frontends.onnx.specialise import specialise
from dovetail.model.onnx_session import Session, reference

SMALL_INPUTS = 1 << 12
OPEN_EXTENT = 2
"""For dimensions of inputs of which a file says nothing."""


def read_only(path: Path) -> None:
    """Read and checked."""
    read(path)


def imported(path: Path) -> None:
    """Read, checked, and the first stage of it made for inputs of zeros."""
    model = read(path)
    fixed = {name: tensor.array() for name, tensor in model.graph.initializers.items()}
    given = {value.name: _input(value) for value in model.graph.inputs if value.name not in fixed}
    work = [Work(node, model.opsets) for node in model.graph.nodes]
    specialise(work, given, fixed, _outputs(model), model.functions, Names(model))


def ran(path: Path) -> None:
    """Read, checked, and run by the meaning of its graphs, on small inputs of zeros.

    A loop may run as long as the file says: that a run takes long is no defect, that it raises what has no type is one.
    """
    model = read(path)
    session = Session(model, reference)
    feeds = {value.name: _input(value) for value in session.inputs}
    if sum(array.size for array in feeds.values()) > SMALL_INPUTS:
        raise UnsupportedError("inputs of such a size", "the reference is slow")
    session.run(feeds)


def _outputs(model: OnnxModel) -> list[str]:
    return [value.name for value in model.graph.outputs]


def _input(value: OnnxValue) -> npt.NDArray[np.generic]:
    """Zeros of the stated type, of any size: they take no memory."""
    if not isinstance(value.type, TensorType) or value.elem_type == 0:
        raise UnsupportedError("an input that is no tensor", "nothing to give it")
    zero: npt.NDArray[np.generic] = np.zeros((), ELEMENTS[value.elem_type].array)
    if value.elem_type == STRING:
        zero[()] = ""
    shape = [extent if isinstance(extent, int) else OPEN_EXTENT for extent in value.shape or ()]
    if np.prod(shape, dtype=object) > 1 << 40:
        raise UnsupportedError("an input of such a size", "no machine has the memory")
    return np.broadcast_to(zero, shape)


STAGES: Mapping[str, Callable[[Path], None]] = {"read": read_only, "import": imported, "run": ran}
