"""Which code a model gets in its first, second and further shapes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from dovetail.base.errors import CodegenError
from dovetail.ir.graph.bound import BoundGraph
from dovetail.ir.graph.build import Builder
from dovetail.ir.parse import parse
from dovetail.ir.program import Program
from dovetail.model import workers
from dovetail.model.build import compile_graph, show
from dovetail.model.compiled import CompiledModel
from dovetail.model.general import MOST_ALIKE, MOST_FAMILIES, Family, Shapes, flat_of
from dovetail.model.packed import Packed
from dovetail.model.parts import Part, from_bytes, part_of, settled, to_bytes
from dovetail.ops.table import OPERATORS
from dovetail.runtime.cache import Cache
from dovetail.targets.load import load_target
from dovetail.targets.model import Target
from tests.unit.model.graphs import Array, kind, same, wanted, whole_numbers

WIDTH = 12
Compile = Callable[[BoundGraph], CompiledModel]


def layers(rows: int, last: str = "abs") -> BoundGraph:
    """Two products with something between and behind them."""
    b = Builder("layers", OPERATORS)
    x = b.input("x0", kind("f32", rows, WIDTH))
    data = {f"c{n}": whole_numbers(n, WIDTH, WIDTH) for n in range(2)}
    w, v = (b.constant(name, kind("f32", WIDTH, WIDTH)) for name in data)
    hidden = b.add("relu", b.add("matmul", x, w))
    return BoundGraph(b.graph(b.add(last, b.add("matmul", hidden, v))), data, {})


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[Program]:
    """Programs that have been compiled."""
    seen: list[Program] = []

    def watched(program: Program, target: Target, threads: int, store: Cache | None) -> Part:
        seen.append(program)
        return part_of(program, target, threads, store)

    monkeypatch.setattr(workers, "part_of", watched)
    return seen


def compiler(shapes: Shapes) -> Compile:
    return lambda bound: compile_graph(bound, threads=1, cache=False, jobs=1, shapes=shapes)


def sized(model: CompiledModel) -> list[bool]:
    return [bool(row.sizes) for row in model.report.rows]


def check(model: CompiledModel, bound: BoundGraph, rows: int) -> None:
    x = whole_numbers(rows, rows, WIDTH)
    assert same(model(x), wanted(bound, x))


def test_the_first_shape_is_special_the_second_general_and_the_third_compiles_nothing(compiled: list[Program]) -> None:
    compile = compiler(Shapes())
    for rows, news, with_sizes in ((6, 2, False), (9, 2, True), (5, 0, True), (1, 0, True), (70, 0, True)):
        del compiled[:]
        bound = layers(rows)
        model = compile(bound)
        check(model, bound, rows)
        assert (len(compiled), sized(model)) == (news, [with_sizes] * 2), rows
    assert "2 with run-time sizes" in str(model.report)
    assert "(run-time sizes 70)" in str(model.report)


def test_who_wants_code_for_each_shape_gets_it(compiled: list[Program]) -> None:
    compile = compiler(Shapes(dynamic=False))
    for rows in (6, 9, 5):
        assert not any(sized(compile(layers(rows))))
    assert len(compiled) == 6
    assert not any(program.sizes for program in compiled)


def test_a_graph_in_another_shape_makes_the_first_code_general(compiled: list[Program]) -> None:
    shapes = Shapes(dynamic=True)
    show(layers(8), shapes)
    for rows in (6, 11):
        bound = layers(rows)
        model = compiler(shapes)(bound)
        check(model, bound, rows)
        assert all(sized(model))
    assert len(compiled) == 2


def test_a_graph_of_other_operators_is_another_graph(compiled: list[Program]) -> None:
    compile = compiler(Shapes())
    compile(layers(6))
    assert not any(sized(compile(layers(9, last="neg"))))


def test_what_cannot_be_compiled_in_general_gets_code_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def refusing(program: Program, target: Target, threads: int, store: Cache | None) -> Part:
        if program.sizes:
            raise CodegenError("not in general")
        return part_of(program, target, threads, store)

    monkeypatch.setattr(workers, "part_of", refusing)
    compile = compiler(Shapes())
    for rows in (6, 9, 5):
        bound = layers(rows)
        model = compile(bound)
        check(model, bound, rows)
        assert not any(sized(model))


def test_packed_constants_are_in_memory_once(compiled: list[Program]) -> None:
    compile = compiler(Shapes(dynamic=True))
    first = layers(40)
    fixed = {name: _frozen(array) for name, array in first.data.items()}
    models = [compile(BoundGraph(layers(rows).graph, fixed, {})) for rows in (40, 50, 60)]
    arrays = [model.finished.constants for model in models[1:]]
    assert [id(array) for array in arrays[0]] == [id(array) for array in arrays[1]]


def test_an_array_that_can_be_written_is_looked_at_again() -> None:
    packed, array = Packed(), np.zeros(4, np.float32)
    before = packed.digest(array)
    array[2] = 1
    assert packed.digest(array) != before
    view = array[:]
    view.flags.writeable = False
    before = packed.digest(view)
    array[2] = 2
    assert packed.digest(view) != before, "what it is a view of was written"


def test_what_is_remembered_is_bounded() -> None:
    family = Family(None)
    programs = [parse(f"in x: f32[{n}] out y: f32[{n}] for i<{n}: y[i] = x[i]") for n in range(2, 40)]
    family.look(programs)
    assert sum(map(len, family._seen.values())) == MOST_ALIKE
    shapes = Shapes()
    for count in range(MOST_FAMILIES + 5):
        shapes.family(layers(4, last="relu" if count % 2 else "neg").graph)
    assert len(shapes._families) <= MOST_FAMILIES


def test_a_batch_of_one_is_of_the_same_form_as_a_larger_one() -> None:
    text = """
    in q: f32[{0}, 4, 2, 8]  in k: f32[{0}, 4, 2, 8]  out p: f32[{0}, 2, 4, 4]
    for b<{0}, h<2, i<4, j<4, l<8: p[b, h, i, j] += q[b, i, h, l] * k[b, j, h, l]
    """
    one, two = (flat_of(parse(text.format(n))) for n in (1, 2))
    assert one.form.text == two.form.text


def test_a_part_with_sizes_is_kept_whole_and_settles_its_memory() -> None:
    program = parse("""
    size n in 1..64
    in a: f32[n, 8]  temp t: f32[n]  out b: f32[n, 8]
    for i<n, j<8: t[i] += a[i, j]
    for i<n, j<8: b[i, j] = t[i] * a[i, 7 - j]
    """)
    part = part_of(program, load_target("host"), 1, None)
    assert part.sizes == ("n",)
    assert from_bytes(to_bytes(part)) == part
    assert settled(part, {"n": 40}).values == (40,)
    small, large = (settled(part, {"n": n}).shared_bytes + settled(part, {"n": n}).private_bytes for n in (1, 64))
    assert small <= large


def _frozen(array: Array) -> Array:
    array = array.copy()
    array.flags.writeable = False
    return array
