"""Object code into memory and back out as functions."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
import time

import llvmlite.binding as llvm
import pytest

from dovetail.base.errors import CodegenError
from dovetail.runtime.jit import compile_ir, compiler_identity, load_object

ADD = "define i32 @add(i32 %a, i32 %b) {\n  %c = add i32 %a, %b\n  ret i32 %c\n}"
TABLE = """
@table = internal constant [3 x i32] [i32 10, i32 20, i32 30]
@answer = global i32 42
declare i32 @outside(i32)
declare double @sqrt(double)
define i32 @entry(i32 %i) {
  %at = getelementptr i32, ptr @table, i32 %i
  %v = load i32, ptr %at
  %r = call i32 @outside(i32 %v)
  ret i32 %r
}
define double @root(double %x) {
  %r = call double @sqrt(double %x)
  ret double %r
}
"""
BINARY = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int32, ctypes.c_int32)
UNARY = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int32)


def test_a_function_comes_back_from_its_object_code() -> None:
    code = load_object(compile_ir(ADD), {})
    assert BINARY(code.address("add"))(40, 2) == 42
    assert code.address("add") == code.address("add")


NEGATE = UNARY(lambda n: -n)
OUTSIDE = {"outside": ctypes.cast(NEGATE, ctypes.c_void_p).value or 0}


def test_code_calls_what_it_is_handed_and_what_the_process_has() -> None:
    code = load_object(compile_ir(TABLE), OUTSIDE)
    assert [UNARY(code.address("entry"))(i) for i in range(3)] == [-10, -20, -30]
    assert ctypes.c_int32.from_address(code.address("answer")).value == 42
    assert ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(code.address("root"))(81.0) == 9.0


def test_the_same_name_in_two_objects_is_two_functions() -> None:
    one = load_object(compile_ir(ADD), {})
    two = load_object(compile_ir(ADD.replace("= add", "= sub")), {})
    assert (BINARY(one.address("add"))(5, 3), BINARY(two.address("add"))(5, 3)) == (8, 2)


def test_an_unknown_name_is_an_error_that_says_which() -> None:
    code = load_object(compile_ir(ADD), {})
    with pytest.raises(CodegenError, match=r"symbol 'sub'"):
        code.address("sub")


def test_an_open_name_nobody_has_is_an_error() -> None:
    code = load_object(compile_ir(TABLE), {})
    with pytest.raises(CodegenError, match="every name it uses must be defined"):
        code.address("entry")


def test_bytes_that_are_no_object_file_are_an_error() -> None:
    with pytest.raises(CodegenError, match="not recognized as a valid object file"):
        load_object(b"not an object file", {})


def test_code_that_is_not_position_independent_is_refused_or_right() -> None:
    compile_ir(ADD)  # prepares LLVM for this machine
    machine = llvm.Target.from_default_triple().create_target_machine(reloc="static", codemodel="small")
    fixed = bytes(machine.emit_object(llvm.parse_assembly(TABLE)))
    try:
        entry = load_object(fixed, OUTSIDE).address("entry")
    except CodegenError as error:
        assert "position independent" in str(error)
    else:
        assert UNARY(entry)(2) == -30


def test_text_that_is_no_module_is_an_error() -> None:
    with pytest.raises(CodegenError, match="expected top-level entity"):
        compile_ir("this is not LLVM")


def test_loading_takes_milliseconds_at_most() -> None:
    made = compile_ir(ADD)
    load_object(made, {}).address("add")
    times = []
    for _ in range(20):
        start = time.perf_counter()
        load_object(made, {}).address("add")
        times.append(time.perf_counter() - start)
    assert min(times) < 2e-3


def test_the_same_text_gives_the_same_object_and_the_identity_names_the_compiler() -> None:
    assert compile_ir(TABLE) == compile_ir(TABLE)
    assert set(compiler_identity()) == {"llvm", "triple"}


def test_a_fork_while_another_thread_is_in_llvm_leaves_the_child_free_to_compile() -> None:
    stop = threading.Event()

    def keep_compiling() -> None:
        while not stop.is_set():
            compile_ir(ADD)

    busy = threading.Thread(target=keep_compiling)
    busy.start()
    try:
        assert [_exit_code_of_a_fork_that_compiles() for _ in range(10)] == [0] * 10
    finally:
        stop.set()
        busy.join()


def _exit_code_of_a_fork_that_compiles() -> int:
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # ends a child that waits for ever
        code = load_object(compile_ir(ADD), {})
        os._exit(0 if BINARY(code.address("add"))(40, 2) == 42 else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
