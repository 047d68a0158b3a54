from __future__ import annotations

import threading

import numpy as np
import pytest

from dovetail.base.errors import CallError, IndexRangeError
from dovetail.ir.graph.bound import BoundGraph
from dovetail.ir.graph.build import Builder
from dovetail.model.build import compile_graph
from dovetail.model.compiled import CompiledModel
from dovetail.ops.table import OPERATORS
from tests.unit.model.graphs import Floats, kind, mlp, same, wanted, whole_numbers


@pytest.fixture(scope="module")
def model() -> CompiledModel:
    return compile_graph(mlp(), threads=2, cache=False)


@pytest.fixture(scope="module")
def lookup() -> CompiledModel:
    b = Builder("lookup", OPERATORS)
    table, rows = b.constant("c0", kind("f32", 10, 4)), b.input("x0", kind("i64", 3))
    bound = BoundGraph(
        b.graph(b.add("relu", b.add("gather", table, rows))), {"c0": whole_numbers(1, 10, 4)}, {"c0": "words\x1b"}
    )
    return compile_graph(bound, cache=False)


def test_results_are_new_arrays_on_cache_lines(model: CompiledModel) -> None:
    x = whole_numbers(1, 6, 24)
    first, second = model(x), model(x)
    assert first[0] is not second[0]
    assert all(array.ctypes.data % 64 == 0 for array in first)


def test_results_go_where_the_caller_says(model: CompiledModel) -> None:
    x = whole_numbers(2, 6, 24)
    out = tuple(np.full([n or 0 for n in p.shape], 7, p.numpy) for p in model.outputs)
    found = model(x, out=out)
    assert all(a is b for a, b in zip(found, out, strict=True))
    assert same(found, wanted(mlp(), x))


def test_strided_and_misaligned_inputs_are_taken_as_copies(model: CompiledModel) -> None:
    x = whole_numbers(3, 6, 24)
    strided = np.asfortranarray(x)
    odd = np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(np.float32).reshape(x.shape)
    assert same(model(strided), wanted(mlp(), x))
    assert same(model(odd), wanted(mlp(), x))


def test_tensors_of_another_library_are_taken_where_they_lie(model: CompiledModel) -> None:
    class Tensor:
        def __init__(self, array: Floats) -> None:
            self.array = array

        def __dlpack__(self, **_: object) -> object:
            return self.array.__dlpack__()

        def __dlpack_device__(self) -> tuple[int, int]:
            return self.array.__dlpack_device__()

    x = whole_numbers(4, 6, 24)
    assert same(model(Tensor(x)), wanted(mlp(), x))


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ((), r"takes 1 inputs, got 0\n  its inputs: pixels\\n: f32\[6,24\]"),
        ((1, 2), "takes 1 inputs, got 2"),
        ((np.zeros((6, 24)),), r"'pixels\\n' has the wrong dtype: expected f32\[6,24\], got f64\[6,24\]"),
        ((np.zeros((6, 23), np.float32),), r"'pixels\\n' has the wrong shape: expected f32\[6,24\], got f32\[6,23\]"),
        (([1.0],), r"'pixels\\n' is a list, expected an array"),
    ],
)
def test_wrong_arguments_are_refused_by_name(model: CompiledModel, arrays: tuple[object, ...], message: str) -> None:
    with pytest.raises(CallError, match=message):
        model(*arrays)


def test_results_that_share_memory_with_an_input_are_refused(model: CompiledModel) -> None:
    x = whole_numbers(5, 6, 24)
    memory = np.zeros(2 * 6 * 24, np.float32)
    inside = memory[: 6 * 24].reshape(6, 24)
    with pytest.raises(CallError, match="shares memory"):
        model(inside, out=(memory[: 6 * 24].reshape(3, 2, 24), np.zeros((6, 24), np.float32)))
    with pytest.raises(CallError, match="out has 1 arrays"):
        model(x, out=(inside,))


def test_an_index_out_of_range_names_the_models_value_and_the_next_call_is_sound(lookup: CompiledModel) -> None:
    with pytest.raises(IndexRangeError, match=r"an index into 'words\\x1b' is out of range: 10 in dimension 0"):
        lookup(np.array([0, 10, 3]))
    assert lookup(np.array([0, 9, 3]))[0].shape == (3, 4)


def test_several_threads_may_call_at_once(model: CompiledModel) -> None:
    arrays = [whole_numbers(seed, 6, 24) for seed in range(4)]
    expected = [wanted(mlp(), x) for x in arrays]
    wrong = []

    def call(number: int) -> None:
        for _ in range(200):
            if not same(model(arrays[number]), expected[number]):
                wrong.append(number)

    callers = [threading.Thread(target=call, args=(number,)) for number in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong


def test_a_profile_has_a_row_for_each_step(model: CompiledModel) -> None:
    rows = model.profile(whole_numbers(6, 6, 24))
    assert [timing.row.title for timing in rows] == [r.title for r in model.report.rows if r.kind == "compiled"]
    assert all(timing.seconds > 0 for timing in rows)
