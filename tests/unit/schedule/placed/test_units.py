"""Work spread over units with memories of their own, and products with fewer loops than an instruction."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dovetail
from dovetail.ir.evaluate import evaluate
from dovetail.ir.fill import fill
from dovetail.ir.nest import Parallel, Place, calls, walk
from dovetail.simulated.kernel import SimulatedKernel

FOUR_CORES = Path(__file__).parents[3] / "targets" / "four-cores.toml"


def compiled(text: str, target: str | Path) -> SimulatedKernel:
    """Compiled, and run once on whole numbers against the reference."""
    program = dovetail.program(text)
    kernel = dovetail.compile(program, target=target)
    assert isinstance(kernel, SimulatedKernel)
    arrays = fill(program, 0, {})
    found = kernel(*(arrays[t.name] for t in program.inputs))
    np.testing.assert_array_equal(found, evaluate(program, arrays, {})[program.outputs[0].name])
    return kernel


def product(m: int, n: int, k: int) -> str:
    return (
        f"in a: i32[{m},{k}] in b: i32[{k},{n}] out c: i32[{m},{n}] for i<{m}, j<{n}, k<{k}: c[i,j] += a[i,k] * b[k,j]"
    )


@pytest.mark.parametrize(("m", "n", "k"), [(64, 32, 16), (100, 40, 30), (7, 9, 5)])
def test_a_product_is_spread_over_cores_and_exact(m: int, n: int, k: int) -> None:
    nest = compiled(product(m, n, k), FOUR_CORES).last.nest
    assert any(isinstance(node, Parallel) and node.unit == "core" for node in walk(nest.body))


def test_what_all_cores_need_is_sent_to_all_of_them_at_once() -> None:
    """One operand belongs to the tiles that are spread over the cores, all of them need the other."""
    kernel = compiled(product(128, 32, 16), FOUR_CORES)
    made = list(calls(kernel.last.nest.body))
    sent = {
        o.buffer for call in made if call.instruction == "get_all" for o in call.operands[1:] if isinstance(o, Place)
    }
    fetched = {
        o.buffer for call in made if call.instruction == "get" for o in call.operands[1:] if isinstance(o, Place)
    }
    assert len(sent - {"zero_i32"}) == 1
    assert sent - {"zero_i32"} | fetched - {"zero_i32"} == {"a", "b"}
    assert not sent & fetched & {"a", "b"}


def test_four_cores_are_faster_than_what_one_of_them_would_need() -> None:
    kernel = compiled(product(256, 64, 64), FOUR_CORES)
    assert kernel.cycles < kernel.timing.instruction("multiply").busy_cycles


VECTOR = "in a: {d}[200,70] in x: {d}[70] out y: {s}[200] for i<200, k<70: y[i] += {s}(a[i,k]) * {s}(x[k])"
DOT = "in a: {d}[70] in x: {d}[70] out y: {s}[1] for i<1, k<70: y[i] += {s}(a[k]) * {s}(x[k])"
OUTER = "in a: {d}[20] in x: {d}[30] out y: {s}[20,30] for i<20, j<30: y[i,j] += {s}(a[i]) * {s}(x[j])"


@pytest.mark.parametrize("text", [VECTOR, DOT, OUTER], ids=["matrix-vector", "dot", "outer"])
@pytest.mark.parametrize(("target", "d", "s"), [("sw26010", "f64", "f64"), ("systolic16", "i8", "i32")])
def test_products_of_vectors_run_on_the_matrix_instruction(text: str, target: str, d: str, s: str) -> None:
    assert not compiled(text.format(d=d, s=s), target).on_host
