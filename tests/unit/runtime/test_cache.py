"""The cache on disk: right payloads, or none."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from dovetail.runtime.cache import Cache, open_cache

KEY = {"program": "for i<4: y[i] = x[i]", "target": "t", "version": "1"}


def entries(directory: Path) -> list[Path]:
    return sorted(directory.rglob("*.entry"))


def test_what_was_put_is_got_whatever_the_order_of_the_key(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.put("plan", KEY, b"payload")
    assert cache.get("plan", dict(reversed(KEY.items()))) == b"payload"
    assert Cache(tmp_path).get("plan", KEY) == b"payload"


def test_kinds_and_keys_are_apart(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.put("plan", KEY, b"a plan")
    assert cache.get("object", KEY) is None
    assert cache.get("plan", {**KEY, "version": "2"}) is None
    cache.put("object", KEY, b"")
    assert (cache.get("object", KEY), cache.get("plan", KEY)) == (b"", b"a plan")


def test_a_later_put_takes_the_place_of_an_earlier_one(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.put("plan", KEY, b"old")
    cache.put("plan", KEY, b"new")
    assert cache.get("plan", KEY) == b"new"
    assert cache.stats().entries == 1


@pytest.mark.parametrize("place", [0, 20, 60, -1])
def test_a_flipped_bit_anywhere_is_a_miss(tmp_path: Path, place: int) -> None:
    cache = Cache(tmp_path)
    cache.put("object", KEY, b"code" * 100)
    (path,) = entries(tmp_path)
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
    assert cache.get("object", KEY) is None
    cache.put("object", KEY, b"code again")
    assert cache.get("object", KEY) == b"code again"


@pytest.mark.parametrize("length", [0, 5, 30, 100])
def test_a_shortened_entry_is_a_miss(tmp_path: Path, length: int) -> None:
    cache = Cache(tmp_path)
    cache.put("object", KEY, b"code" * 100)
    (path,) = entries(tmp_path)
    path.write_bytes(path.read_bytes()[:length])
    assert cache.get("object", KEY) is None


def test_an_entry_of_another_key_is_a_miss_even_if_whole(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.put("object", KEY, b"mine")
    (mine,) = entries(tmp_path)
    cache.put("object", {**KEY, "target": "u"}, b"other")
    (other,) = set(entries(tmp_path)) - {mine}
    other.replace(mine)
    assert cache.get("object", KEY) is None


def test_a_link_in_the_place_of_an_entry_is_a_miss(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.put("object", KEY, b"mine")
    (path,) = entries(tmp_path)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert cache.get("object", KEY) is None


def test_hits_and_misses_are_counted(tmp_path: Path) -> None:
    cache = Cache(tmp_path, limit_bytes=1000)
    cache.get("plan", KEY)
    cache.put("plan", KEY, b"p")
    cache.get("plan", KEY)
    stats = cache.stats()
    assert (stats.directory, stats.refusal, stats.entries, stats.hits, stats.misses) == (tmp_path, None, 1, 1, 1)
    assert stats.bytes == entries(tmp_path)[0].stat().st_size
    assert stats.limit_bytes == 1000


def test_trimming_drops_what_was_unused_for_longest(tmp_path: Path) -> None:
    cache = Cache(tmp_path, limit_bytes=3500)
    for i in range(5):
        Cache(tmp_path).put("plan", {"i": str(i)}, b"x" * 900)
        (path,) = [p for p in entries(tmp_path) if b'{"i":"%d"}' % i in p.read_bytes()]
        os.utime(path, (i, i))
    assert cache.get("plan", {"i": "0"}) is not None  # now the one used last
    cache.trim()
    assert [i for i in range(5) if cache.get("plan", {"i": str(i)}) is not None] == [0, 3, 4]


def test_puts_alone_keep_the_cache_near_its_limit(tmp_path: Path) -> None:
    cache = Cache(tmp_path, limit_bytes=20_000)
    for i in range(300):
        cache.put("plan", {"i": str(i)}, b"x" * 900)
    assert 5_000 < cache.stats().bytes < 100_000


def test_clearing_removes_entries_and_nothing_else(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.put("plan", KEY, b"p")
    cache.put("object", KEY, b"o")
    (tmp_path / "letter.txt").write_text("not yours")
    (tmp_path / "plan" / "notes.entry").write_text("not yours either")
    assert cache.clear() == 2
    assert cache.stats().entries == 0
    assert (tmp_path / "letter.txt").exists()
    assert (tmp_path / "plan" / "notes.entry").exists()


def test_what_a_dead_writer_left_is_cleaned_up_and_a_live_one_is_left_alone(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.put("plan", KEY, b"p")
    dead, live = tmp_path / "plan" / ".abc123.tmp", tmp_path / "plan" / ".def456.tmp"
    dead.write_bytes(b"half an en")
    live.write_bytes(b"half an en")
    os.utime(dead, (0, 0))
    assert cache.stats().entries == 1
    assert (dead.exists(), live.exists()) == (False, True)


def test_readers_among_many_writers_see_whole_payloads_only(tmp_path: Path) -> None:
    payloads = [bytes([i]) * 50_000 for i in range(4)]
    Cache(tmp_path).put("object", KEY, payloads[0])
    stop = threading.Event()

    def write(payload: bytes) -> None:
        cache = Cache(tmp_path)
        while not stop.is_set():
            cache.put("object", KEY, payload)

    writers = [threading.Thread(target=write, args=(p,)) for p in payloads]
    for writer in writers:
        writer.start()
    cache = Cache(tmp_path)
    seen = [cache.get("object", KEY) for _ in range(300)]
    stop.set()
    for writer in writers:
        writer.join()
    assert set(seen) <= set(payloads)
    assert not list(tmp_path.rglob("*.tmp"))


def test_a_writer_that_fails_leaves_the_old_entry_and_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Cache(tmp_path)
    cache.put("plan", KEY, b"old")

    def full(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    cache.put("plan", KEY, b"new")
    monkeypatch.undo()
    assert cache.get("plan", KEY) == b"old"
    assert cache.refusal == "the last entry could not be written: [Errno 28] No space left on device"
    assert not list(tmp_path.rglob("*.tmp"))


def test_the_directory_follows_the_environment(tmp_path: Path) -> None:
    chosen = open_cache({"DOVETAIL_CACHE": str(tmp_path / "a"), "XDG_CACHE_HOME": str(tmp_path), "HOME": str(tmp_path)})
    assert chosen.stats().directory == tmp_path / "a"
    assert open_cache({"XDG_CACHE_HOME": str(tmp_path / "x"), "HOME": "/nowhere"}).stats().directory == (
        tmp_path / "x" / "dovetail"
    )
    assert open_cache({"XDG_CACHE_HOME": "relative", "HOME": str(tmp_path)}).stats().directory == (
        tmp_path / ".cache" / "dovetail"
    )


def test_the_directory_is_private(tmp_path: Path) -> None:
    cache = open_cache({"DOVETAIL_CACHE": str(tmp_path / "c")})
    cache.put("plan", KEY, b"p")
    assert stat.S_IMODE((tmp_path / "c").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "c" / "plan").stat().st_mode) == 0o700
    assert stat.S_IMODE(entries(tmp_path)[0].stat().st_mode) == 0o600


def check_unused(cache: Cache, refusal: str) -> None:
    cache.put("plan", KEY, b"p")
    assert cache.get("plan", KEY) is None
    assert cache.refusal == refusal
    stats = cache.stats()
    assert (stats.directory, stats.refusal, stats.entries, stats.bytes) == (None, refusal, 0, 0)
    assert cache.clear() == 0


def test_off_turns_it_off() -> None:
    check_unused(open_cache({"DOVETAIL_CACHE": "off"}), "turned off by DOVETAIL_CACHE=off")


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_directory_that_others_can_write_is_refused(tmp_path: Path, mode: int) -> None:
    tmp_path.chmod(mode)
    check_unused(
        open_cache({"DOVETAIL_CACHE": str(tmp_path)}),
        f"the cache directory {tmp_path} can be written by others (mode {mode:04o})\n  try: chmod 700 {tmp_path}",
    )


def test_a_directory_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    check_unused(
        open_cache({"DOVETAIL_CACHE": str(tmp_path)}),
        f"the cache directory {tmp_path} belongs to another user (id {me}, not {me + 1})\n"
        "  try: set DOVETAIL_CACHE to a directory of your own",
    )


def test_a_directory_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = open_cache({"DOVETAIL_CACHE": str(tmp_path / "file" / "c")})
    assert cache.refusal is not None
    assert cache.refusal.startswith("the cache directory cannot be made\n  [Errno 20] Not a directory")


def test_no_home_is_a_stated_reason() -> None:
    check_unused(
        open_cache({}),
        "there is no home directory to keep a cache in\n  try: set DOVETAIL_CACHE to a directory",
    )
