"""A whole model for C: an object file or shared library with one function, and its header.

    export(model, Path("resnet.o"))   ->  resnet.o, resnet.h:  int resnet_run(const void *const *inputs, ...)
    export(model, Path("resnet.so"))  ->  resnet.so, resnet.h, by the system's linker

Constants are in the file, memory for intermediate values is part of it, threads are its own.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from dovetail.base.errors import CodegenError, ModelError
from dovetail.base.words import printable
from dovetail.model.compiled import CompiledModel
from dovetail.model.elf import Data, joined
from dovetail.model.export_text import driver_text, header_text
from dovetail.model.finished import Finished
from dovetail.runtime.jit import compile_ir
from dovetail.runtime.model_image import HostStep
from dovetail.runtime.pool import object_code

_ALIGNMENT = 64
_MOST_BYTES = 1 << 31
"""Beyond, code that is reached by 32-bit distances could not reach its data."""
_LINKERS = ("cc", "gcc", "clang")


def export(compiled: CompiledModel, path: Path) -> list[Path]:
    """The files that were written: ``path``, an object file or a shared library by its ending, and the header."""
    if path.suffix not in (".o", ".so"):
        raise ModelError(f"'{printable(path.name)}' ends neither in .o nor in .so", hint="NAME.o or NAME.so")
    finished, name = compiled.finished, _identifier(path.stem)
    _check(finished)
    header = path.with_suffix(".h")
    if path.suffix == ".o":
        _write(path, object_pieces(finished, name))
    else:
        _link(path, object_pieces(finished, name))
    header.write_text(header_text(finished.image, name), encoding="utf-8")
    return [path, header]


def object_pieces(finished: Finished, name: str) -> Iterable[memoryview]:
    """The object file of a model whose function is ``NAME_run``, piece by piece; the same model, the same bytes."""
    blocks: list[memoryview] = []
    offsets: list[int] = []
    at = 0
    for array in finished.constants:
        offsets.append(at)
        content = array.reshape(-1).view("u1").data
        padding = -content.nbytes % _ALIGNMENT
        blocks += [content, memoryview(bytes(padding))]
        at += content.nbytes + padding
    data = f"{name}_constants"
    text = driver_text(finished.image, name, offsets, data, int(signal.SIG_SETMASK))
    runtime = object_code(finished.image.machine.relax, None)
    objects = (*finished.objects, runtime, compile_ir(text))
    return joined(objects, Data(data, tuple(blocks) or (memoryview(bytes(_ALIGNMENT)),)), frozenset(_exported(name)))


def _exported(name: str) -> tuple[str, str]:
    return f"{name}_run", f"{name}_threads"


def _identifier(stem: str) -> str:
    """A name for C."""
    found = re.sub(r"[^A-Za-z0-9_]", "_", stem)
    return found if re.match(r"[A-Za-z_]", found) else f"m{found}"


def _check(finished: Finished) -> None:
    hosts = [step.title for step in finished.image.steps if isinstance(step, HostStep)]
    if hosts:
        raise ModelError(
            "the model cannot be exported: some of its steps are Python functions",
            why=f"on the host: {', '.join(dict.fromkeys(map(printable, hosts)))}",
            hint="save it as a .dovetail file, which Python runs",
        )
    if finished.beside:
        what = "the model calls functions in files beside its target file, and cannot be exported"
        raise ModelError(what, why=f"functions: {', '.join(finished.beside)}")
    total = finished.image.arena_bytes + sum(array.nbytes + _ALIGNMENT for array in finished.constants)
    if total >= _MOST_BYTES:
        raise ModelError(f"the model takes {total:,} bytes, an object file holds fewer than {_MOST_BYTES:,}")


def _write(path: Path, pieces: Iterable[memoryview]) -> None:
    with path.open("wb") as file:
        file.writelines(pieces)


def _link(path: Path, pieces: Iterable[memoryview]) -> None:
    linker = next((found for name in _LINKERS if (found := shutil.which(name))), None)
    if linker is None:
        raise CodegenError(
            "a shared library takes a linker, and there is none", why=f"looked for {', '.join(_LINKERS)}", hint="NAME.o"
        )
    with tempfile.TemporaryDirectory() as folder:
        part = Path(folder) / "model.o"
        _write(part, pieces)
        command = [linker, "-shared", "-o", os.fspath(path.absolute()), os.fspath(part), "-lpthread", "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CodegenError("the linker failed", where=linker, why=done.stderr.strip() or None)
