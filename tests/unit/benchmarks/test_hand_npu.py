"""The hand plans that products and recurrent cells are compared with are right."""

import numpy as np
import pytest

import dovetail
from benchmarks.accelerators.hand_npu import elementwise_nest, gru_operators, hand_gemm, matrix_nest, vector_nest
from benchmarks.accelerators.programs import F8, F16, Cell, Types, cell, gemm
from benchmarks.shapes import Gemm
from dovetail.ir.evaluate import evaluate
from dovetail.ir.fill import fill
from dovetail.sim.functional import simulate
from dovetail.targets.load import load_target


@pytest.mark.parametrize("types", [F16, F8], ids=str)
@pytest.mark.parametrize("tile", [64, 128])
def test_both_forms_of_a_product_are_exact(types: Types, tile: int) -> None:
    target = load_target("npu-mv")
    for shape, build in ((Gemm(100, 128, 192), matrix_nest), (Gemm(192, 3, 128), vector_nest)):
        program = dovetail.program(gemm(shape, types))
        arrays = fill(program, 0)
        found = simulate(build(shape, tile, types), target, arrays)
        np.testing.assert_array_equal(found.arrays["c"], evaluate(program, arrays)["c"])


@pytest.mark.parametrize(("name", "repeated"), [("add", False), ("add", True), ("mul", False), ("mul", True)])
def test_operators_on_two_matrices_are_exact(name: str, repeated: bool) -> None:
    a, b = np.arange(384, dtype=np.float32).reshape(3, 128), np.arange(384, dtype=np.float32).reshape(3, 128) + 1
    b = b[:1] if repeated else b
    found = simulate(elementwise_nest(name, 3, 128, repeated=repeated), load_target("npu-mv"), {"a": a, "b": b})
    np.testing.assert_array_equal(found.arrays["c"], a + b if name == "add" else a * b)


def test_rounding_and_tanh_are_exact() -> None:
    a, unused = np.linspace(-3, 3, 128, dtype=np.float32).reshape(2, 64), np.zeros((1, 64), np.float32)
    for name, want in (("round", a.astype(np.float16)), ("tanh", np.tanh(a.astype(np.float64)).astype(np.float32))):
        found = simulate(elementwise_nest(name, 2, 64), load_target("npu-mv"), {"a": a, "b": unused})
        np.testing.assert_array_equal(found.arrays["c"], want)


def test_a_step_has_as_many_operators_as_the_program_has_statements() -> None:
    shape = Cell("gru", 64, 2, 3)
    statements = dovetail.program(cell(shape, F16)).statements
    assert len(list(gru_operators(shape))) == sum(bool(s.seq) for s in statements) - 1


def test_the_best_tile_is_taken() -> None:
    plan = hand_gemm(Gemm(512, 512, 512), load_target("npu-mv"), F16)
    assert plan.tile > 64
