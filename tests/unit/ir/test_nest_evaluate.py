"""The interpreter of nests: exact results, and what must not be used shows."""

from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt
import pytest

from dovetail.base.errors import CodegenError
from dovetail.ir.evaluate import evaluate
from dovetail.ir.index import constant, variable
from dovetail.ir.instruction_function import dense_strides, instruction_function
from dovetail.ir.nest import Alloc, Cell, Loop, Nest, Node, Start, Value, Wait
from dovetail.ir.nest_evaluate import evaluate_nest
from dovetail.ir.parse import parse
from tests.unit.ir.nest_machine import INSTRUCTIONS, R, call, memory, place, registers, with_r

i = variable("i")
X = np.arange(8, dtype=np.int32)
Y = np.full(8, -1, np.int32)


def run(nest: Nest) -> npt.NDArray[np.generic]:
    return evaluate_nest(nest, INSTRUCTIONS, {"x": X, "y": Y}, {})["y"]


def test_inputs_are_not_changed() -> None:
    nest = with_r(call("load", place("x", 4), R), call("store", R, place("y", 0)))
    assert run(nest).tolist() == [4, 5, 6, 7, -1, -1, -1, -1]
    assert Y.tolist() == [-1] * 8


def test_lanes_beyond_a_parameter_become_zero_and_their_memory_is_left_alone() -> None:
    nest = with_r(
        call("load", place("x", 4), R),
        call("load_n", place("x", 1), R, n=2),
        call("store", R, place("y", 0)),
        call("store_n", R, place("y", 4), n=1),
    )
    assert run(nest).tolist() == [1, 2, 0, 0, 1, -1, -1, -1]


def test_a_false_condition_leaves_its_point_out() -> None:
    nest = with_r(call("load", place("x", 4), R), call("even", R, place("y", 0)))
    assert run(nest).tolist()[:4] == [4, -1, 6, -1]


def test_contributions_to_one_element_are_added() -> None:
    nest = with_r(call("load", place("x", 4), R), call("reduce", R, place("y", 3)))
    assert run(nest).tolist()[2:5] == [-1, 22, -1]


def test_named_strides_are_in_elements() -> None:
    nest = with_r(call("column", place("x", 1), R, s=2), call("store", R, place("y", 0)))
    assert run(nest).tolist()[:4] == [1, 3, 5, 7]


def test_a_loop_variable_is_a_value() -> None:
    body = Loop("i", (constant(0),), (constant(8),), 4, (call("spread", Value(i), R), call("store", R, place("y", i))))
    assert run(with_r(body)).tolist() == list(range(8))


def test_a_matrix_tile_accumulates_in_memory() -> None:
    a, b, c = (np.arange(n, dtype=np.int32).reshape(s) for n, s in ((6, (2, 3)), (6, (3, 2)), (4, (2, 2))))
    arguments = (memory("a", 2, 3), memory("b", 3, 2), memory("c", 2, 2))
    nest = Nest(arguments, (), (call("tile", place("a", 0, 0), place("b", 0, 0), place("c", 0, 0)),), ("c",))
    found = evaluate_nest(nest, INSTRUCTIONS, {"a": a, "b": b, "c": c}, {})
    np.testing.assert_array_equal(found["c"], c + a @ b)


def test_reaching_beyond_a_buffer_is_an_error() -> None:
    for start in (-1, 5):
        with pytest.raises(CodegenError, match="touches elements"):
            run(with_r(call("load", place("x", start), R)))


def test_a_parameter_outside_its_range_is_an_error() -> None:
    with pytest.raises(CodegenError, match="n = 5"):
        run(with_r(call("load_n", place("x", 0), R, n=5)))


def test_storage_that_was_never_written_shows() -> None:
    fresh = Alloc(memory("t", 4), (call("load", place("t", 0), R), call("store", R, place("y", 0))))
    assert (run(with_r(fresh))[:4] == np.int32(2**31 - 1) // 3 * 2).all()


def test_a_started_call_takes_effect_at_its_wait() -> None:
    load, store = Start("t", call("load", place("x", 4), R)), call("store", R, place("y", 0))
    assert run(with_r(load, Wait("t"), store)).tolist()[:4] == [4, 5, 6, 7]
    assert run(with_r(load, store, Wait("t"))).tolist()[:4] != [4, 5, 6, 7]
    with pytest.raises(CodegenError, match="never waited for"):
        run(with_r(load))


def test_a_wait_is_for_all_calls_of_its_token_in_the_order_they_were_started() -> None:
    first, second = (Start("t", call("load", place("x", at), R)) for at in (4, 2))
    assert run(with_r(first, second, Wait("t"), call("store", R, place("y", 0)))).tolist()[:4] == [2, 3, 4, 5]


def test_each_cell_of_a_register_buffer_is_its_own() -> None:
    cells = [Cell("c", (k, j)) for k in range(2) for j in range(1)]
    body: list[Node] = [call("load", place("x", 4 * k), cell) for k, cell in enumerate(cells)]
    body += [call("store", cell, place("y", 4 - 4 * k)) for k, cell in enumerate(cells)]
    assert run(with_r(Alloc(registers("c", 2, 1), tuple(body)))).tolist() == [4, 5, 6, 7, 0, 1, 2, 3]


@pytest.mark.parametrize(
    "text",
    [
        "in a: i8[6] inout c: i32[2] for i<2, k<3: c[i] += a[3 * i + k] * a[k]",
        "in a: f32[6] out c: f32[3] for i<6: c[i // 2] max= a[i]",
        "in a: i32[4] out c: bool[4] for i<4: c[i] = a[i] > 0",
        "in a: f32[4] out c: i32[4] for i<4: c[i] = bitcast_i32(a[i]) & 7",
        "in a: i32[4] in b: i32[4] out c: i32[4] for i<4: c[i] = select(a[i] < b[i], a[i], b[i] + i)",
        "in a: u8[4] out c: u8[4] for i<4: c[i] = a[i] + 250",
        "in a: i16[2, 3] out c: i16[3, 2] for i<2, j<3 where i + j >= 1: c[j, i] = a[i, j]",
        "in a: i32[8] inout c: i32[1] for i<8: c[0] *= a[i]",
    ],
)
def test_a_prepared_instruction_agrees_with_the_reference_evaluator(text: str) -> None:
    program = parse(text)
    rng = np.random.default_rng(3)
    arrays = {t.name: rng.integers(0, 5, [e.const for e in t.shape]).astype(t.dtype.numpy) for t in program.tensors}
    inputs = {t.name: arrays[t.name] for t in program.inputs}
    names = [t.name for t in program.tensors]
    out = program.outputs[0].name
    held = {n: a.ravel().copy() for n, a in arrays.items()}
    cleared = held[out].size if program.inputs[-1].name != out else 0
    strides = {n: dense_strides(a.shape) for n, a in arrays.items()}
    instruction_function(program, names, strides, {}, cleared)([(held[n], 0) for n in names])
    np.testing.assert_array_equal(held[out].reshape(arrays[out].shape), evaluate(program, inputs)[out])


def test_a_second_is_enough_for_tens_of_thousands_of_calls() -> None:
    """Over 100,000 a second when the machine is idle."""
    body = Loop("i", (constant(0),), (constant(5000),), 1, (call("load", place("x", i % 4), R), call("fma", R, R, R)))
    begun = time.perf_counter()
    run(with_r(body))
    assert 10_000 / (time.perf_counter() - begun) > 25_000
