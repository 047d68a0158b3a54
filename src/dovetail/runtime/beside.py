"""Object files and shared libraries beside a target file: what instructions with ``call`` call.

    symbols_beside(instructions) -> {"gemm_6x16": 0x7f...}

An object file is put into memory by the linker that loads generated code; a shared library by the system's. Both
stay for as long as the process, by their contents: a file that is edited and loaded again is another one.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

from dovetail.base.errors import CodegenError, TargetError
from dovetail.runtime.jit import LoadedCode, load_object
from dovetail.targets.model import Instruction

_SHARED = (".so", ".dylib", ".dll")
_OBJECTS: dict[str, LoadedCode] = {}
_LIBRARIES: dict[str, ctypes.CDLL] = {}


def symbols_beside(instructions: Iterable[Instruction]) -> dict[str, int]:
    """The address of every symbol that ``instructions`` call in a file beside their target file.

    A symbol without a file is left to the process. Raises a TargetError where a file or a symbol is not there.
    """
    found: dict[str, int] = {}
    for instruction in instructions:
        if not instruction.call or instruction.object is None:
            continue
        address = _address(instruction, instruction.object)
        if found.setdefault(instruction.call, address) != address:
            raise TargetError(
                f"two files define '{instruction.call}' for one kernel",
                where=instruction.source or None,
                hint="give one of the functions another name",
            )
    return found


def _address(instruction: Instruction, path: Path) -> int:
    where = instruction.source or None
    try:
        key = sha256(path.read_bytes()).hexdigest()
        if path.suffix in _SHARED or ".so." in path.name:
            library = _LIBRARIES.get(key) or _LIBRARIES.setdefault(key, ctypes.CDLL(str(path.resolve())))
            return ctypes.cast(library[instruction.call], ctypes.c_void_p).value or 0
        code = _OBJECTS.get(key) or _OBJECTS.setdefault(key, load_object(path.read_bytes(), {}))
        return code.address(instruction.call)
    except OSError as problem:
        raise TargetError(f"'{path.name}' cannot be loaded", where=where, why=_plain(problem)) from None
    except AttributeError:
        raise _no_symbol(instruction, path) from None
    except CodegenError as problem:
        if problem.where is not None:
            raise _no_symbol(instruction, path) from None
        hint = "an object file for this machine, compiled with -fPIC, or a shared library"
        raise TargetError(f"'{path.name}' cannot be loaded", where=where, why=_reason(problem), hint=hint) from None


def _no_symbol(instruction: Instruction, path: Path) -> TargetError:
    hint = 'the name as the linker sees it: extern "C" in C++, not static'
    what = f"'{path.name}' does not define '{instruction.call}'"
    return TargetError(what, where=instruction.source or None, hint=hint)


def _reason(problem: CodegenError) -> str:
    return (problem.why or problem.what).strip()


def _plain(problem: OSError) -> str:
    return problem.strerror or str(problem)
