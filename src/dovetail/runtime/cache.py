"""The cache on disk: what an earlier compilation found, by what it was asked.

    <directory>/<kind>/<sha256 of the key>.entry      e.g. kind "plan" and kind "object"

The directory is ``$DOVETAIL_CACHE``, else ``$XDG_CACHE_HOME/dovetail``, else ``~/.cache/dovetail``;
``DOVETAIL_CACHE=off`` turns it off. Entries hold code that will be run, so a directory that others could have written
is not used: the cache then works as an empty one and ``refusal`` says why. An entry is written under another name and
renamed, so readers see all of it or nothing; its checksum covers key and payload, and an entry that does not match is
a miss.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from dovetail.base.errors import CacheError

LIMIT_BYTES = 2 << 30
_CHANCE = "00"  # one put in 256 looks at the whole directory, whichever process makes it: there may be many files
_LOOK_SHARE = 16  # and so does who has written this part of the limit since it last looked
_MAGIC = b"dovetail cache 1\n"
_DIGEST_BYTES = 32
_KIND = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_ENTRY = re.compile(r"[0-9a-f]{64}\.entry")
_UNFINISHED = re.compile(r"\.[0-9a-z_]+\.tmp")
_ABANDONED_SECONDS = 3600.0  # no writer takes this long: its process died


@dataclass(frozen=True, slots=True)
class CacheStats:
    """What the cache holds (``entries``, ``bytes``) and what this process asked of it (``hits``, ``misses``)."""

    directory: Path | None
    refusal: str | None
    entries: int
    bytes: int
    limit_bytes: int
    hits: int
    misses: int


def open_cache(environ: Mapping[str, str] | None = None, limit_bytes: int = LIMIT_BYTES) -> Cache:
    """The user's cache; one that holds nothing and says why when the directory cannot be used."""
    setting = os.environ if environ is None else environ
    if setting.get("DOVETAIL_CACHE", "").lower() == "off":
        return Cache(None, limit_bytes, refusal="turned off by DOVETAIL_CACHE=off")
    try:
        directory = _directory(setting)
        _make_private(directory)
        _check_private(directory)
    except CacheError as error:
        return Cache(None, limit_bytes, refusal=str(error))
    return Cache(directory, limit_bytes)


class Cache:
    """Payloads by (kind, key). Never an obstacle: what cannot be read is a miss, what cannot be written is not kept."""

    def __init__(self, directory: Path | None, limit_bytes: int = LIMIT_BYTES, refusal: str | None = None) -> None:
        self._directory = directory
        self._limit_bytes = limit_bytes
        self._hits = self._misses = 0
        self._unseen_bytes = 0
        self.refusal = refusal

    def get(self, kind: str, key: Mapping[str, str]) -> bytes | None:
        """The payload that was put under ``key``, None when there is none or it is not what was written."""
        path = self._path(kind, _canonical(key))
        payload = None if path is None else _read(path, _canonical(key), self._limit_bytes)
        if payload is None:
            self._misses += 1
        else:
            self._hits += 1
        return payload

    def put(self, kind: str, key: Mapping[str, str], payload: bytes) -> None:
        """Keeps ``payload`` under ``key``, in place of what was there."""
        text = _canonical(key)
        path = self._path(kind, text)
        if path is None:
            return
        body = len(text).to_bytes(8, "little") + text + payload
        try:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            _write(path, _MAGIC + hashlib.sha256(body).digest() + body)
        except OSError as error:
            self.refusal = f"the last entry could not be written: {error}"
            return
        self._unseen_bytes += len(body)
        if path.name.startswith(_CHANCE) or self._unseen_bytes > self._limit_bytes // _LOOK_SHARE:
            self.trim()

    def file(self, kind: str, key: Mapping[str, str]) -> Path | None:
        """Where a file of the caller's own making is kept under ``key``: what is too large to be read as a payload.

        The caller writes it all at once and checks it when reading. None where nothing is kept.
        """
        path = self._path(kind, _canonical(key))
        if path is None:
            return None
        try:
            path.parent.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            self.refusal = f"the directory cannot be written: {error}"
            return None
        return path

    @property
    def limit_bytes(self) -> int:
        return self._limit_bytes

    def trim(self) -> None:
        """Drops the entries unused for longest until what is left is under nine tenths of the limit."""
        self._unseen_bytes = 0
        files = sorted(self._files())
        total = sum(size for _, size, _ in files)
        if total <= self._limit_bytes:
            return
        for _, size, path in files:
            if total <= self._limit_bytes * 9 // 10:
                return
            path.unlink(missing_ok=True)
            total -= size

    def clear(self) -> int:
        """Drops every entry, and nothing else that may be in the directory; returns how many there were."""
        files = list(self._files())
        for _, _, path in files:
            path.unlink(missing_ok=True)
        return len(files)

    def stats(self) -> CacheStats:
        """A look at the directory as it is now."""
        sizes = [size for _, size, _ in self._files()]
        return CacheStats(
            self._directory, self.refusal, len(sizes), sum(sizes), self._limit_bytes, self._hits, self._misses
        )

    def _path(self, kind: str, key: bytes) -> Path | None:
        assert _KIND.fullmatch(kind), f"not a kind of cache entry: {kind!r}"
        return self._directory and self._directory / kind / f"{hashlib.sha256(key).hexdigest()}.entry"

    def _files(self) -> Iterator[tuple[float, int, Path]]:
        """(last use, bytes, path) of every entry; removes what a writer that died left behind."""
        if self._directory is None:
            return
        for folder in _listing(self._directory):
            if not _KIND.fullmatch(folder.name) or folder.is_symlink() or not folder.is_dir():
                continue
            for path in _listing(folder):
                found = _stat(path)
                if found is None:
                    continue
                if _ENTRY.fullmatch(path.name):
                    yield found.st_mtime, found.st_size, path
                elif _UNFINISHED.fullmatch(path.name) and time.time() - found.st_mtime > _ABANDONED_SECONDS:
                    path.unlink(missing_ok=True)


def _directory(environ: Mapping[str, str]) -> Path:
    chosen = environ.get("DOVETAIL_CACHE")
    if chosen:
        return Path(chosen).absolute()
    base = environ.get("XDG_CACHE_HOME", "")
    if Path(base).is_absolute():  # the XDG specification says to ignore any other
        return Path(base) / "dovetail"
    home = environ.get("HOME", "")
    if not Path(home).is_absolute():
        raise CacheError("there is no home directory to keep a cache in", hint="set DOVETAIL_CACHE to a directory")
    return Path(home) / ".cache" / "dovetail"


def _make_private(directory: Path) -> None:
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise CacheError(
            "the cache directory cannot be made", why=str(error), hint="set DOVETAIL_CACHE to another directory"
        ) from error


def _check_private(directory: Path) -> None:
    """Whoever can write here can make us run code: the directory, and a link to it, must be ours alone to write."""
    link, found = directory.lstat(), directory.stat()
    if {link.st_uid, found.st_uid} != {os.geteuid()}:
        raise CacheError(
            f"the cache directory {directory} belongs to another user (id {found.st_uid}, not {os.geteuid()})",
            hint="set DOVETAIL_CACHE to a directory of your own",
        )
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise CacheError(
            f"the cache directory {directory} can be written by others (mode {stat.S_IMODE(found.st_mode):04o})",
            hint=f"chmod 700 {directory}",
        )


def _read(path: Path, key: bytes, limit_bytes: int) -> bytes | None:
    """The payload of the entry at ``path`` if it is whole, ours, and of this key."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if found.st_uid != os.geteuid() or found.st_size > limit_bytes or not stat.S_ISREG(found.st_mode):
            return None
        try:
            content = file.read()
            os.utime(descriptor)
        except OSError:
            return None
    start = len(_MAGIC) + _DIGEST_BYTES
    if not content.startswith(_MAGIC) or hashlib.sha256(content[start:]).digest() != content[len(_MAGIC) : start]:
        return None
    payload_at = start + 8 + len(key)
    return content[payload_at:] if content[start + 8 : payload_at] == key else None


def _write(path: Path, content: bytes) -> None:
    """All of ``content`` at ``path``, or nothing."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".tmp")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        Path(name).replace(path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise


def _listing(folder: Path) -> list[Path]:
    """What is in ``folder``; nothing when another process has just removed it, or it is not ours to read."""
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except FileNotFoundError:
        return None


def _canonical(key: Mapping[str, str]) -> bytes:
    """The same bytes for the same key, in whatever order it was written."""
    return json.dumps(dict(key), sort_keys=True, separators=(",", ":")).encode("ascii")
