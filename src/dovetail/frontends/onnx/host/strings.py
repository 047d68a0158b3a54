"""Operators on strings: arrays of objects, each a ``str``."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from dovetail.frontends.onnx.convert.attributes import integer, integers, malformed, numbers, text, texts
from dovetail.frontends.onnx.entries import Array
from dovetail.frontends.onnx.host.call import Call, HostFunction, Results
from dovetail.frontends.onnx.host.patterns import pattern_of


def concat(call: Call) -> Results:
    a, b = np.broadcast_arrays(call.array(0), call.array(1))
    letters = sum(len(str(left)) + len(str(right)) for left, right in zip(a.reshape(-1), b.reshape(-1), strict=True))
    call.room((letters,), np.dtype(np.uint8))
    joined = [str(left) + str(right) for left, right in zip(a.reshape(-1), b.reshape(-1), strict=True)]
    return (_array(joined, a.shape),)


def split(call: Call) -> Results:
    x, most = call.array(0), integer(call.node, "maxsplit", -1)
    delimiter = text(call.node, "delimiter", "") or None
    parts = [str(word).split(delimiter, most) for word in x.reshape(-1)]
    width = max(map(len, parts), default=0)
    call.room((*x.shape, width), x.dtype)
    filled = [word for row in parts for word in (*row, *("",) * (width - len(row)))]
    counts = np.array([len(row) for row in parts], np.int64).reshape(x.shape)
    return _array(filled, (*x.shape, width)), counts


def full_match(call: Call) -> Results:
    x, pattern = call.array(0), pattern_of(call.node, text(call.node, "pattern", ""))
    matches = [pattern.matches(str(word)) for word in x.reshape(-1)]
    return (np.array(matches, np.bool_).reshape(x.shape),)


def normalize(call: Call) -> Results:
    x, node = call.array(0), call.node
    change = _CASES.get(text(node, "case_change_action", "NONE"))
    if change is None or x.ndim not in (1, 2) or (x.ndim == 2 and x.shape[0] != 1):
        raise malformed(node, "it takes one row of words, and NONE, LOWER or UPPER")
    exact = bool(integer(node, "is_case_sensitive", 0))
    stops = {word if exact else word.lower() for word in texts(node, "stopwords", ())}
    kept = [str(w) for w in x.reshape(-1) if (str(w) if exact else str(w).lower()) not in stops]
    words = [change(_plain(word)) for word in kept if word] or [""]
    return (_array(words, (1, len(words)) if x.ndim == 2 else (len(words),)),)


def tf_idf(call: Call) -> Results:
    """How often each group of neighbours, some steps apart, is in a row."""
    x, node = call.array(0), call.node
    places = integers(node, "ngram_indexes", ())
    weights = np.array(numbers(node, "weights", ()), np.float32)
    if x.ndim > 2 or not places:
        raise malformed(node, "it takes one or two axes, and indices of its groups")
    grams = _grams(call)
    rows = x if x.ndim == 2 else x.reshape(1, -1)
    if min(places) < 0 or len(grams) > len(places) or weights.size not in (0, len(places)):
        raise malformed(node, "its groups, their indices and their weights are not as many")
    found = np.zeros(call.room((len(rows), max(places) + 1), np.dtype(np.float32)), np.float32)
    for at, row in enumerate(rows):
        for gram in _groups(call, [_word(item) for item in row]):
            if gram in grams:
                found[at, places[grams[gram]]] += 1
    mode = text(node, "mode", "TF")
    counted = found if mode != "IDF" else (found > 0).astype(np.float32)
    if mode != "TF" and weights.size:
        by_place = np.ones(found.shape[1], np.float32)
        by_place[list(places)] = weights
        counted = counted * by_place
    return (counted if x.ndim == 2 else counted[0],)


def _grams(call: Call) -> dict[tuple[Hashable, ...], int]:
    """Every group that is looked for, and its number."""
    node = call.node
    pool: Sequence[Hashable] = integers(node, "pool_int64s", ()) or texts(node, "pool_strings", ())
    starts = (*integers(node, "ngram_counts", ()), len(pool))
    if list(starts) != sorted(starts) or starts[0] < 0:
        raise malformed(node, "its groups do not begin one after the other")
    grams: dict[tuple[Hashable, ...], int] = {}
    number = 0
    for length, (start, end) in enumerate(pairwise(starts), 1):
        for at in range(start, end - length + 1, length):
            grams.setdefault(tuple(pool[at : at + length]), number)
            number += 1
    return grams


def _groups(call: Call, row: Sequence[Hashable]) -> Iterable[tuple[Hashable, ...]]:
    """Groups of each length, of neighbours up to some steps apart; single ones once."""
    node = call.node
    shortest, longest = integer(node, "min_gram_length", 1), integer(node, "max_gram_length", 1)
    if shortest < 1:
        raise malformed(node, f"groups of {shortest}")
    for skipped in range(min(integer(node, "max_skip_count", 0) + 1, len(row))):
        for length in range(shortest, min(longest, len(row)) + 1):
            if length == 1 and skipped:
                continue
            reach = (length - 1) * (skipped + 1)
            for at in range(len(row) - reach):
                yield tuple(row[at : at + reach + 1 : skipped + 1])


def _plain(word: str) -> str:
    """Letters without their accents."""
    if word.isascii():
        return word
    return "".join(c for c in unicodedata.normalize("NFKD", word) if not unicodedata.combining(c))


def _word(item: object) -> Hashable:
    """As it stands in the pool: a number is one of Python's."""
    return int(item) if isinstance(item, np.integer) else str(item)


def _array(words: Sequence[str], shape: tuple[int, ...]) -> Array:
    found: npt.NDArray[np.object_] = np.empty(len(words), object)
    found[:] = words
    return found.reshape(shape)


_CASES: dict[str, Callable[[str], str]] = {"NONE": str, "LOWER": str.lower, "UPPER": str.upper}

HOST: dict[tuple[str, str], HostFunction] = {
    ("", "StringConcat"): concat,
    ("", "StringSplit"): split,
    ("", "RegexFullMatch"): full_match,
    ("", "StringNormalizer"): normalize,
    ("", "TfIdfVectorizer"): tf_idf,
}
