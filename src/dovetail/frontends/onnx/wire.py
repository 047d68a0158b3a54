"""How many parts a file has, counted before protobuf makes objects of them.

Two bytes of a file can be a node, which takes a hundred in memory: a small file could ask for all memory there is. Only
the frame of each part is looked at; bytes and lists of numbers are stepped over.
"""

from __future__ import annotations

from collections.abc import Mapping

from onnx import ModelProto

from dovetail.base.errors import LimitError, ModelError

Parts = Mapping[int, str]
"""The fields of a message that are messages, and of which type."""

_DEEPEST = 100
_VARINT, _LENGTH = 0, 2
_FIXED = {1: 8, 5: 4}
_LONGEST_VARINT = 10


def check_parts(content: bytes, allowed: int, name: str) -> None:
    """Refuse ``content`` when it has more than ``allowed`` fields, or is no tree of messages."""
    waiting = [(0, len(content), _ROOT, 0)]
    count = 0
    while waiting:
        at, end, kind, depth = waiting.pop()
        inner = _PARTS[kind]
        while at < end:
            count += 1
            if count > allowed:
                raise _too_many(name, allowed)
            tag, at = _varint(content, at, end, name) if content[at] & 0x80 else (content[at], at + 1)
            start, at = _step(content, at, end, tag & 7, name)
            message = inner.get(tag >> 3) if start < at and tag & 7 == _LENGTH else None
            if message is not None:
                if depth == _DEEPEST:
                    raise _damaged(name, at)
                waiting.append((start, at, message, depth + 1))


def _step(content: bytes, at: int, end: int, wire: int, name: str) -> tuple[int, int]:
    """Where the content of a field begins and ends, that is laid out as ``wire`` says."""
    if wire == _LENGTH:
        if at < end and content[at] < 0x80:
            start, stop = at + 1, at + 1 + content[at]
        else:
            length, start = _varint(content, at, end, name)
            stop = start + length
    elif wire == _VARINT:
        start, stop = at, _varint(content, at, end, name)[1]
    else:
        start, stop = at, at + _FIXED.get(wire, len(content) + 1)
    if stop > end:
        raise _damaged(name, at)
    return start, stop


def _varint(content: bytes, at: int, end: int, name: str) -> tuple[int, int]:
    """A number at ``at``, and where it ends."""
    number = shift = 0
    for place in range(at, min(end, at + _LONGEST_VARINT)):
        byte = content[place]
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, place + 1
        shift += 7
    raise _damaged(name, at)


def _damaged(name: str, at: int) -> ModelError:
    return ModelError(f"{name} is not an ONNX file, or is damaged", why=f"byte {at} begins nothing that fits there")


def _too_many(name: str, allowed: int) -> LimitError:
    return LimitError(
        f"{name} has more than the {allowed} parts that the limit 'messages' of model files allows",
        hint="ModelLimits(messages=...) when the file can be trusted",
    )


def _parts() -> Mapping[str, Parts]:
    """The types of messages that ONNX has, by name, as the package states them."""
    found: dict[str, Parts] = {}
    waiting = [ModelProto.DESCRIPTOR]
    while waiting:
        described = waiting.pop()
        if described.full_name in found:
            continue
        inner = [field for field in described.fields if field.message_type is not None]
        found[described.full_name] = {field.number: field.message_type.full_name for field in inner}
        waiting.extend(field.message_type for field in inner)
    return found


_ROOT: str = ModelProto.DESCRIPTOR.full_name
_PARTS = _parts()
