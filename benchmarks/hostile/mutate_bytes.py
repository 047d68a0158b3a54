"""Damage to the bytes of a file, with an eye on how protobuf writes numbers and lengths."""

from __future__ import annotations

import random
from collections.abc import Callable

INTERESTING = (0, 1, 2, 0x7F, 0x80, 0xFF, 1 << 14, 1 << 31, (1 << 31) - 1, (1 << 32) - 1, (1 << 63) - 1, (1 << 64) - 1)


def mutate_bytes(content: bytes, other: bytes, rng: random.Random) -> bytes:
    """``content`` with one to four pieces of damage; some of it copied from ``other``."""
    data = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        rng.choice(_DAMAGE)(data, other, rng)
    return bytes(data)


def varint(number: int) -> bytes:
    """A number as protobuf writes it."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _at(data: bytes | bytearray, rng: random.Random) -> int:
    return rng.randrange(len(data) + 1)


def _flip(data: bytearray, other: bytes, rng: random.Random) -> None:
    for _ in range(rng.randint(1, 8)):
        if data:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _set(data: bytearray, other: bytes, rng: random.Random) -> None:
    if data:
        data[rng.randrange(len(data))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))


def _truncate(data: bytearray, other: bytes, rng: random.Random) -> None:
    del data[_at(data, rng) :]


def _remove(data: bytearray, other: bytes, rng: random.Random) -> None:
    at = _at(data, rng)
    del data[at : at + rng.randint(1, 16)]


def _insert(data: bytearray, other: bytes, rng: random.Random) -> None:
    at = _at(data, rng)
    data[at:at] = rng.randbytes(rng.randint(1, 16))


def _duplicate(data: bytearray, other: bytes, rng: random.Random) -> None:
    at, target = _at(data, rng), _at(data, rng)
    piece = data[at : at + rng.randint(1, 64)]
    data[target:target] = piece * rng.choice((1, 1, 1, 2, 50))


def _splice(data: bytearray, other: bytes, rng: random.Random) -> None:
    at, source = _at(data, rng), _at(other, rng)
    length = rng.randint(1, 128)
    data[at : at + rng.choice((0, length))] = other[source : source + length]


def _number(data: bytearray, other: bytes, rng: random.Random) -> None:
    """Another number where one may be: what follows keeps its place or moves."""
    at = _at(data, rng)
    end = at
    while end < len(data) and data[end] & 0x80 and end - at < 9:
        end += 1
    data[at : end + 1] = varint(rng.choice(INTERESTING))


def _field(data: bytearray, other: bytes, rng: random.Random) -> None:
    """A whole field of random number, layout and content."""
    content = rng.randbytes(rng.randint(0, 12))
    field = varint(rng.randint(1, 30) << 3 | 2) + varint(len(content)) + content
    number = varint(rng.randint(1, 30) << 3) + varint(rng.choice(INTERESTING))
    at = _at(data, rng)
    data[at:at] = rng.choice((field, number))


_DAMAGE: tuple[Callable[[bytearray, bytes, random.Random], None], ...] = (
    _flip,
    _flip,
    _set,
    _set,
    _truncate,
    _remove,
    _insert,
    _duplicate,
    _splice,
    _number,
    _number,
    _field,
)
