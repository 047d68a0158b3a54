"""The file of a compiled model: JSON, object code and constants, one behind the other, each from a multiple of 64 on.

    16 bytes  b"dovetail model" and the number of the format
    32 bytes  digest of all that follows the first 64 bytes
     8 bytes  how long the JSON is
     8 bytes  how long the file is
    JSON      {"version", "image", "report", "objects": [[start, end], ...],
               "constants": [{"dtype", "shape", "data_offsets": [start, end]}, ...]}
    blocks    offsets count from the first one, as in a safetensors file

A file is mapped, not read: constants are used where they lie. It holds machine code, so who loads one trusts who wrote
it; the checks are against damage and mistakes. The digest is of digests of stretches, which are taken in parallel.
"""

from __future__ import annotations

import json
import mmap
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from math import prod
from pathlib import Path
from secrets import token_hex
from typing import IO

import numpy as np
import numpy.typing as npt

from dovetail import __version__
from dovetail.base.dtypes import DTYPES, from_numpy
from dovetail.base.errors import LimitError, ModelError, TargetError
from dovetail.base.limits import DEFAULT_MODEL_LIMITS, ModelLimits
from dovetail.base.words import printable
from dovetail.model.finished import Finished
from dovetail.model.image_json import pack_image, pack_report, unpack_image, unpack_report
from dovetail.runtime.jit import this_machine
from dovetail.runtime.model_image import Machine

Array = npt.NDArray[np.generic]
_MAP_FLAGS = mmap.MAP_PRIVATE | getattr(mmap, "MAP_POPULATE", 0)
SUFFIX = ".dovetail"
_FORMAT = 2
_MAGIC = b"dovetail model"
_HEAD_BYTES = 64
_ALIGNMENT = 64
_LARGEST_EXTENT = 1 << 40
_JSON_BYTES = 1 << 28
_STRETCH_BYTES = 1 << 21
_ROW_BYTES = 1 << 12
_DIGEST_THREADS = 4


def write(finished: Finished, path: Path) -> None:
    """All of the file, or nothing."""
    part = path.with_name(f".{token_hex(8)}.tmp")
    try:
        with part.open("x+b") as file:
            _write(finished, file)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def read(path: Path, limits: ModelLimits = DEFAULT_MODEL_LIMITS) -> Finished:
    """The model in the file at ``path``; a ModelError where it is not whole, or a TargetError where it cannot run here.

    The file is mapped for as long as its constants are used.
    """
    data = _mapped(path)
    try:
        found, blocks = _json(data)
        constants = _constants(data, blocks, found["constants"])
        image = unpack_image(found["image"], len(constants))
        report = unpack_report(found["report"])
        objects = tuple(_block(data, blocks, one) for one in _list(found["objects"]))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise _damaged(path, str(error)) from error
    _check_machine(path, image.machine)
    total = image.arena_bytes + sum(array.nbytes for array in constants)
    total += sum(prod(n or 0 for n in p.shape) * p.numpy.itemsize for p in (*image.inputs, *image.outputs))
    if total > limits.memory_bytes:
        what = f"the model takes {total:,} bytes, the limit is {limits.memory_bytes:,}"
        raise LimitError(what, where=printable(str(path)), hint="ModelLimits(memory_bytes=...)")
    return Finished(image, objects, constants, report)


def _write(finished: Finished, file: IO[bytes]) -> None:
    blocks = [*(memoryview(code) for code in finished.objects), *(_bytes_of(array) for array in finished.constants)]
    offsets = list(_offsets([block.nbytes for block in blocks]))
    count = len(finished.objects)
    constants = [
        {"dtype": _name(array), "shape": list(array.shape), "data_offsets": where}
        for array, where in zip(finished.constants, offsets[count:], strict=True)
    ]
    head = {
        "version": __version__,
        "image": pack_image(finished.image),
        "report": pack_report(finished.report),
        "objects": offsets[:count],
        "constants": constants,
    }
    text = json.dumps(head).encode()
    start = _HEAD_BYTES + _padded(len(text))
    end = start + (offsets[-1][1] if offsets else 0)
    file.write(_MAGIC + _FORMAT.to_bytes(2, "little") + bytes(32))
    file.write(len(text).to_bytes(8, "little") + end.to_bytes(8, "little") + text)
    for block, (first, _) in zip(blocks, offsets, strict=True):
        file.write(bytes(start + first - file.tell()))
        file.write(block)
    file.write(bytes(end - file.tell()))
    file.flush()
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as whole:
        digest = _digest(memoryview(whole))
    file.seek(len(_MAGIC) + 2)
    file.write(digest)


def _mapped(path: Path) -> memoryview:
    """The file's bytes, of the right format, length and digest."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode) or found.st_size < _HEAD_BYTES:
                raise _damaged(path, "it is too short, or no regular file")
            data = memoryview(mmap.mmap(descriptor, 0, _MAP_FLAGS, mmap.PROT_READ))
        finally:
            os.close(descriptor)
    except (OSError, ValueError) as error:
        raise ModelError(f"'{printable(str(path))}' cannot be read", why=str(error)) from error
    magic, number = bytes(data[: len(_MAGIC)]), int.from_bytes(data[len(_MAGIC) : 16], "little")
    if magic != _MAGIC:
        raise _damaged(path, "it does not begin as one")
    if number != _FORMAT:
        raise ModelError(
            f"'{printable(str(path))}' is a compiled model of format {number}",
            why=f"this version reads format {_FORMAT}",
            hint="compile the model again",
        )
    if int.from_bytes(data[56:64], "little") != len(data):
        raise _damaged(path, "it is longer or shorter than it says")
    if bytes(data[16:48]) != _digest(data):
        raise _damaged(path, "its digest does not fit its contents")
    return data


def _json(data: memoryview) -> tuple[Mapping[str, object], int]:
    """The JSON, and where blocks begin."""
    length = int.from_bytes(data[48:56], "little")
    if length > min(_JSON_BYTES, len(data) - _HEAD_BYTES):
        raise ValueError("the JSON is longer than the file")
    found = json.loads(bytes(data[_HEAD_BYTES : _HEAD_BYTES + length]))
    if not isinstance(found, dict):
        raise ValueError("not an object")
    return found, _HEAD_BYTES + _padded(length)


def _constants(data: memoryview, blocks: int, listed: object) -> tuple[Array, ...]:
    found = []
    for one in _list(listed):
        if not isinstance(one, dict) or one["dtype"] not in DTYPES:
            raise ValueError("not a constant")
        element, shape = DTYPES[one["dtype"]].numpy, _shape(one["shape"])
        start, end = _stretch(data, blocks, one["data_offsets"])
        if end - start != prod(shape) * element.itemsize or (start - blocks) % _ALIGNMENT:
            raise ValueError("a constant is not as long as its shape says")
        found.append(np.frombuffer(data[start:end], element).reshape(shape))
    return tuple(found)


def _shape(data: object) -> tuple[int, ...]:
    listed = _list(data)
    found = tuple(extent for extent in listed if isinstance(extent, int) and 0 <= extent < _LARGEST_EXTENT)
    if len(found) != len(listed):
        raise ValueError("a constant has no such shape")
    return found


def _block(data: memoryview, blocks: int, where: object) -> bytes:
    start, end = _stretch(data, blocks, where)
    return bytes(data[start:end])


def _stretch(data: memoryview, blocks: int, where: object) -> tuple[int, int]:
    first, last = _list(where)
    if not isinstance(first, int) or not isinstance(last, int) or not 0 <= first <= last <= len(data) - blocks:
        raise ValueError("a block is not inside the file")
    return blocks + first, blocks + last


def _list(data: object) -> list[object]:
    if not isinstance(data, list):
        raise ValueError("not a list")
    return data


def _check_machine(path: Path, machine: Machine) -> None:
    architecture, features = this_machine()
    wanted = machine.triple.split("-")[0]
    missing = [wanted] if wanted not in ("", architecture) else sorted(set(machine.features) - features)
    if missing:
        raise TargetError(
            f"this machine cannot run '{printable(str(path))}'",
            why=f"it lacks {', '.join(map(printable, missing))}",
            hint="compile the model on this machine",
        )


def _digest(data: memoryview) -> bytes:
    """Of the head's two lengths and all behind the head."""
    starts = range(_HEAD_BYTES, len(data), _STRETCH_BYTES)
    with ThreadPoolExecutor(_DIGEST_THREADS) as pool:
        digests = pool.map(lambda start: _stretch_digest(data[start : start + _STRETCH_BYTES]), starts)
        return sha256(bytes(data[48:_HEAD_BYTES]) + b"".join(digests)).digest()


def _stretch_digest(data: memoryview) -> bytes:
    """Of sums along both sides of a square of words: damage shows in them, and they are had at the speed of memory."""
    whole = len(data) // _ROW_BYTES * _ROW_BYTES
    words = np.frombuffer(data[:whole], np.uint64).reshape(-1, _ROW_BYTES // 8)
    rows, columns = (words.sum(axis=axis, dtype=np.uint64) for axis in (1, 0))
    return sha256(rows.tobytes() + columns.tobytes() + bytes(data[whole:])).digest()


def _bytes_of(array: Array) -> memoryview:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def _name(array: Array) -> str:
    known = from_numpy(array.dtype)
    assert known is not None
    return known.name


def _offsets(lengths: Iterable[int]) -> Iterator[list[int]]:
    at = 0
    for length in lengths:
        yield [at, at + length]
        at += _padded(length)


def _padded(length: int) -> int:
    return -(-length // _ALIGNMENT) * _ALIGNMENT


def _damaged(path: Path, why: str) -> ModelError:
    return ModelError(f"'{printable(str(path))}' is no compiled model, or a damaged one", why=why)
