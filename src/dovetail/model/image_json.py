"""Images and reports as JSON, and back: nothing is taken for granted of what is read.

A value of the wrong kind, a number out of its range, or a place that is not there is a ``ValueError``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from dovetail.base.dtypes import DTYPES
from dovetail.model.report import ModelReport, Note, Row
from dovetail.runtime.arrays import Parameter
from dovetail.runtime.model_image import Copy, HostStep, Image, Machine, NativeStep, Place, Space, Tensor
from dovetail.runtime.pool import MAX_THREADS

T = TypeVar("T")
Json = Mapping[str, object]
_MOST = 1 << 48
_MOST_STATUS = 1 << 20
_ENTRY = re.compile(r"k_[0-9a-f]{16}")


def pack_image(image: Image) -> dict[str, object]:
    machine = image.machine
    return {
        "machine": [machine.triple, list(machine.features), machine.relax],
        "threads": image.threads,
        "inputs": [_pack_parameter(p) for p in image.inputs],
        "outputs": [_pack_parameter(p) for p in image.outputs],
        "steps": [_pack_native(s) if isinstance(s, NativeStep) else _pack_host(s) for s in image.steps],
        "copies": [[_pack_place(c.source), c.output] for c in image.copies],
        "arena_bytes": image.arena_bytes,
    }


def unpack_image(data: object, constants: int) -> Image:
    """The image of a model with so many constants."""
    found = _object(data)
    triple, features, relax = _fields(found["machine"], 3)
    arena_bytes = _whole(found["arena_bytes"])
    inputs = _several(found["inputs"], lambda one: _parameter(one, False))
    outputs = _several(found["outputs"], lambda one: _parameter(one, True))
    threads = _whole(found["threads"], MAX_THREADS)
    known = _Known(
        {
            Space.INPUT: len(inputs) - 1,
            Space.OUTPUT: len(outputs) - 1,
            Space.CONSTANT: constants - 1,
            Space.ARENA: arena_bytes,
        },
        max(1, threads),
    )
    machine = Machine(_text(triple), _several(features, _text), _text(relax))
    steps = _several(found["steps"], known.step)
    copies = _several(found["copies"], lambda one: known.copy(one, len(outputs)))
    return Image(machine, max(1, threads), inputs, outputs, steps, copies, arena_bytes)


def pack_report(report: ModelReport) -> dict[str, object]:
    rows = [[r.title, r.kind, list(r.operators), r.algorithm, r.threads, list(r.sizes)] for r in report.rows]
    notes = [[n.pass_, n.what, n.why] for n in report.notes]
    return {"rows": rows, "notes": notes, "memory": [report.arena_bytes, report.constant_bytes]}


def unpack_report(data: object) -> ModelReport:
    found = _object(data)
    arena, constants = _fields(found["memory"], 2)
    return ModelReport(_several(found["rows"], _row), _several(found["notes"], _note), _whole(arena), _whole(constants))


class _Known:
    """Readers of what refers to places: ``largest`` is the last one of each space."""

    def __init__(self, largest: Mapping[Space, int], threads: int) -> None:
        self._largest, self._threads = largest, threads

    def step(self, data: object) -> NativeStep | HostStep:
        found = _object(data)
        return self._native(found) if "entry" in found else self._host(found)

    def copy(self, data: object, outputs: int) -> Copy:
        source, output = _fields(data, 2)
        return Copy(self._place(source), _whole(output, outputs - 1))

    def _native(self, found: Json) -> NativeStep:
        shared, private, stride, status = _fields(found["memory"], 4)
        entry = _text(found["entry"])
        if not _ENTRY.fullmatch(entry):
            raise ValueError(f"{entry!r} is no entry")
        end = self._largest[Space.ARENA]
        step = NativeStep(
            _text(found["title"]),
            entry,
            _flag(found["parallel"]),
            _several(found["arguments"], self._place),
            _whole(shared, end),
            _whole(private, end),
            _whole(stride),
            _whole(status, _MOST_STATUS),
            _several(found["names"], _text),
            _several(found["sizes"], _whole),
        )
        units = self._threads if step.parallel else 1
        if step.private + step.stride * units > end:
            raise ValueError("a step's work memory is not inside the arena")
        return step

    def _host(self, found: Json) -> HostStep:
        operands, results = (_several(found[name], self._tensor) for name in ("operands", "results"))
        return HostStep(_text(found["title"]), _text(found["node"]), operands, results)

    def _tensor(self, data: object) -> Tensor:
        place, dtype, shape = _fields(data, 3)
        return Tensor(self._place(place), _dtype(dtype), _several(shape, _whole))

    def _place(self, data: object) -> Place:
        space, at = _fields(data, 2)
        kind = Space(_text(space))
        return Place(kind, _whole(at, self._largest[kind]))


def _row(data: object) -> Row:
    title, kind, operators, algorithm, threads, sizes = _fields(data, 6)
    words = _several(operators, _text)
    return Row(_text(title), _text(kind), words, _text(algorithm), _whole(threads), _several(sizes, _whole))


def _note(data: object) -> Note:
    pass_, what, why = map(_text, _fields(data, 3))
    return Note(pass_, what, why)


def _parameter(data: object, writable: bool) -> Parameter:
    name, dtype, shape = _fields(data, 3)
    return Parameter(_text(name), _dtype(dtype), _several(shape, _whole), writable)


def _pack_parameter(parameter: Parameter) -> list[object]:
    return [parameter.name, parameter.dtype, list(parameter.shape)]


def _pack_native(step: NativeStep) -> dict[str, object]:
    return {
        "title": step.title,
        "entry": step.entry,
        "parallel": step.parallel,
        "arguments": [_pack_place(place) for place in step.arguments],
        "memory": [step.shared, step.private, step.stride, step.status_bytes],
        "names": list(step.names),
        "sizes": list(step.sizes),
    }


def _pack_host(step: HostStep) -> dict[str, object]:
    operands, results = ([_pack_tensor(t) for t in tensors] for tensors in (step.operands, step.results))
    return {"title": step.title, "node": step.node, "operands": operands, "results": results}


def _pack_tensor(tensor: Tensor) -> list[object]:
    return [_pack_place(tensor.place), tensor.dtype, list(tensor.shape)]


def _pack_place(place: Place) -> list[object]:
    return [place.space.value, place.at]


def _object(data: object) -> Json:
    if not isinstance(data, dict):
        raise ValueError("not an object")
    return data


def _fields(data: object, count: int) -> list[object]:
    if not isinstance(data, list) or len(data) != count:
        raise ValueError(f"not a list of {count}")
    return data


def _several(data: object, read: Callable[[object], T]) -> tuple[T, ...]:
    if not isinstance(data, list):
        raise ValueError("not a list")
    return tuple(map(read, data))


def _text(data: object) -> str:
    if not isinstance(data, str):
        raise ValueError("not a text")
    return data


def _flag(data: object) -> bool:
    if not isinstance(data, bool):
        raise ValueError("neither true nor false")
    return data


def _whole(data: object, largest: int = _MOST) -> int:
    if not isinstance(data, int) or isinstance(data, bool) or not 0 <= data <= largest:
        raise ValueError(f"no whole number up to {largest}")
    return data


def _dtype(data: object) -> str:
    if data not in DTYPES:
        raise ValueError("no dtype")
    return _text(data)
