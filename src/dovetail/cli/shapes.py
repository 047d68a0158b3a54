"""Shape files -> programs: lists of matrix products and convolutions, in the two spellings in use.

    {"gemm": [{"m": 5124, "n": 700, "k": 2048, "transA": false, "transB": false}],
     "convs": [{"w": 56, "h": 56, "c": 64, "k": 64, "fw": 3, "fh": 3, "padw": 1, "padh": 1, "strw": 1, "strh": 1}]}

``conv`` is the same list as ``convs``. ``n`` is 1 where it is missing; weights are constants.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from dovetail.base.errors import ProgramError

Entry = Mapping[str, object]
MOST_BYTES = 1 << 26


def read_shapes(path: str) -> list[tuple[str, str]]:
    """(label, program text) of every entry."""
    try:
        with Path(path).open("rb") as file:
            data = json.loads(file.read(MOST_BYTES))
    except (OSError, ValueError, RecursionError) as problem:
        raise ProgramError(f"the shape file '{path}' cannot be read", why=str(problem)) from None
    found = list(_entries(path, data if isinstance(data, dict) else {}))
    if not found:
        raise ProgramError(f"no shapes in '{path}'", why="it has no list 'gemm', 'conv' or 'convs'")
    return found


def _entries(path: str, data: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    for name, write in _WRITERS.items():
        entries = data.get(name, [])
        for number, entry in enumerate(entries if isinstance(entries, list) else []):
            try:
                if not isinstance(entry, dict):
                    raise TypeError("it is not an object")
                yield write(entry)
            except (TypeError, ValueError) as problem:
                where = f"{path}: {name}, entry {number}"
                raise ProgramError("a shape that cannot be read", where=where, why=str(problem)) from None


def _gemm(entry: Entry) -> tuple[str, str]:
    m, n, k = (_extent(entry, key) for key in ("m", "n", "k"))
    ta, tb = bool(entry.get("transA")), bool(entry.get("transB"))
    a, b = (f"{k},{m}" if ta else f"{m},{k}"), (f"{n},{k}" if tb else f"{k},{n}")
    left, right = ("l,i" if ta else "i,l"), ("j,l" if tb else "l,j")
    label = f"gemm m{m} n{n} k{k} {'t' if ta else 'n'}{'t' if tb else 'n'}"
    return label, (
        f"in a: f32[{a}]\nin b: f32[{b}]\nout c: f32[{m},{n}]\n"
        f"for i<{m}, j<{n}, l<{k}: c[i,j] += a[{left}] * b[{right}]\n"
    )


def _conv(entry: Entry) -> tuple[str, str]:
    n = _extent(entry, "n") if "n" in entry else 1
    w, h, c, k, fw, fh = (_extent(entry, key) for key in ("w", "h", "c", "k", "fw", "fh"))
    sw, sh = _extent(entry, "strw"), _extent(entry, "strh")
    pw, ph = _extent(entry, "padw", 0), _extent(entry, "padh", 0)
    p, q = (h + 2 * ph - fh) // sh + 1, (w + 2 * pw - fw) // sw + 1
    row, column = _index("p", "r", sh, ph), _index("q", "s", sw, pw)
    where = [*_guard(row, p, sh, fh, ph, h), *_guard(column, q, sw, fw, pw, w)]
    label = f"conv n{n} c{c} {h}x{w} k{k} {fh}x{fw}/{sh}" + (f" p{ph}" if ph else "")
    return label, (
        f"in x: f32[{n},{c},{h},{w}]\nconst w: f32[{k},{c},{fh},{fw}]\nout y: f32[{n},{k},{p},{q}]\n"
        f"for n<{n}, k<{k}, p<{p}, q<{q}, c<{c}, r<{fh}, s<{fw}"
        + (f" where {', '.join(where)}" if where else "")
        + f": y[n,k,p,q] += x[n,c,{row},{column}] * w[k,c,r,s]\n"
    )


def _index(out: str, tap: str, stride: int, pad: int) -> str:
    return f"{out if stride == 1 else f'{stride}*{out}'} + {tap}" + (f" - {pad}" if pad else "")


def _guard(index: str, count: int, stride: int, taps: int, pad: int, extent: int) -> list[str]:
    """The conditions under which a window position lies inside; none where it always does."""
    reach = (count - 1) * stride + taps - 1 - pad
    return ([f"{index} >= 0"] if pad else []) + ([f"{index} < {extent}"] if reach >= extent else [])


def _extent(entry: Entry, key: str, least: int = 1) -> int:
    value = entry.get(key)
    if value is None:
        raise ValueError(f"'{key}' is missing")
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ValueError(f"'{key}' is {value!r}, a whole number from {least} on is wanted")
    return value


_WRITERS: Mapping[str, Callable[[Entry], tuple[str, str]]] = {"gemm": _gemm, "conv": _conv, "convs": _conv}
