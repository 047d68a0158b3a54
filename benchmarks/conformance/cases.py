"""The cases in the onnx package: a model, and files with what goes in and what must come out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np
from onnx import MapProto, OptionalProto, SequenceProto, TensorProto

from dovetail.base.limits import DEFAULT_MODEL_LIMITS
from dovetail.frontends.onnx.entries import HostValue
from dovetail.frontends.onnx.model import OnnxModel, OnnxType, OptionalType, SequenceType
from dovetail.frontends.onnx.reading import Place, Reading
from dovetail.frontends.onnx.tensor import read_tensor

RTOL, ATOL = 1e-3, 1e-7
"""The suite's own tolerances where a case states none."""
SUITES = {
    "node": ("node",),
    "light": ("light",),
    "simple": ("simple",),
    "pytorch": ("pytorch-operator", "pytorch-converted"),
}
_RTOL = {"densenet121": 2e-3}
"""As the suite states it beside its light models."""


@dataclass(frozen=True, slots=True)
class Case:
    """``folder`` holds the data; a light model has none and is called with numbers from 0 to 1 in order."""

    name: str
    model: Path
    folder: Path | None
    rtol: float = RTOL
    atol: float = ATOL


@dataclass(frozen=True, slots=True)
class Example:
    """One call and its results, in the order of the model's inputs and outputs."""

    inputs: tuple[HostValue, ...]
    outputs: tuple[HostValue, ...]


def cases(suite: str) -> list[Case]:
    """All cases of a suite, by name."""
    root = Path(str(files("onnx") / "backend" / "test" / "data"))
    return sorted((case for part in SUITES[suite] for case in _cases_in(root / part)), key=lambda case: case.name)


def examples(case: Case, model: OnnxModel) -> Iterator[Example]:
    """The calls of a case."""
    inits = model.graph.initializers
    taken = [value for value in model.graph.inputs if value.name not in inits]
    if case.folder is None:
        inputs = tuple(_ramp(tuple(d if isinstance(d, int) else 1 for d in value.shape or ())) for value in taken)
        beside = [case.model.with_name(f"{case.model.stem}_output_{at}.pb") for at in range(len(model.graph.outputs))]
        outputs = tuple(_value(path, out.type) for path, out in zip(beside, model.graph.outputs, strict=True))
        yield Example(inputs, outputs)
        return
    for folder in sorted(case.folder.glob("test_data_set*")):
        given, made = _files(folder, "input"), _files(folder, "output")
        named = model.graph.inputs if len(given) > len(taken) else taken
        yield Example(
            tuple(_value(path, value.type) for path, value in zip(given, named, strict=False)),
            tuple(_value(path, value.type) for path, value in zip(made, model.graph.outputs, strict=False)),
        )


def _cases_in(folder: Path) -> Iterator[Case]:
    for model in folder.glob("light_*.onnx"):
        name = model.stem.removeprefix("light_")
        yield Case(f"test_{name}", model, None, _RTOL.get(name, RTOL))
    for model in folder.glob("*/model.onnx"):
        stated = model.parent / "data.json"
        said = json.loads(stated.read_text()) if stated.exists() else {}
        yield Case(model.parent.name, model, model.parent, said.get("rtol", RTOL), said.get("atol", ATOL))


def _files(folder: Path, kind: str) -> list[Path]:
    return sorted(folder.glob(f"{kind}_*.pb"), key=lambda path: int(path.stem.rsplit("_", 1)[1]))


def _ramp(shape: tuple[int, ...]) -> HostValue:
    count = int(np.prod(shape))
    return (np.arange(count).reshape(shape) / count).astype(np.float32)


def _value(path: Path, said: OnnxType | None) -> HostValue:
    content = path.read_bytes()
    if isinstance(said, SequenceType):
        return _sequence(SequenceProto.FromString(content))
    if isinstance(said, OptionalType):
        return _optional(OptionalProto.FromString(content))
    return _tensor(TensorProto.FromString(content))


def _tensor(proto: TensorProto) -> HostValue:
    return read_tensor(proto, Reading(DEFAULT_MODEL_LIMITS), Place("the data of a case")).array()


def _sequence(proto: SequenceProto) -> HostValue:
    kinds = {SequenceProto.TENSOR: proto.tensor_values, SequenceProto.SEQUENCE: proto.sequence_values}
    if proto.elem_type == SequenceProto.MAP:
        return [_map(item) for item in proto.map_values]
    if proto.elem_type == SequenceProto.OPTIONAL:
        return [_optional(item) for item in proto.optional_values]
    found = kinds.get(proto.elem_type, ())
    return [_sequence(item) if isinstance(item, SequenceProto) else _tensor(item) for item in found]


def _optional(proto: OptionalProto) -> HostValue:
    if proto.elem_type == OptionalProto.TENSOR:
        return _tensor(proto.tensor_value)
    if proto.elem_type == OptionalProto.SEQUENCE:
        return _sequence(proto.sequence_value)
    return _optional(proto.optional_value) if proto.elem_type == OptionalProto.OPTIONAL else None


def _map(proto: MapProto) -> HostValue:
    keys = list(proto.string_keys) or list(proto.keys)
    values = _sequence(proto.values)
    assert isinstance(values, list)
    return {key.decode() if isinstance(key, bytes) else key: v for key, v in zip(keys, values, strict=True)}
