"""Text with placeholders: how one family of instructions becomes many.

    {T} {U}        dtypes of the family             {L}          lanes
    {t} {u}        LLVM element types               {v} {uv}     LLVM register types: float, or <8 x float>
    {s} {us}       intrinsic suffixes: f32, v8f32   {A} {UA}     bytes of an element
    {W} {UW}       bits of an element               {B}          bytes of a register of T
    {ts}           the intrinsic suffix of one element of T
    {i} {is}       the integer register type as wide as T, and its suffix (U: {ui} {uis})
    {m}            the mask type: i1, <8 x i1>      {y}          the bool register type: i8, <8 x i8>
    {d} {df} {n}   register types of f64, f32 and i32, for conversions on the way; {dds} {dfs} suffixes, {half} of half
    {a|b|c}        a when T is a float, b when it is signed, c when it is unsigned or bool
    {T:1.5}        a constant of T in every lane; also {U:..}, {I:..} (the integer as wide as T), {V:..} (as wide
                   as U), {D:..} (f64), {F:..} (f32), {N:..} (i32), {Y:..} (bool).
                   Values: numbers, hex, inf, nan; of T and U also low, high and bits-1
    {each lane} .. {end}   once per lane, with {l} and {next} = l + 1
    {each half} .. {end}   for h = L/2, L/4, .. 1, with {h}, {2h}, {hv}, {2hv}, {low}, {high}: shuffle masks of halves
    {each four} .. {end}   for lanes 0 to 3, 4 to 7, ..: their numbers {l0} {l1} {l2} {l3}, and shuffle masks: {four} of
                           them all, {left} and {right} of the first and the last two
    {each eight} .. {end}  for lanes 0 to 7, 8 to 15, ..: their numbers {l0} to {l7}, and {eight}, a shuffle mask of two
                           registers: the first four lanes of one, the same of the other, then the last four so
    {zip1 low} {zip1 high} {zip2 low} {zip2 high}
                           shuffle masks of two registers: in each four lanes the lower (higher) half of both, by one
                           element (by two elements) in turn
    {{ }}          braces

A bool is an i8 holding 0 or 1, in registers as in memory; f16 and bf16 are i16 and f8e4m3fn is i8, since LLVM's own
small floats need library calls on machines without them. Arithmetic on them is done in f32.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from dovetail.base.dtypes import DTYPES, DType, Kind

_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")
_LLVM = {"bool": "i8", "f8e4m3fn": "i8", "f16": "i16", "bf16": "i16", "f32": "float", "f64": "double"}
_SUFFIX = {"float": "f32", "double": "f64"}
_LIMITS: dict[str, Callable[[DType], int]] = {
    "low": lambda kind: kind.low,
    "high": lambda kind: kind.high,
    "bits-1": lambda kind: kind.bits - 1,
}
_KIND_COLUMN = {Kind.FLOAT: 0, Kind.SIGNED: 1, Kind.UNSIGNED: 2, Kind.BOOL: 2}
_CONSTANT_TYPE = {"T": "t", "U": "u", "I": "ti", "V": "tui", "D": "tD", "F": "tF", "N": "tN", "Y": "tY"}


def llvm_type(kind: DType) -> str:
    """The LLVM type of one element."""
    return _LLVM.get(kind.name) or f"i{kind.bits}"


def register_type(kind: DType, lanes: int) -> str:
    """The LLVM type of a register operand with ``lanes`` elements."""
    return spread(llvm_type(kind), lanes)


def spread(element: str, lanes: int) -> str:
    return element if lanes == 1 else f"<{lanes} x {element}>"


class Scope(dict[str, str]):
    """What placeholders stand for, for one choice of dtypes and lanes; constants are made when first asked for."""

    def __init__(self, kinds: tuple[DType, ...], lanes: int) -> None:
        super().__init__(L=str(lanes))
        self.lanes = lanes
        self.column = _KIND_COLUMN[kinds[0].kind] if kinds else 0
        self.dtypes = dict(zip("TU", kinds, strict=False))
        named = (("", "T"), ("u", "U"))
        for (prefix, name), kind in zip(named, kinds, strict=False):
            self._add_dtype(prefix, name, kind)
        shared = (("m", "i1"), ("y", "i8"), ("d", "double"), ("df", "float"), ("n", "i32"), ("half", "half"))
        self.update({key: spread(element, lanes) for key, element in shared})
        if kinds:
            self["ts"] = _suffix(self["t"], 1)
        self.update(tD="double", tF="float", tN="i32", tY="i8")
        self.update(dds=_suffix("double", lanes), dfs=_suffix("float", lanes))

    def _add_dtype(self, prefix: str, name: str, kind: DType) -> None:
        element, integer = llvm_type(kind), f"i{kind.bits}"
        upper = prefix.upper()
        self.update(
            {
                name: kind.name,
                prefix or "t": element,
                f"{prefix}v": spread(element, self.lanes),
                f"{prefix}s": _suffix(element, self.lanes),
                f"{prefix}i": spread(integer, self.lanes),
                f"{prefix}is": _suffix(integer, self.lanes),
                f"t{prefix}i": integer,
                f"{upper}A": str(kind.bytes),
                f"{upper}W": str(kind.bits),
                f"{upper}B": str(kind.bytes * self.lanes),
            }
        )

    def __missing__(self, key: str) -> str:
        if "|" in key:
            columns = key.split("|")
            if len(columns) != 3:
                raise KeyError(key)
            value = columns[self.column]
        elif key in _ZIPS and self.lanes % 4 == 0:
            value = shuffle_mask(_zipped(self.lanes, *_ZIPS[key]))
        elif key[1:2] == ":" and key[0] in _CONSTANT_TYPE and _CONSTANT_TYPE[key[0]] in self:
            value = self._constant(key[0], key[2:].strip())
        else:
            raise KeyError(key)
        self[key] = value
        return value

    def _constant(self, name: str, text: str) -> str:
        element = self[_CONSTANT_TYPE[name]]
        if text in _LIMITS and name in self.dtypes:
            text = str(_LIMITS[text](self.dtypes[name]))
        one = float_constant(text, element) if element in ("float", "double") else str(int(text, 0))
        return one if self.lanes == 1 else f"splat ({element} {one})"


def float_constant(text: str, element: str) -> str:
    """A float constant as LLVM writes it: the bits of the double that equals the value rounded to ``element``."""
    value = float.fromhex(text) if "0x" in text else float(text)
    if element == "float":
        (value,) = struct.unpack("<f", struct.pack("<f", value))
    (bits,) = struct.unpack("<Q", struct.pack("<d", value))
    return f"0x{bits:016X}"


@dataclass(frozen=True, slots=True)
class Template:
    """A text cut at its placeholders: texts and keys in turn, and blocks to repeat."""

    parts: tuple[str | Key | Block, ...]

    def render(self, scope: Scope) -> str:
        """The text for ``scope``; a KeyError names a placeholder that has no meaning there."""
        return "".join([part if part.__class__ is str else _render(part, scope) for part in self.parts])


@dataclass(frozen=True, slots=True)
class Key:
    """A placeholder."""

    name: str


@dataclass(frozen=True, slots=True)
class Block:
    """Text to repeat for every ``lane``, ``half``, ``four`` or ``eight`` lanes."""

    over: str
    body: Template


def compile_template(text: str) -> Template:
    """``text`` cut at its placeholders; a ValueError where blocks do not close."""
    stack: list[tuple[str, list[str | Key | Block]]] = [("", [])]
    place = 0
    for match in _PLACEHOLDER.finditer(text):
        stack[-1][1].append(text[place : match.start()])
        place = match.end()
        key = match.group(1)
        if key is None:
            stack[-1][1].append(match.group()[0])
        elif key.removeprefix("each ") in _BLOCKS and key.startswith("each "):
            stack.append((key.removeprefix("each "), []))
        elif key == "end":
            over, parts = stack.pop()
            if not stack:
                raise ValueError("{end} without {each lane}, {each half}, {each four} or {each eight}")
            stack[-1][1].append(Block(over, Template(tuple(parts))))
        else:
            stack[-1][1].append(Key(key))
    if len(stack) > 1:
        raise ValueError(f"{{each {stack[-1][0]}}} without {{end}}")
    stack[0][1].append(text[place:])
    return Template(tuple(part for part in stack[0][1] if part != ""))


def _render(part: str | Key | Block, scope: Scope) -> str:
    if isinstance(part, Key):
        return scope[part.name]
    assert isinstance(part, Block)
    rows = _BLOCKS[part.over](scope)
    inner = _copy(scope)
    texts = []
    for row in rows:
        inner.update(row)
        texts.append(part.body.render(inner))
    return "".join(texts)


def _lanes(scope: Scope) -> list[dict[str, str]]:
    return [{"l": str(lane), "next": str(lane + 1)} for lane in range(scope.lanes)]


def _halves(scope: Scope) -> list[dict[str, str]]:
    rows = []
    half = scope.lanes // 2
    while half:
        masks = {name: shuffle_mask(range(start, start + half)) for name, start in (("low", 0), ("high", half))}
        element = scope["t"]
        types = {"hv": f"<{half} x {element}>", "2hv": f"<{2 * half} x {element}>"}
        suffix = {"hs": f"v{half}{_SUFFIX.get(element, element)}"}
        rows.append({"h": str(half), "2h": str(2 * half), **masks, **types, **suffix})
        half //= 2
    return rows


def _fours(scope: Scope) -> list[dict[str, str]]:
    rows = []
    for lane in range(0, scope.lanes, 4):
        numbers = {f"l{n}": str(lane + n) for n in range(4)}
        parts = (("four", lane, 4), ("left", lane, 2), ("right", lane + 2, 2))
        rows.append({**numbers, **{name: shuffle_mask(range(at, at + count)) for name, at, count in parts}})
    return rows


def _eights(scope: Scope) -> list[dict[str, str]]:
    rows = []
    for lane in range(0, scope.lanes, 8):
        numbers = {f"l{n}": str(lane + n) for n in range(8)}
        starts = (lane, scope.lanes + lane, lane + 4, scope.lanes + lane + 4)
        rows.append({**numbers, "eight": shuffle_mask(at + n for at in starts for n in range(4))})
    return rows


_BLOCKS: dict[str, Callable[[Scope], list[dict[str, str]]]] = {
    "lane": _lanes,
    "half": _halves,
    "four": _fours,
    "eight": _eights,
}
_ZIPS = {"zip1 low": (1, 0), "zip1 high": (1, 2), "zip2 low": (2, 0), "zip2 high": (2, 2)}
"""How many elements at a time, and the first lane of four."""


def shuffle_mask(lanes: Iterable[int]) -> str:
    """A mask of LLVM's ``shufflevector``."""
    numbers = [f"i32 {lane}" for lane in lanes]
    return f"<{len(numbers)} x i32> <{', '.join(numbers)}>"


def _zipped(lanes: int, by: int, first: int) -> list[int]:
    return [
        four + at + n + register * lanes
        for four in range(0, lanes, 4)
        for at in range(first, first + 2, by)
        for register in range(2)
        for n in range(by)
    ]


def _copy(scope: Scope) -> Scope:
    inner = Scope(tuple(scope.dtypes.values()), scope.lanes)
    inner.update(scope)
    return inner


def _suffix(element: str, lanes: int) -> str:
    scalar = _SUFFIX.get(element, element)
    return scalar if lanes == 1 else f"v{lanes}{scalar}"


def known_placeholders(scope: Scope) -> list[str]:
    """Names for "did you mean"."""
    inside = "l next h 2h hv 2hv hs low high l0 l1 l2 l3 four left right"
    return sorted({*scope, *_ZIPS, *inside.split()} - set(DTYPES))
