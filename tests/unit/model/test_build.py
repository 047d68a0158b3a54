from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dovetail.base.errors import GraphError, LimitError, TargetError
from dovetail.base.limits import ModelLimits
from dovetail.ir.graph.bound import BoundGraph
from dovetail.ir.graph.build import Builder
from dovetail.ir.graph.graph import Type
from dovetail.ir.graph.operator import operator
from dovetail.ir.program import Size
from dovetail.model.build import compile_graph
from dovetail.ops.table import OPERATORS
from tests.unit.model.graphs import kind, mlp, same, wanted, whole_numbers


def twice(x: Type) -> str:
    return f"out y: {x.dtype}[{', '.join(map(str, x.shape))}]"


@pytest.mark.parametrize("threads", [1, 2])
def test_a_graph_becomes_a_function_that_computes_the_same(threads: int) -> None:
    bound, x = mlp(), whole_numbers(9, 6, 24)
    model = compile_graph(bound, threads=threads, cache=False)
    assert same(model(x), wanted(bound, x))
    assert same(model(x + 1), wanted(bound, x + 1)), "nothing is left of the call before"


def test_equal_regions_are_compiled_once_and_progress_counts_programs() -> None:
    steps = []
    model = compile_graph(mlp(layers=5), cache=False, progress=lambda *step: steps.append(step))
    assert [done for done, _, _ in steps] == [1]
    assert len(model.finished.objects) == 1
    assert model.report.count("compiled") == 5
    assert model.report.count("view") == 1


def test_processes_give_the_same_code_as_this_one() -> None:
    b = Builder("many", OPERATORS)
    x = b.input("x0", kind("f32", 4, 8))
    graph = b.graph(
        *(b.add("reduce_sum", b.add("relu", x), axes=(axis,), keepdims=keep) for axis in (0, 1) for keep in (0, 1)),
        b.add("softmax", x),
    )
    bound = BoundGraph(graph, {})
    here = compile_graph(bound, cache=False, jobs=1)
    there = compile_graph(bound, cache=False, jobs=2)
    assert sorted(there.finished.objects) == sorted(here.finished.objects)
    array = whole_numbers(1, 4, 8)
    assert same(there(array), list(here(array)))


def test_an_output_may_be_an_input_a_constant_or_another_output() -> None:
    b = Builder("copies", OPERATORS)
    x, c = b.input("x0", kind("f32", 4)), b.constant("c0", kind("f32", 4))
    y = b.add("relu", x)
    bound = BoundGraph(b.graph(x, y, c, y, b.add("reshape", y, shape=(2, 2))), {"c0": whole_numbers(1, 4)})
    array = whole_numbers(3, 4)
    found = compile_graph(bound, cache=False)(array)
    assert same(found, wanted(bound, array))
    assert len({one.ctypes.data for one in found}) == 5
    found[0][:] = 9
    assert not np.array_equal(array, found[0]), "an output is never the caller's input"


def test_an_operator_on_the_host_runs_between_native_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    host = replace(operator(twice), run=lambda x: (x * 2,))
    monkeypatch.setitem(OPERATORS, "twice", host)
    b = Builder("host", OPERATORS)
    x = b.input("x0", kind("f32", 4, 4))
    y = b.add("relu", b.add("twice", b.add("relu", x)))
    bound, array = BoundGraph(b.graph(y), {}), whole_numbers(5, 4, 4)
    model = compile_graph(bound, cache=False)
    assert model.report.on_host == ("twice",)
    assert same(model(array), [np.maximum(array, 0) * 2])
    assert [timing.row.kind for timing in model.profile(array)] == ["compiled", "host", "compiled"]


def test_a_model_without_inputs_gives_its_constants() -> None:
    b = Builder("constant", OPERATORS)
    c = b.constant("c0", kind("f32", 3))
    bound = BoundGraph(b.graph(b.add("relu", c)), {"c0": whole_numbers(2, 3)})
    assert same(compile_graph(bound, cache=False)(), wanted(bound))


def test_tensors_without_elements_pass_through() -> None:
    b = Builder("empty", OPERATORS)
    x = b.input("x0", kind("f32", 0, 4))
    bound, array = BoundGraph(b.graph(b.add("relu", b.add("add", x, x))), {}), np.zeros((0, 4), np.float32)
    assert same(compile_graph(bound, cache=False)(array), [array])


def test_a_model_that_takes_too_much_memory_is_refused_by_name_before_any_is_taken() -> None:
    b = Builder("large", OPERATORS)
    x = b.input("x0", kind("f32", 1 << 20, 1))
    bound = BoundGraph(b.graph(b.add("expand", x, shape=(1 << 20, 1 << 18))), {}, {"v0": "the big one"})
    with pytest.raises(LimitError, match="'the big one' takes 1,099,511,627,776 bytes"):
        compile_graph(bound, cache=False)
    with pytest.raises(LimitError, match="constants take"):
        compile_graph(mlp(), cache=False, limits=ModelLimits(memory_bytes=100))


def test_machines_for_the_simulator_and_open_sizes_are_refused() -> None:
    with pytest.raises(TargetError, match="simulator"):
        compile_graph(mlp(), target="npu-mv", cache=False)
    bound = mlp()
    with pytest.raises(GraphError, match="run-time sizes"):
        compile_graph(BoundGraph(replace(bound.graph, sizes=(Size("N", 1, 4),)), bound.data), cache=False)


def test_a_model_is_found_again_without_passes_or_plans(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOVETAIL_CACHE", str(tmp_path))
    monkeypatch.setattr("dovetail.model.build.WORTH_SECONDS", 0.0)
    bound, x = mlp(), whole_numbers(4, 6, 24)
    expected = list(compile_graph(bound)(x))

    def never(*_: object) -> None:
        raise AssertionError("passes were run")

    monkeypatch.setattr("dovetail.model.build.optimise", never)
    assert same(compile_graph(bound)(x), expected)
    other = BoundGraph(bound.graph, {**bound.data, "c0": bound.data["c0"] + 1}, bound.names)
    with pytest.raises(AssertionError, match="passes were run"):
        compile_graph(other)
    for entry in (tmp_path / "model").glob("*.entry"):
        entry.write_bytes(entry.read_bytes()[:-1])
    with pytest.raises(AssertionError, match="passes were run"):
        compile_graph(bound)
