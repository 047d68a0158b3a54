"""Data beside a model file: opened only inside its own directory, never through links, never past the end.

A location is walked one name at a time, each opened relative to the directory before it, so what was checked is what
is read. Files of some size are mapped, not copied.
"""

from __future__ import annotations

import mmap
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dovetail.base.errors import ModelError
from dovetail.base.words import printable

MAPPED_BYTES = 1 << 16
"""Smaller files are read: a mapping takes whole pages."""
LONGEST_NUMBER = 19
LONGEST_PATH = 32
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


@dataclass(slots=True)
class ExternalData:
    """The directory of one model file, and the files in it that have been opened."""

    directory: Path
    files: dict[str, memoryview] = field(default_factory=dict)

    def read(self, entries: Mapping[str, str], need: int, where: str) -> memoryview:
        """The ``need`` bytes that a tensor's entries (location, offset, length) name."""
        location = entries.get("location")
        if not location:
            raise ModelError("data beside the file has no location", where=where)
        offset = _number(entries, "offset", 0, where)
        length = _number(entries, "length", need, where)
        if length != need:
            raise ModelError(f"the tensor takes {need} bytes, but its length is given as {length}", where=where)
        content = self._file(location, where)
        if offset + length > len(content):
            raise ModelError(
                f"'{printable(location)}' ends before the data of a tensor does",
                where=where,
                why=f"bytes {offset} to {offset + length} of a file of {len(content)}",
            )
        return content[offset : offset + length]

    def _file(self, location: str, where: str) -> memoryview:
        if location not in self.files:
            names = _names(location, where)
            try:
                self.files[location] = _content(self.directory, names)
            except _Refused as refused:
                raise _refusal(location, str(refused), where) from None
            except (OSError, ValueError) as problem:
                raise _refusal(location, getattr(problem, "strerror", None) or "it cannot be opened", where) from None
        return self.files[location]


class _Refused(Exception):
    """Why a file beside the model is not read."""


def _refusal(location: str, why: str, where: str) -> ModelError:
    return ModelError(
        f"data beside the file is not read: '{printable(location)}'",
        where=where,
        why=why,
        hint="put the file itself, not a link, into the directory of the model",
    )


def _number(entries: Mapping[str, str], key: str, default: int, where: str) -> int:
    """A decimal number without sign, as the format writes offsets and lengths."""
    text = entries.get(key)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER):
        raise ModelError(
            f"the {key} of data beside the file is not a number of bytes", where=where, why=printable(text)
        )
    return int(text)


def _names(location: str, where: str) -> tuple[str, ...]:
    """The names that lead to a file; all of them below the directory."""
    names = tuple(name for name in location.split("/") if name != ".")
    if not location.isprintable() or "\\" in location:
        raise _refusal(location, "its name has characters that paths of models do not have", where)
    if location.startswith("/"):
        raise _refusal(location, "the path is absolute", where)
    if ".." in names or "" in names or not names:
        raise _refusal(location, "the path leaves the directory of the model, or names no file", where)
    if len(names) > LONGEST_PATH:
        raise _refusal(location, "the path is too long", where)
    return names


def _content(directory: Path, names: tuple[str, ...]) -> memoryview:
    """The bytes of the regular file to which ``names`` lead from ``directory``, without following links."""
    at = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in names[:-1]:
            inner = os.open(name, _FLAGS | os.O_DIRECTORY, dir_fd=at)
            os.close(at)
            at = inner
        _check(os.stat(names[-1], dir_fd=at, follow_symlinks=False))  # opening a device can have effects
        file = os.open(names[-1], _FLAGS, dir_fd=at)
    finally:
        os.close(at)
    try:
        size = _check(os.fstat(file))
        return memoryview(mmap.mmap(file, size, access=mmap.ACCESS_READ) if size >= MAPPED_BYTES else _all(file, size))
    finally:
        os.close(file)


def _check(status: os.stat_result) -> int:
    if stat.S_ISLNK(status.st_mode):
        raise _Refused("it is a symbolic link")
    if not stat.S_ISREG(status.st_mode):
        raise _Refused("it is not a regular file")
    if status.st_nlink != 1:
        raise _Refused("it is a hard link: another name leads to the same file")
    return status.st_size


def _all(file: int, size: int) -> bytes:
    parts: list[bytes] = []
    while size > 0 and (part := os.read(file, size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
