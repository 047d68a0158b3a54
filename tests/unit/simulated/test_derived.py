"""Definitions on machines: derived instructions are those that run, and results are those of the reference."""

import numpy as np
import pytest

import dovetail
from dovetail.base.dtypes import DTYPES
from dovetail.frontends import functional as fn
from dovetail.frontends.functional import Value, f16, f32
from dovetail.ir.fill import fill
from dovetail.ir.functional.evaluate import evaluate
from dovetail.ir.functional.term import Definition
from dovetail.runtime.kernel import Kernel
from dovetail.simulated.derived import DerivedKernel, derived_kernel
from dovetail.simulated.kernel import SimulatedKernel
from dovetail.targets.load import load_target
from tests.unit.rewrite import layers
from tests.unit.rewrite.layers import BYTES, DOUBLES, HALVES, SINGLES, Kinds

MACHINES = {"npu-mv": HALVES, "sw26010": DOUBLES, "systolic16": BYTES, "host": SINGLES}
PRODUCTS = {"npu-mv": {"MVMul64", "MVMul128", "MMMul"}, "sw26010": {"gemm"}, "systolic16": {"matmul16"}}


def small(name: str, kinds: Kinds) -> Definition:
    if name == "convolution":
        return layers.convolution(kinds, channels=8, filters=16, image=4)
    if name == "mlp":
        return layers.mlp(kinds, batch=4, inputs=32, hidden=64, outputs=16)
    return layers.fully_connected(kinds, outputs=128, inputs=64)


def derived(definition: Definition, machine: str) -> DerivedKernel:
    kernel = dovetail.compile(definition, machine)
    assert isinstance(kernel, DerivedKernel)
    return kernel


def difference(definition: Definition, kernel: Kernel | SimulatedKernel) -> float:
    """The largest difference between kernel and reference, on small whole numbers."""
    data = fill(kernel.program, 1)
    found = np.asarray(kernel(*(data[t.name] for t in kernel.program.inputs)), np.float64)
    wanted = np.asarray(next(iter(evaluate(definition, data).values())), np.float64)
    assert wanted.any()
    return float(np.abs(found - wanted).max())


@pytest.mark.parametrize("layer", ["fully_connected", "mlp", "convolution"])
@pytest.mark.parametrize("machine", MACHINES)
def test_a_layer_computes_what_the_reference_does(machine: str, layer: str) -> None:
    definition = small(layer, MACHINES[machine])
    if machine == "host":
        assert difference(definition, dovetail.compile(definition, machine)) == 0
        return
    kernel = derived(definition, machine)
    assert difference(definition, kernel) == 0
    used = {leaf.instruction.split(".")[0] for leaf in kernel.plan.leaves()}
    assert used & PRODUCTS[machine]
    assert kernel.underived == ""
    assert kernel.cycles > 0


def test_the_plan_uses_the_derived_instructions_and_no_others() -> None:
    definition = layers.fully_connected(HALVES, outputs=128, inputs=64)
    kernel = derived_kernel(definition, load_target("npu-mv"))
    assert kernel.mapped is not None
    derived = {operation.instruction for operation in kernel.mapped.operations}
    assert {leaf.instruction for leaf in kernel.plan.leaves()} == derived


def test_a_gru_cell_runs_on_the_machine_and_is_close_to_the_reference() -> None:
    definition = layers.gru(HALVES, inputs=64, units=64)
    kernel = derived(definition, "npu-mv")
    used = {leaf.instruction.split(".")[0] for leaf in kernel.plan.leaves()}
    assert used == {"MVMul64", "VVAdd64", "VVMul64", "VVTanh"}
    assert not kernel.on_host, "a sigmoid is made of tanh"
    assert difference(definition, kernel) < 4 * 2.0**-23
    same = dovetail.compile(definition, "host")
    assert difference(definition, same) < 16 * 2.0**-23


@pytest.mark.parametrize("machine", ["sw26010", "systolic16"])
def test_the_same_gru_cell_runs_on_machines_without_its_functions(machine: str) -> None:
    definition = layers.gru(MACHINES[machine], inputs=64, units=64)
    kernel = derived(definition, machine)
    used = {leaf.instruction.split(".")[0] for leaf in kernel.plan.leaves()}
    assert used & PRODUCTS[machine]
    assert {"sigmoid", "tanh"} <= {o.text.split(" = ")[1].split("(")[0] for o in kernel.on_host}
    assert difference(definition, kernel) < 4 * 2.0**-23


def test_constants_of_a_definition_are_bound() -> None:
    @fn.function(w=fn.const(f16[64, 64]), x=f16[64])
    def product(w: Value, x: Value) -> Value:
        return fn.matvec(w, x)

    weights = np.eye(64, dtype=DTYPES["f16"].numpy)
    kernel = dovetail.compile(product, "npu-mv", constants={"w": weights})
    x = np.arange(64, dtype=DTYPES["f16"].numpy)
    assert np.array_equal(kernel(x), x.astype(np.float32))


def test_run_time_sizes_are_not_derived_for_and_that_is_said() -> None:
    n = fn.size("n", 1, 64)

    @fn.function(x=f32[n])
    def f(x: Value) -> Value:
        return fn.map(fn.relu, x)

    kernel = dovetail.compile(f, "npu-mv")
    x = np.arange(-8, 8, dtype=np.float32)
    assert np.array_equal(kernel(x), np.maximum(x, 0))
    assert kernel.explain().startswith("not derived: its sizes are known only when it is called")


def test_the_explanation_shows_the_mapped_term_and_every_operation() -> None:
    kernel = dovetail.compile(layers.fully_connected(HALVES, 64, 64), "npu-mv")
    text = kernel.explain()
    assert "let v2 = MVMul64(w, x) in" in text
    assert "v1 by VVAdd64.f32" in text
    assert "for npu-mv, simulated" in text


def test_a_definition_is_verified_like_a_program() -> None:
    assert dovetail.verify(layers.fully_connected(HALVES, 64, 64), "npu-mv").is_exact
