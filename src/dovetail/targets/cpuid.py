"""The cpuid instruction of x86-64, run through a few lines of generated code."""

from __future__ import annotations

import ctypes

import llvmlite.binding as llvm

_TEXT = """
define void @cpuid(i32 %leaf, i32 %row, ptr %out) {
  %all = call { i32, i32, i32, i32 } asm sideeffect "cpuid",
      "={ax},={bx},={cx},={dx},{ax},{cx},~{dirflag},~{fpsr},~{flags}"(i32 %leaf, i32 %row)
  store { i32, i32, i32, i32 } %all, ptr %out
  ret void
}
"""


def cpuid(leaf: int, row: int) -> tuple[int, int, int, int]:
    """Registers a, b, c and d after cpuid with these in a and c. Only to be called on x86-64."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
    with llvm.create_mcjit_compiler(llvm.parse_assembly(_TEXT), machine) as engine:
        engine.finalize_object()
        address = engine.get_function_address("cpuid")
        out = (ctypes.c_uint32 * 4)()
        kind = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p)
        kind(address)(leaf, row, ctypes.addressof(out))
    a, b, c, d = out
    return a, b, c, d
