"""An ONNX file becomes plain data: protobuf's parser, then our own checks, and no other native code.

Only this package touches protobuf, and only until here: what leaves is an OnnxModel.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from google.protobuf.message import DecodeError
from onnx import ModelProto

from dovetail.base.errors import LimitError, ModelError
from dovetail.base.limits import DEFAULT_MODEL_LIMITS, ModelLimits
from dovetail.base.words import printable
from dovetail.frontends.onnx.external import ExternalData
from dovetail.frontends.onnx.graphs import read_function, read_graph, read_opsets
from dovetail.frontends.onnx.model import FunctionKey, OnnxFunction, OnnxModel
from dovetail.frontends.onnx.reading import Place, Reading
from dovetail.frontends.onnx.validate import validate
from dovetail.frontends.onnx.wire import check_parts


def read(source: str | Path | bytes, limits: ModelLimits = DEFAULT_MODEL_LIMITS) -> OnnxModel:
    """The model in a file, or in the bytes of one. Data beside the file is read from the file's own directory."""
    if isinstance(source, bytes):
        return from_proto(_parse(source, "the model", limits), limits)
    path = Path(source)
    return from_proto(_parse(_content(path, limits), f"'{printable(str(path))}'", limits), limits, path.parent)


def from_proto(
    proto: ModelProto, limits: ModelLimits = DEFAULT_MODEL_LIMITS, directory: Path | None = None
) -> OnnxModel:
    """The model in a ModelProto; ``directory`` is where data beside it may lie."""
    reading = Reading(limits, None if directory is None else ExternalData(directory))
    place = Place("the model")
    if not proto.HasField("graph"):
        raise ModelError("the model has no graph", hint="is this an ONNX file?")
    opsets = read_opsets(proto.opset_import, reading, place)
    reading.within("functions", len(proto.functions), place)
    functions: dict[FunctionKey, OnnxFunction] = {}
    for function in (read_function(function, reading, place) for function in proto.functions):
        key = (function.domain, function.name, function.overload)
        if key in functions:
            raise ModelError("the model has a function twice", where=str(place.inside("function", function.name)))
        functions[key] = function
    graph = read_graph(proto.graph, reading, place)
    beside = () if reading.external is None else tuple(reading.external.files)
    return validate(OnnxModel(proto.ir_version, opsets, graph, functions, beside), limits)


def _parse(content: bytes, name: str, limits: ModelLimits) -> ModelProto:
    if len(content) > limits.file_bytes:
        raise LimitError(f"{name} has {len(content)} bytes, more than the {limits.file_bytes} that are allowed")
    check_parts(content, limits.messages, name)
    try:
        return ModelProto.FromString(content)
    except DecodeError as problem:
        raise ModelError(f"{name} is not an ONNX file, or is damaged", why=printable(str(problem))) from None


def _content(path: Path, limits: ModelLimits) -> bytes:
    """The bytes of a regular file."""
    shown = printable(str(path))
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        with os.fdopen(file, "rb") as stream:
            status = os.fstat(file)
            if not stat.S_ISREG(status.st_mode):
                raise ModelError(f"'{shown}' is not a file")
            if status.st_size > limits.file_bytes:
                raise LimitError(f"'{shown}' has {status.st_size} bytes, more than the {limits.file_bytes} allowed")
            return stream.read(status.st_size)
    except (OSError, ValueError) as problem:
        raise ModelError(f"'{shown}' cannot be read", why=getattr(problem, "strerror", None) or str(problem)) from None
