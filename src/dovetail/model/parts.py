"""One program of a model, compiled: what a step needs of it, as plain data for other processes and files.

{"entry": "k_1f3a...", "arguments": [["a0", "f32", [8, 8], false], ...], ..., "bytes": [n, m]}\\n<objects>

A program with run-time sizes gives one part for all their values; ``settled`` is that part for some of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from dovetail.algorithm import Algorithm, Wishes, chosen
from dovetail.codegen.arena import Arena
from dovetail.codegen.shares import status_bytes
from dovetail.compilation import is_small, kernel_of, undisturbed
from dovetail.ir.plan import Digit
from dovetail.ir.program import Program, Role, Tensor
from dovetail.mapping.tiles import tile_fits
from dovetail.runtime.arrays import Parameter
from dovetail.runtime.cache import Cache
from dovetail.runtime.kernel import Kernel
from dovetail.schedule.estimate import arithmetic_cycles, estimate_cycles
from dovetail.stored import Shelf, pack_buffer, unpack_buffer
from dovetail.targets.model import Target


@dataclass(frozen=True, slots=True)
class Layout:
    """How a constant lies in memory: seen in the shape ``view``, with the dimensions ``digits``."""

    view: tuple[int, ...]
    digits: tuple[Digit, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """A kernel: its code, what its words are, and the work memory it wants."""

    entry: str
    code: bytes = field(repr=False)
    arguments: tuple[Parameter, ...]
    """The tensors whose addresses are its first words; results are writable."""
    layouts: Mapping[str, Layout]
    """Of constants that are not wanted as they are."""
    shared_bytes: int
    private_bytes: int
    status_bytes: int
    parallel: bool
    buffers: tuple[str, ...]
    """Names by the number that a failed index check reports; empty where no index is read from a tensor."""
    algorithm: str
    ahead: Part | None = None
    """Makes arguments of this part from constants of the program, once: those that the program has not."""
    sizes: tuple[str, ...] = ()
    """Run-time sizes, in the order of their words."""
    work: tuple[Arena, Arena] = (Arena(()), Arena(()))
    """Shared and private work memory of a part with sizes, from which their bytes follow."""
    values: tuple[int, ...] = ()
    """Of the sizes, where the part is settled."""


def settled(part: Part, sizes: Mapping[str, int]) -> Part:
    """``part`` for these values of its sizes."""
    shared, private = (arena.bytes(sizes) for arena in part.work)
    values = tuple(sizes[name] for name in part.sizes)
    return replace(part, shared_bytes=shared, private_bytes=private, values=values)


def part_of(program: Program, target: Target, threads: int, store: Cache | None) -> Part:
    """``program`` compiled and certified; from ``store`` where it has been before."""
    tray = _Tray(store)
    with undisturbed:
        form = _form(program, target, threads, tray)
        kernel = kernel_of(form.program, target, threads, tray, None)
    return replace(_part(kernel, target, tray), algorithm=form.name)


def _form(program: Program, target: Target, threads: int, store: Cache) -> Algorithm:
    """The form of ``program`` that is estimated to be the fastest."""
    if is_small(program):
        return Algorithm(program)

    def estimate(form: Program) -> float:
        return estimate_cycles(form, target, threads, tile_fits)

    def least(form: Program) -> float:
        return arithmetic_cycles(form, target, threads)

    return chosen(program, Shelf(store, program, target), threads, Wishes(), estimate, least)


def _part(kernel: Kernel, target: Target, store: Cache) -> Part:
    main = kernel.main or kernel.program
    kept = Shelf(store, main, target).kernel(kernel.plan)
    assert kept is not None, "what was compiled has just been put there"
    parallel = kernel.plan.is_parallel and kernel.threads > 1
    sized = bool(main.sizes)
    return Part(
        kept.entry,
        kept.code,
        tuple(_parameter(t) for t in main.tensors if t.role is not Role.TEMP),
        {h.tensor: Layout(kernel.views[h.tensor], h.digits) for h in kernel.plan.holds if h.ahead},
        0 if sized else kept.shared.bytes({}),
        0 if sized else kept.private.bytes({}),
        status_bytes(kernel.threads if parallel else 1),
        parallel,
        kept.buffers if _checks_indices(main) else (),
        kernel.algorithm,
        None if kernel.ahead is None else _part(kernel.ahead, target, store),
        tuple(size.name for size in main.sizes),
        (kept.shared, kept.private) if sized else (Arena(()), Arena(())),
    )


def _parameter(tensor: Tensor) -> Parameter:
    written = tensor.role in (Role.OUT, Role.INOUT)
    shape = tuple(extent.const if extent.is_constant else None for extent in tensor.shape)
    return Parameter(tensor.name, tensor.dtype.name, shape, written)


def _checks_indices(program: Program) -> bool:
    return any(i.is_indirect for s in program.statements for a in (s.out, *s.reads()) for i in a.indices)


class _Tray(Cache):
    """What one compilation makes, at hand for as long as it runs, before what is kept on disk."""

    def __init__(self, behind: Cache | None) -> None:
        super().__init__(None)
        self._behind = behind
        self._held: dict[tuple[str, str], bytes] = {}

    def get(self, kind: str, key: Mapping[str, str]) -> bytes | None:
        held = self._held.get(_name(kind, key))
        if held is None and self._behind is not None:
            held = self._behind.get(kind, key)
        if held is not None:
            self._held[_name(kind, key)] = held
        return held

    def put(self, kind: str, key: Mapping[str, str], payload: bytes) -> None:
        self._held[_name(kind, key)] = payload
        if self._behind is not None:
            self._behind.put(kind, key, payload)


def _name(kind: str, key: Mapping[str, str]) -> tuple[str, str]:
    return kind, json.dumps(dict(key), sort_keys=True)


def to_bytes(part: Part) -> bytes:
    codes: list[bytes] = []
    head = _pack(part, codes)
    return json.dumps({**head, "bytes": [len(code) for code in codes]}).encode() + b"\n" + b"".join(codes)


def from_bytes(data: bytes) -> Part | None:
    """What ``to_bytes`` wrote; None for anything else."""
    head, newline, rest = data.partition(b"\n")
    try:
        found = json.loads(head)
        lengths = [int(length) for length in found["bytes"]]
        if not newline or min(lengths) <= 0 or sum(lengths) != len(rest):
            return None
        codes = [rest[sum(lengths[:k]) : sum(lengths[: k + 1])] for k in range(len(lengths))]
        return _unpack(found, codes)
    except (KeyError, TypeError, ValueError, IndexError, RecursionError):
        return None


def _pack(part: Part, codes: list[bytes]) -> dict[str, object]:
    codes.append(part.code)
    layouts = {
        name: [list(layout.view), [[d.dimension, d.divisor, d.modulus] for d in layout.digits]]
        for name, layout in part.layouts.items()
    }
    return {
        "entry": part.entry,
        "arguments": [[p.name, p.dtype, list(p.shape), p.writable] for p in part.arguments],
        "layouts": layouts,
        "memory": [part.shared_bytes, part.private_bytes, part.status_bytes],
        "parallel": part.parallel,
        "buffers": list(part.buffers),
        "algorithm": part.algorithm,
        "ahead": None if part.ahead is None else _pack(part.ahead, codes),
        "sizes": list(part.sizes),
        "work": [[pack_buffer(b) for b in arena.buffers] for arena in part.work],
    }


def _unpack(found: Mapping[str, object], codes: list[bytes]) -> Part:
    """Takes the code of the part, and of those inside it, from the front of ``codes``."""
    code = codes.pop(0)
    arguments, layouts, memory, buffers = (found[name] for name in ("arguments", "layouts", "memory", "buffers"))
    ahead = found["ahead"]
    if not isinstance(arguments, list) or not isinstance(layouts, dict) or not isinstance(buffers, list):
        raise TypeError("not a part")
    if not isinstance(memory, list) or len(memory) != 3 or not isinstance(ahead, dict | None):
        raise TypeError("not a part")
    shared, private = (_arena(data) for data in _listed(found["work"]))
    known = {
        str(name): Layout(tuple(map(int, view)), tuple(Digit(*map(int, digit)) for digit in digits))
        for name, (view, digits) in layouts.items()
    }
    return Part(
        str(found["entry"]),
        code,
        tuple(
            Parameter(str(a), str(b), tuple(n if n is None else int(n) for n in c), bool(d)) for a, b, c, d in arguments
        ),
        known,
        int(memory[0]),
        int(memory[1]),
        int(memory[2]),
        bool(found["parallel"]),
        tuple(map(str, buffers)),
        str(found["algorithm"]),
        None if ahead is None else _unpack(ahead, codes),
        tuple(map(str, _listed(found["sizes"]))),
        (shared, private),
    )


def _arena(data: object) -> Arena:
    return Arena(tuple(unpack_buffer(b) for b in _listed(data) if isinstance(b, dict)))


def _listed(data: object) -> list[object]:
    if not isinstance(data, list):
        raise TypeError("not a list")
    return data
