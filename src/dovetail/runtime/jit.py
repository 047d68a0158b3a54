"""Object code in memory: bytes in, addresses out.

    load_object(bytes, {"dt_barrier": 0x7f...}) -> LoadedCode;  code.address("k_1f3a") -> int

Code refers to three kinds of outside names: those in ``symbols``, and, failing that, those of the process (``memset``,
``expf``). It must be position independent; code that is not is refused with an error, never loaded wrongly.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Mapping
from functools import cache

import llvmlite.binding as llvm
from llvmlite.binding import ffi

from dovetail.base.errors import CodegenError


class LoadedCode:
    """Code that can be called while this object lives; its memory is given back afterwards."""

    __slots__ = ("_addresses", "_library", "_trackers")

    def __init__(self, library: str, tracker: llvm.ResourceTracker) -> None:
        self._library = library
        self._trackers = [tracker]
        self._addresses: dict[str, int] = {}

    def address(self, name: str) -> int:
        """Where the function or variable called ``name`` is."""
        known = self._addresses.get(name)
        return self._look_up(name) if known is None else known

    def keep_for_ever(self) -> None:
        """Never give the memory back: for code that threads of its own may be running when the process ends."""
        for tracker in self._trackers:
            tracker.detach()

    def _look_up(self, name: str) -> int:
        try:
            tracker = _engine().lookup(self._library, name)
        except RuntimeError as error:
            raise _cannot_load(str(error), where=f"symbol '{name}'") from error
        self._trackers.append(tracker)
        address = int(tracker[name])
        self._addresses[name] = address
        return address


def load_object(object_bytes: bytes, symbols: Mapping[str, int]) -> LoadedCode:
    """The object file ``object_bytes``, with the addresses in ``symbols`` for the names it leaves open."""
    return _link(llvm.JITLibraryBuilder().add_object_img(object_bytes), symbols)


def load_objects(objects: Iterable[bytes], symbols: Mapping[str, int]) -> LoadedCode:
    """Several object files, put into memory together: that takes less time than one by one."""
    builder = llvm.JITLibraryBuilder()
    for object_bytes in objects:
        builder = builder.add_object_img(object_bytes)
    return _link(builder, symbols)


def compile_ir(text: str) -> bytes:
    """Object code of the LLVM module ``text`` for this machine's plainest processor, compiled fast, not to be fast.

    For the runtime's own few functions, which wait for memory and not for arithmetic.
    """
    _initialise()
    try:
        return bytes(_machine().emit_object(llvm.parse_assembly(text)))
    except RuntimeError as error:
        raise _cannot_load(str(error), where=None) from error


def compiler_identity() -> dict[str, str]:
    """What decides, beside its input, which object code this process makes: part of every cache key."""
    return {"llvm": ".".join(map(str, llvm.llvm_version_info)), "triple": llvm.get_default_triple()}


def this_machine() -> tuple[str, frozenset[str]]:
    """The architecture of this machine, and the features of its processor; none where LLVM cannot tell."""
    architecture = str(llvm.get_process_triple()).split("-")[0]
    try:
        return architecture, frozenset(name for name, here in llvm.get_host_cpu_features().items() if here)
    except RuntimeError:
        return architecture, frozenset()


def _link(builder: llvm.JITLibraryBuilder, symbols: Mapping[str, int]) -> LoadedCode:
    library = f"code{next(_numbers)}"
    for name, address in symbols.items():
        builder.import_symbol(name, address)
    try:
        tracker = builder.add_current_process().link(_engine(), library)
    except RuntimeError as error:
        raise _cannot_load(str(error), where=None) from error
    return LoadedCode(library, tracker)


def _cannot_load(reason: str, where: str | None) -> CodegenError:
    return CodegenError(
        "generated code cannot be loaded",
        where=where,
        why=reason,
        hint="the code must be an object file for this machine, position independent, and every name it uses must be "
        "defined in it, handed in, or known to the process",
    )


_numbers = itertools.count()


@cache
def _engine() -> llvm.LLJIT:
    """One linker for the process. JITLink reports what it cannot relocate; the older linker ends the process."""
    _initialise()
    return llvm.create_lljit_compiler(_machine(), use_jit_link=True, suppress_errors=True)


def _machine() -> llvm.TargetMachine:
    return llvm.Target.from_default_triple().create_target_machine(opt=0, reloc="pic", codemodel="small")


@cache
def _initialise() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()


# One lock guards LLVM, and a fork copies it as it is: the child could wait for ever for a thread that it does not have.
# So a fork waits until no other thread is in LLVM. llvmlite offers no other way to hold its lock.
_in_llvm = ffi.lib._lock
os.register_at_fork(
    before=lambda: _in_llvm.__enter__(),
    after_in_parent=lambda: _in_llvm.__exit__(),
    after_in_child=lambda: _in_llvm.__exit__(),
)
