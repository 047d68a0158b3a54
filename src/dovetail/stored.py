"""What is kept of a compilation: its plan, and its code with the certificate. JSON and object code; never pickle.

{"entry": "k_1f3a...", "shared": [buffer, ...], "private": [...], "buffers": [...], "certificate": {...}}\\n<object>
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from pathlib import Path

from dovetail import __version__
from dovetail.base.dtypes import DTYPES
from dovetail.base.errors import PlanError
from dovetail.codegen.arena import Arena
from dovetail.ir.certificate import Certificate, Check
from dovetail.ir.index import Atom, Index, Quotient, Remainder
from dovetail.ir.nest import Buffer
from dovetail.ir.plan import Plan, plan_from_json
from dovetail.ir.program import Program
from dovetail.runtime.cache import Cache
from dovetail.runtime.jit import compiler_identity
from dovetail.targets.model import Target

Json = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Stored:
    """Everything about a kernel but its program and plan, which are the key it is found by."""

    entry: str
    shared: Arena
    private: Arena
    buffers: tuple[str, ...]
    code: bytes
    certificate: Certificate


class Shelf:
    """What is kept of one program for one target, in two steps: its plan, and the code made from a plan."""

    def __init__(self, cache: Cache | None, program: Program, target: Target) -> None:
        self.cache = cache
        self.key = {
            "program": sha256(str(program).encode()).hexdigest(),
            **target_key(target),
        }

    def plan(self, threads: int, make: Callable[[], Plan]) -> Plan:
        """The plan kept for so many threads, else a new one, which is then kept."""
        key = {**self.key, "threads": str(threads)}
        data = None if self.cache is None else self.cache.get("plan", key)
        kept = None if data is None else _plan(data)
        if kept is not None:
            return kept
        made = make()
        if self.cache is not None:
            self.cache.put("plan", key, json.dumps({"note": made.note, "plan": made.to_json()}).encode())
        return made

    def text(self, what: str, threads: int, details: str, make: Callable[[], dict[str, str]]) -> dict[str, str]:
        """Words kept for so many threads and ``details``, else new ones, which are then kept."""
        key = {**self.key, "threads": str(threads), "details": details}
        data = None if self.cache is None else self.cache.get(what, key)
        kept = None if data is None else _words(data)
        if kept is not None:
            return kept
        made = make()
        if self.cache is not None:
            self.cache.put(what, key, json.dumps(made).encode())
        return made

    def kernel(self, plan: Plan) -> Stored | None:
        data = None if self.cache is None else self.cache.get("object", {**self.key, "plan": plan.to_json()})
        return None if data is None else from_bytes(data)

    def keep_kernel(self, plan: Plan, kernel: Stored) -> None:
        if self.cache is not None:
            self.cache.put("object", {**self.key, "plan": plan.to_json()}, to_bytes(kernel))


def target_key(target: Target) -> dict[str, str]:
    """What decides, beside what is compiled, which code is made of it."""
    return {
        "target": target.digest,
        "features": " ".join(sorted(target.features)),
        "version": f"{__version__} {_package_state()}",
        **compiler_identity(),
    }


@cache
def _package_state() -> str:
    """A digest of the compiler's own files as they lie on disk: code that an edited compiler made is not taken."""
    root = Path(__file__).parent
    files = sorted(path for kind in ("*.py", "*.toml", "*.ll") for path in root.rglob(kind))
    rows = [f"{path.relative_to(root)} {_state(path)}" for path in files]
    return sha256("\n".join(rows).encode()).hexdigest()[:16]


def _state(path: Path) -> str:
    found = path.stat()
    return f"{found.st_size} {found.st_mtime_ns}"


def _plan(data: bytes) -> Plan | None:
    try:
        found = json.loads(data)
        return replace(plan_from_json(found["plan"]), note=str(found["note"]))
    except (KeyError, TypeError, ValueError, PlanError):
        return None


def _words(data: bytes) -> dict[str, str] | None:
    try:
        found = json.loads(data)
    except ValueError:
        return None
    if not isinstance(found, dict) or not all(isinstance(word, str) for word in found.values()):
        return None
    return found


def to_bytes(kernel: Stored) -> bytes:
    head = {
        "entry": kernel.entry,
        "shared": [pack_buffer(b) for b in kernel.shared.buffers],
        "private": [pack_buffer(b) for b in kernel.private.buffers],
        "buffers": list(kernel.buffers),
        "certificate": _pack_certificate(kernel.certificate),
    }
    return json.dumps(head).encode() + b"\n" + kernel.code


def from_bytes(data: bytes) -> Stored | None:
    """What ``to_bytes`` wrote; None for anything else."""
    head, newline, code = data.partition(b"\n")
    try:
        found = json.loads(head)
        shared, private = (Arena(tuple(unpack_buffer(b) for b in found[name])) for name in ("shared", "private"))
        names = tuple(str(name) for name in found["buffers"])
        kernel = Stored(str(found["entry"]), shared, private, names, code, _certificate(found["certificate"]))
    except (KeyError, TypeError, ValueError, RecursionError):
        return None
    return kernel if newline and code else None


def _pack_certificate(certificate: Certificate) -> Json:
    checks = [[c.claim, c.method, c.detail, c.passed, c.seconds] for c in certificate.checks]
    return {"program": certificate.program, "target": certificate.target, "plan": certificate.plan, "checks": checks}


def _certificate(data: Json) -> Certificate:
    checks = data["checks"]
    if not isinstance(checks, list):
        raise TypeError("checks must be a list")
    found = tuple(Check(str(a), str(b), str(c), bool(d), float(e)) for a, b, c, d, e in checks)
    return Certificate(str(data["program"]), str(data["target"]), str(data["plan"]), found, kept=True)


def pack_buffer(buffer: Buffer) -> Json:
    return {
        "name": buffer.name,
        "memory": buffer.memory,
        "dtype": buffer.dtype.name,
        "shape": [_pack_index(i) for i in buffer.shape],
        "lanes": buffer.lanes,
        "tensor": buffer.tensor,
        "strides": [_pack_index(i) for i in buffer.strides],
    }


def unpack_buffer(data: Json) -> Buffer:
    shape, strides, lanes = data["shape"], data["strides"], data["lanes"]
    if not isinstance(shape, list) or not isinstance(strides, list) or not isinstance(lanes, int):
        raise TypeError("not a buffer")
    return Buffer(
        str(data["name"]),
        str(data["memory"]),
        DTYPES[str(data["dtype"])],
        tuple(map(_index, shape)),
        lanes,
        str(data["tensor"]),
        tuple(map(_index, strides)),
    )


def _pack_index(index: Index) -> list[object]:
    """[constant, [atom, coefficient], ...]; an atom is a name or [index, divisor, "//" or "%"]."""
    return [index.const, *([_pack_atom(atom), factor] for atom, factor in index.terms)]


def _pack_atom(atom: Atom) -> object:
    if isinstance(atom, Quotient):
        return [_pack_index(atom.index), atom.divisor, "//"]
    if isinstance(atom, Remainder):
        return [_pack_index(atom.index), atom.divisor, "%"]
    assert isinstance(atom, str), "buffers have no indirect extents"
    return atom


def _index(data: object) -> Index:
    if not isinstance(data, list) or not isinstance(data[0], int):
        raise TypeError("not an index")
    return Index(tuple((_atom(atom), int(factor)) for atom, factor in data[1:]), data[0])


def _atom(data: object) -> Atom:
    if isinstance(data, str):
        return data
    if not isinstance(data, list) or data[2] not in ("//", "%"):
        raise TypeError("not an index")
    kind = Quotient if data[2] == "//" else Remainder
    return kind(_index(data[0]), int(data[1]))
