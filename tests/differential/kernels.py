"""Kernels for tests, and the one comparison they all end in: compiled code against the evaluator, bit for bit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from dovetail.codegen.compile import emit_object
from dovetail.codegen.lower import lower
from dovetail.codegen.shares import status_bytes
from dovetail.ir.certificate import Certificate
from dovetail.ir.evaluate import evaluate
from dovetail.ir.fill import fill
from dovetail.ir.plan import Plan
from dovetail.ir.program import Program, Role
from dovetail.runtime import pool
from dovetail.runtime.jit import load_object
from dovetail.runtime.kernel import Code, Kernel
from dovetail.schedule.collapse import collapse
from dovetail.schedule.lower.build import build_nest
from dovetail.targets.load import load_target

if TYPE_CHECKING:
    from dovetail.simulated.kernel import SimulatedKernel


def uncertified(program: Program, plan: Plan, target: str, threads: int) -> Kernel:
    """``program`` lowered as ``plan`` says, with nothing checked: the test does that."""
    machine, flat = load_target(target), collapse(program)
    module = lower(build_nest(flat, plan, machine), machine)
    symbols = pool.symbols() if threads > 1 else {}
    loaded = load_object(emit_object(module, machine), symbols)
    code = Code(loaded, module.entry, module.shared.bytes, module.private.bytes, module.buffers, status_bytes)
    views = {t.name: tuple(e.const for e in t.shape) for t in flat.tensors if t.role is Role.CONST}
    return Kernel(program, plan, target, threads, code, Certificate("", "", "", ()), lambda: "", views)


def assert_exact(kernel: Kernel | SimulatedKernel, sizes: Mapping[str, int] | None = None, seed: int = 1) -> None:
    """Fail unless ``kernel`` writes what the evaluator writes, and that is not all zeros."""
    program = kernel.program
    arrays = fill(program, seed, sizes)
    found = kernel(*(arrays[t.name] for t in program.inputs), sizes=sizes)
    expected = evaluate(program, arrays, sizes)
    for tensor, array in zip(program.outputs, found if isinstance(found, tuple) else (found,), strict=True):
        message = f"{tensor.name} of sizes={sizes}\n{program}\n{kernel.plan}"
        assert array.dtype == tensor.dtype.numpy, message
        np.testing.assert_array_equal(array, expected[tensor.name], err_msg=message)
