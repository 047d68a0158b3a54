"""Loop and Scan on the host: their body is called step by step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from dovetail.base.errors import LimitError
from dovetail.frontends.onnx.convert.attributes import body, integer, integers, malformed, place
from dovetail.frontends.onnx.elements import ELEMENTS
from dovetail.frontends.onnx.entries import Array, HostValue
from dovetail.frontends.onnx.model import OnnxNode, OnnxValue

Body = Callable[..., list[HostValue]]
MOST_STEPS = 10_000_000
"""A loop that goes on longer than this is taken to have no end."""


def run_loop(node: OnnxNode, call: Body, values: Mapping[str, HostValue]) -> Sequence[HostValue]:
    """``Loop(count, condition, state...)``."""
    count, going, *state = [values[name] if name else None for name in node.inputs]
    steps = MOST_STEPS if count is None else _whole(node, count)
    outputs = body(node, "body").outputs[1 + len(state) :]
    columns: list[list[HostValue]] = [[] for _ in outputs]
    goes_on, step = going is None or bool(_whole(node, going)), 0
    while goes_on and step < steps:
        if step == MOST_STEPS:
            raise LimitError(f"a loop of more than {MOST_STEPS} steps", where=place(node))
        condition, *made = call(np.array(step, np.int64), np.array(True), *state)
        state, rows = made[: len(state)], made[len(state) :]
        for column, row in zip(columns, rows, strict=True):
            column.append(row)
        goes_on, step = bool(_whole(node, condition)), step + 1
    return [*state, *(_stack(node, column, said) for column, said in zip(columns, outputs, strict=True))]


def run_scan(node: OnnxNode, call: Body, values: Mapping[str, HostValue]) -> Sequence[HostValue]:
    """``Scan(state..., scanned...)``, as it is from version 9 on."""
    scanned = integer(node, "num_scan_inputs", 0)
    given = [values[name] for name in node.inputs]
    state, rows = given[: len(given) - scanned], [_array(node, value) for value in given[len(given) - scanned :]]
    outputs = body(node, "body").outputs[len(state) :]
    axes, back = (integers(node, f"scan_input_{what}", (0,) * scanned) for what in ("axes", "directions"))
    out_axes, out_back = (integers(node, f"scan_output_{what}", (0,) * len(outputs)) for what in ("axes", "directions"))
    rows = [
        np.moveaxis(row, axis, 0)[:: -1 if reverse else 1] for row, axis, reverse in zip(rows, axes, back, strict=True)
    ]
    if len({len(row) for row in rows}) != 1:
        raise malformed(node, "what is scanned has different lengths")
    columns: list[list[HostValue]] = [[] for _ in outputs]
    for slices in zip(*rows, strict=True):
        made = call(*state, *map(np.ascontiguousarray, slices))
        state = made[: len(state)]
        for column, row in zip(columns, made[len(state) :], strict=True):
            column.append(row)
    stacked = [_stack(node, column, said) for column, said in zip(columns, outputs, strict=True)]
    turned = zip(stacked, out_axes, out_back, strict=True)
    return [*state, *(np.moveaxis(part[:: -1 if reverse else 1], 0, axis) for part, axis, reverse in turned)]


def _stack(node: OnnxNode, rows: Sequence[HostValue], said: OnnxValue) -> Array:
    if rows:
        return np.stack([_array(node, row) for row in rows])
    if said.shape is None or said.elem_type not in ELEMENTS:
        raise malformed(node, "it repeats never, and nothing says the type of what it would make")
    shape = (0, *(extent if isinstance(extent, int) else 0 for extent in said.shape))
    return np.zeros(shape, ELEMENTS[said.elem_type].array)


def _array(node: OnnxNode, value: HostValue) -> Array:
    if not isinstance(value, np.ndarray):
        raise malformed(node, "a tensor is needed")
    return value


def _whole(node: OnnxNode, value: HostValue) -> int:
    found = _array(node, value)
    if found.size != 1:
        raise malformed(node, "one number is needed")
    return int(found.reshape(-1)[0])
