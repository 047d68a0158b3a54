"""The shipped targets: every primitive for every dtype, and emissions that LLVM takes and that do what they say."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from dataclasses import replace

import llvmlite.binding as llvm
import numpy as np
import numpy.typing as npt
import pytest

from dovetail.base.dtypes import DTYPES, DType, Kind
from dovetail.codegen.compile import emit_object
from dovetail.codegen.instruction import instructions_module
from dovetail.codegen.instruction_check import check_instructions
from dovetail.ir.expr import Apply, Bitcast, Cast
from dovetail.ir.primitives import PRIMITIVES
from dovetail.ir.verify import verify
from dovetail.runtime.jit import LoadedCode, load_object
from dovetail.targets.cost import evaluate_cost
from dovetail.targets.files import shipped_targets
from dovetail.targets.host import missing_features
from dovetail.targets.load import load_target

COMPUTED = [d for d in DTYPES.values() if d.name in ("bool", "f32", "f64") or d.is_integer]
STORED = [*COMPUTED, DTYPES["f16"], DTYPES["bf16"]]
NOT_OF_BOOL = {"sub", "neg", "abs", "shl", "shr", "floordiv", "mod"}


def load(code: bytes) -> LoadedCode:
    return load_object(code, {})


@pytest.mark.parametrize("name", shipped_targets())
def test_every_instruction_is_a_valid_program_with_a_cost(name: str) -> None:
    for instruction in load_target(name).instructions:
        verify(instruction.program)
        params = {size.name: size.high for size in instruction.program.sizes}
        assert evaluate_cost(instruction.cycles, params) > 0
        assert evaluate_cost(instruction.latency, params) >= 0


@pytest.mark.parametrize("name", [name for name in shipped_targets() if load_target(name).llvm])
def test_llvm_takes_every_emission(name: str) -> None:
    target = load_target(name)
    module, _ = instructions_module(target.instructions, target)
    llvm.parse_assembly(module.text).verify()


def test_generic_has_every_primitive_for_every_dtype_it_has_a_meaning_for() -> None:
    found = set()
    for instruction in load_target("generic").instructions:
        value = instruction.program.statements[0].value
        if isinstance(value, Apply):
            found.add((value.function, instruction.operands[-1].dtype.name))
    wanted = {(p.name, d.name) for p in PRIMITIVES.values() for d in COMPUTED if _has_meaning(p.name, p.result, d)}
    assert wanted - found == set()


def test_generic_casts_every_pair_of_dtypes() -> None:
    casts: set[tuple[DType, DType]] = set()
    bitcasts: set[tuple[DType, DType]] = set()
    for instruction in load_target("generic").instructions:
        value = instruction.program.statements[0].value
        if isinstance(value, Cast | Bitcast):
            pair = (instruction.operand("x").dtype, instruction.operand("y").dtype)
            (casts if isinstance(value, Cast) else bitcasts).add(pair)
    assert casts == {(a, b) for a in STORED for b in STORED if a != b}
    numbers = [d for d in STORED if d.kind is not Kind.BOOL]
    assert bitcasts == {(a, b) for a in numbers for b in numbers if a != b and a.bits == b.bits}


def test_scalar_code_does_what_it_says() -> None:
    target = load_target("generic")
    faults = {c.instruction.name: c.fault for c in check_instructions(target.instructions, target, load) if c.fault}
    assert faults == {}


def test_vector_code_does_what_it_says() -> None:
    target = load_target("x86-64-v3")
    if missing_features(target):
        pytest.skip("this machine has no AVX2")
    widest = [i for i in target.instructions if sum(o.dtype.bytes for o in i.operands[:1]) * i.lanes == 32]
    assert len(widest) > 300
    assert {c.instruction.name: c.fault for c in check_instructions(widest, target, load) if c.fault} == {}


def _erf(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.asarray(np.vectorize(math.erf, otypes=[np.float64])(x))


def _sigmoid(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e))


@pytest.mark.parametrize(
    ("name", "meaning", "step"),
    [
        ("exp", np.exp, 10007), ("log", np.log, 10007), ("tanh", np.tanh, 10007), ("sigmoid", _sigmoid, 10007),
        ("erf", _erf, 100003), ("rsqrt", lambda x: 1 / np.sqrt(x), 10007),
    ],
)  # fmt: skip
def test_an_elementary_function_stays_within_its_stated_error(
    name: str, meaning: Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]], step: int
) -> None:
    target = load_target("host")
    lanes = max(target.vector_bytes, default=4) // 4
    instruction = target.instruction(f"{name}.f32x{lanes}")
    rng = np.random.default_rng(7)
    everywhere = np.arange(0, 2**32, step, dtype=np.uint64).astype(np.uint32).view(np.float32)
    x = np.concatenate([everywhere, rng.uniform(-12, 12, 100_000).astype(np.float32)])
    x = x[: x.size // lanes * lanes].copy()
    with np.errstate(all="ignore"):
        want = meaning(x.astype(np.float64))
        found = _run(instruction.name, lanes, x)
        rounded = want.astype(np.float32)
        unit = np.spacing(np.abs(np.where(np.isfinite(rounded), rounded, 1)).astype(np.float32)).astype(np.float64)
        error = np.abs(found.astype(np.float64) - want) / unit
    same = (found == rounded) | (np.isnan(found) & np.isnan(rounded))
    error[same] = 0
    worst = int(np.argmax(np.where(np.isnan(error), np.inf, error)))
    assert error[worst] <= instruction.ulps, f"{name}({x[worst]}) = {found[worst]}, not {want[worst]}"


def _run(name: str, lanes: int, x: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """The instruction applied to ``x``, a vector at a time."""
    target = load_target("host")
    instruction = target.instruction(name)
    vector = f"<{lanes} x float>" if lanes > 1 else "float"
    text = (
        "\n".join(instruction.declares)
        + f"""
define internal {vector} @f({vector} %x) alwaysinline {{
{instruction.emit}
}}
define void @all(ptr %x, ptr %y, i64 %n) {{
start: br label %next
next:
  %k = phi i64 [0, %start], [%k1, %next]
  %p = getelementptr float, ptr %x, i64 %k
  %q = getelementptr float, ptr %y, i64 %k
  %v = load {vector}, ptr %p, align 4
  %r = call {vector} @f({vector} %v)
  store {vector} %r, ptr %q, align 4
  %k1 = add i64 %k, {lanes}
  %more = icmp ult i64 %k1, %n
  br i1 %more, label %next, label %end
end: ret void
}}"""
    )
    module, _ = instructions_module((), target)
    code = load(emit_object(replace(module, text=text), target))
    y = np.empty_like(x)
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    kind(code.address("all"))(x.ctypes.data, y.ctypes.data, x.size)
    return y


def _has_meaning(function: str, result: str, dtype: DType) -> bool:
    if function == "isnan":
        return dtype.is_float
    if dtype.kind is Kind.BOOL and function in NOT_OF_BOOL:
        return False
    return dtype.is_float if result == "float" else not dtype.is_float if result == "integer" else True
