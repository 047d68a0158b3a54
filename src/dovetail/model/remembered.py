"""An ONNX file that was compiled before: found again by its bytes, without being read.

What is kept on disk for a file and the types it was called with is the key of the compiled model (``kept``). Only
models that are one native function are remembered, and only those whose data is all in the file. For anything else,
and for types that have not been seen, the file is read as ever.
"""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Callable, Mapping
from hashlib import file_digest
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from dovetail.base.errors import CallError, UnsupportedError
from dovetail.base.limits import ModelLimits
from dovetail.base.words import printable
from dovetail.model.compiled import CompiledModel
from dovetail.model.kept import find
from dovetail.model.opened import Function, Input, Setting
from dovetail.runtime.beside import symbols_beside
from dovetail.runtime.cache import Cache, open_cache
from dovetail.runtime.threads import thread_count
from dovetail.stored import target_key
from dovetail.targets.load import load_target
from dovetail.targets.model import Target

if TYPE_CHECKING:
    from dovetail.frontends.onnx.entries import HostValue
    from dovetail.model.general import Shapes

Key = tuple[tuple[np.dtype[np.generic], tuple[int, ...]], ...]
_KIND = "onnx"
_SETTLED_NS = 5 * 10**9
_MOST = 32
"""How many compiled models are at hand."""


class Reading(Function, Protocol):
    """A file that has been read: a function that also says whether data beside the file is part of it, and what it
    shares between shapes."""

    beside: tuple[str, ...]
    shapes: Shapes


def remembered(path: Path, how: Setting, read: Callable[[], Reading]) -> Function:
    """The model in the file at ``path``; ``read`` makes a function of it where it must be read."""
    target = how.target if isinstance(how.target, Target) else load_target(how.target)
    store = open_cache() if how.cache else None
    if store is None or store.refusal is not None or target.llvm is None:
        return read()
    digest = _digest(path, store, how.limits.file_bytes)
    if digest is None:
        return read()
    threads = str(thread_count(how.threads, target))
    key = {
        **target_key(target),
        "file": digest,
        "threads": threads,
        "limits": repr(how.limits),
        "dynamic": str(how.dynamic),
        "patterns": repr(how.patterns),
    }
    return RememberedFunction(_Memory(store, key, target, how.limits), read)


def _digest(path: Path, store: Cache, most_bytes: int) -> str | None:
    """SHA-256 of a file; of one that has not been touched since, as the cache says. None for no file, or one too large.

    The system notes the time of every change and lets nobody set it back; what has changed within the last seconds
    might change again within one tick of its clock, and is not noted.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except (OSError, ValueError):
        return None
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_size > most_bytes:
        os.close(descriptor)
        return None
    with os.fdopen(descriptor, "rb") as file:
        parts = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
        key = {"state": " ".join(map(str, parts))}
        settled = time.time_ns() - found.st_ctime_ns > _SETTLED_NS
        known = store.get("digest", key)
        if known is not None:
            return known.decode()
        digest = file_digest(file, "sha256").hexdigest()
        if settled and os.fstat(descriptor) == found:
            store.put("digest", key, digest.encode())
        return digest


class _Memory:
    """What the cache holds for one file: its inputs and outputs, and a model for each of some types."""

    def __init__(self, store: Cache, key: Mapping[str, str], target: Target, limits: ModelLimits) -> None:
        self._store, self._key, self._target, self._limits = store, dict(key), target, limits

    def facts(self) -> tuple[tuple[Input, ...], tuple[str, ...]] | None:
        found = self._get("")
        if not isinstance(found, dict):
            return None
        try:
            inputs = tuple(Input(str(a), str(b), tuple(c)) for a, b, c in found["inputs"])
            return inputs, tuple(map(str, found["outputs"]))
        except (KeyError, TypeError, ValueError):
            return None

    def model(self, types: str) -> CompiledModel | None:
        key = self._get(types)
        if not isinstance(key, dict) or not all(isinstance(word, str) for word in key.values()):
            return None
        kept = find(self._store, key, self._limits)
        symbols = symbols_beside(self._target.external_instructions)
        return None if kept is None else CompiledModel(kept, symbols, self._store, key)

    def keep(self, function: Reading, types: str, model: CompiledModel) -> None:
        if model.kept_as is None or function.beside:
            return
        inputs = [[i.name, i.dtype, list(i.shape)] for i in function.inputs]
        self._put("", {"inputs": inputs, "outputs": list(function.outputs)})
        self._put(types, dict(model.kept_as))

    def _get(self, types: str) -> object:
        data = self._store.get(_KIND, {**self._key, "types": types})
        try:
            return None if data is None else json.loads(data)
        except ValueError:
            return None

    def _put(self, types: str, value: object) -> None:
        self._store.put(_KIND, {**self._key, "types": types}, json.dumps(value).encode())


def _key(values: tuple[HostValue, ...]) -> Key:
    """Dtypes and shapes; nothing where something is no array."""
    try:
        return tuple([(value.dtype, value.shape) for value in values])  # type: ignore[union-attr]
    except AttributeError:
        return ()


class RememberedFunction:
    """A file as a function; it is read when something is asked that the cache cannot say."""

    def __init__(self, memory: _Memory, read: Callable[[], Reading]) -> None:
        self._memory, self._reader = memory, read
        self._read: Reading | None = None
        self._models: dict[str, CompiledModel] = {}
        self._several: set[str] = set()
        """Types for which the model is more than one function."""
        self._quick: dict[Key, CompiledModel] = {}
        """The same models by what is cheap to look at."""
        facts = memory.facts()
        self.inputs, self.outputs = (self._file().inputs, self._file().outputs) if facts is None else facts

    def __call__(self, *arrays: HostValue) -> tuple[HostValue, ...]:
        model = self._quick.get(_key(arrays))
        if model is not None:
            return model(*arrays)
        if len(arrays) != len(self.inputs):
            names = ", ".join(printable(i.name) for i in self.inputs)
            raise CallError(f"the model takes {len(self.inputs)} inputs ({names}), got {len(arrays)}")
        return tuple(self.run({i.name: array for i, array in zip(self.inputs, arrays, strict=True)}).values())

    def run(self, feeds: Mapping[str, HostValue]) -> dict[str, HostValue]:
        """The outputs by name, for inputs by name."""
        given = tuple(feeds.get(i.name) for i in self.inputs)
        model = self._quick.get(_key(given)) if len(given) == len(feeds) else None
        if model is not None:
            return dict(zip(self.outputs, model(*given), strict=True))
        model, types = self._known(feeds), self._types(feeds)
        if model is not None:
            self._quick = {**self._quick, _key(given): model} if len(self._quick) < _MOST else {_key(given): model}
            return dict(zip(self.outputs, model(*given), strict=True))
        if not types or types in self._several:
            return self._file().run(feeds)
        ordered = {i.name: feeds[i.name] for i in self.inputs}
        made = self._file().run(ordered)
        try:
            self.compiled(ordered)
        except UnsupportedError:
            self._several.add(types)
        return made

    def compiled(self, feeds: Mapping[str, HostValue]) -> CompiledModel:
        """The native function for inputs like these; an UnsupportedError where part of the model runs on the host."""
        known, types = self._known(feeds), self._types(feeds)
        if known is not None:
            return known
        made = self._file().compiled({i.name: feeds[i.name] for i in self.inputs} if types else feeds)
        if types:
            self._memory.keep(self._file(), types, made)
            self._models[types] = made
        return made

    @property
    def report(self) -> str:
        """What became of the model's operators, so far."""
        if self._read is None and self._models:
            return "\n".join(str(model.report) for model in self._models.values())
        return self._file().report

    def _known(self, feeds: Mapping[str, HostValue]) -> CompiledModel | None:
        """The function for arrays of these types, from this process or from disk."""
        types = self._types(feeds)
        if types and types not in self._models:
            found = self._memory.model(types)
            if found is not None:
                if len(self._models) >= _MOST:
                    self._models.clear()
                self._models[types] = found
        return self._models.get(types)

    def _types(self, feeds: Mapping[str, HostValue]) -> str:
        """The inputs' types as text; empty where they are not exactly the model's inputs, all tensors."""
        given = [feeds.get(i.name) for i in self.inputs]
        if len(feeds) != len(given):
            return ""
        rows = [f"{array.dtype.str}{array.dtype.name}{array.shape}" for array in given if isinstance(array, np.ndarray)]
        return "\n".join(rows) if len(rows) == len(given) else ""

    def _file(self) -> Reading:
        if self._read is None:
            self._read = self._reader()
            self._read.shapes.seen_before = bool(self._models)
        return self._read
