"""Hand-written nests, run natively (one and two units) and by the interpreter, exactly against NumPy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dovetail.base.errors import CodegenError, IndexRangeError
from dovetail.codegen.lower import lower
from dovetail.ir.index import Access, Condition, Index, affine, constant, variable
from dovetail.ir.nest import Barrier, Buffer, Call, Nest, Node, Parallel, Start, Value, Wait, When
from dovetail.ir.nest_evaluate import evaluate_nest
from dovetail.ir.parse import parse
from dovetail.runtime.jit import compile_ir, load_object
from dovetail.targets.model import Instruction, Llvm, Operand, State
from tests.unit.codegen.nests import (
    Native,
    allocate,
    avx2,
    buffer,
    call,
    cell,
    check,
    integers,
    loop,
    matmul,
    number,
    packed_matmul,
    place,
    registers,
)

i, j = variable("i"), variable("j")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def test_a_register_tile_multiplies_matrices(rng: np.random.Generator) -> None:
    arrays = packed_matmul(rng, 24, 32, 17, 6, 16)
    want = arrays.pop("want")
    check(matmul(24, 32, 17, 6, 2, 8), avx2(), arrays, {"c": want})


def test_a_masked_tail_touches_nothing_beyond_the_end(rng: np.random.Generator) -> None:
    """y[i] = 2 * x[i] for i < n, eight at a time; n at run time, in an array that is longer."""
    n = variable("n")
    body = loop(
        "i",
        0,
        n,
        call("load_masked.f32x8", cell("r"), place("x", i), n=(constant(8), n - i)),
        call("add.f32x8", cell("r"), cell("r"), cell("r")),
        call("store_masked.f32x8", place("y", i), cell("r"), n=(constant(8), n - i)),
        step=8,
    )
    nest = Nest(
        (buffer("x", "f32", "n"), buffer("y", "f32", 40)),
        ("n",),
        (allocate((registers("r", "f32", 8),), body),),
        ("y",),
    )
    for count in (0, 1, 7, 8, 9, 29):
        x, y = integers(rng, count), integers(rng, 40)
        want = y.copy()
        want[:count] = np.add(x, x)
        check(nest, avx2(), {"x": x, "y": y}, {"y": want}, n=count)


def test_units_pack_into_a_shared_buffer_meet_and_read_what_others_wrote(rng: np.random.Generator) -> None:
    """t = transpose(x) by all units, then y[i] = sum over j of t[j', i] read across all rows."""
    m, n = 12, 10
    r = registers("r", "i32", 1)
    load = call("load.i32x1", cell("r"), place("x", j, i))
    pack = Parallel("core", "i", (constant(n),), (allocate((r,), loop("j", 0, m, load, _store("t", i, j))),))
    zero, add = call("move.i32x1", cell("s"), number(0, "i32")), call("add.i32x1", cell("s"), cell("s"), cell("r"))
    read = call("load.i32x1", cell("r"), place("t", j, i))
    total = allocate((r, registers("s", "i32", 1)), zero, loop("j", 0, n, read, add), _store("y", i, register="s"))
    both = (pack, Barrier("core"), Parallel("core", "i", (constant(m),), (total,)))
    nest = Nest(
        (buffer("x", "i32", m, n), buffer("y", "i32", m)), (), (allocate((buffer("t", "i32", n, m),), *both),), ("y",)
    )
    x = integers(rng, m, n, kind="i32")
    check(nest, avx2(), {"x": x, "y": np.zeros(m, np.int32)}, {"y": x.sum(1, dtype=np.int32)})


def test_units_have_private_buffers_of_their_own(rng: np.random.Generator) -> None:
    """Each iteration stages a row of run-time length in a private buffer, backwards."""
    n = variable("n")
    stage = loop("j", 0, n, call("load.i32x1", cell("r"), place("x", i, j)), _store("t", n - 1 - j))
    drain = loop("j", 0, n, call("load.i32x1", cell("r"), place("t", j)), _store("y", i, j))
    rows = Parallel(
        "core", "i", (constant(9),), (allocate((buffer("t", "i32", "n"), registers("r", "i32", 1)), stage, drain),)
    )
    nest = Nest((buffer("x", "i32", 9, "n"), buffer("y", "i32", 9, "n")), ("n",), (rows,), ("y",))
    for count in (1, 5, 33):
        x = integers(rng, 9, count, kind="i32")
        check(nest, avx2(), {"x": x, "y": np.zeros_like(x)}, {"y": x[:, ::-1]}, n=count)


def test_a_condition_chooses_between_two_bodies() -> None:
    """y[i] = i where 3 <= i < 7, else -1."""
    inside = When(
        (Condition(i - 3), Condition(-i + 6)),
        (call("cast_trunc.i64.i32x1", cell("r"), Value(i)),),
        (call("move.i32x1", cell("r"), number(-1, "i32")),),
    )
    nest = Nest(
        (buffer("y", "i32", 10),),
        (),
        (allocate((registers("r", "i32", 1),), loop("i", 0, 10, inside, _store("y", i))),),
        ("y",),
    )
    want = np.array([k if 3 <= k < 7 else -1 for k in range(10)], np.int32)
    check(nest, avx2(), {"y": np.zeros(10, np.int32)}, {"y": want})


def test_an_indirect_read_gathers_rows(rng: np.random.Generator) -> None:
    """y[i, 0:8] = x[table[i], 0:8]."""
    row = affine(((Access("table", (i,)), 1),))
    load = call("load.f32x8", cell("r"), place("x", row, 0))
    body = Parallel("core", "i", (constant(6),), (load, call("store.f32x8", place("y", i, 0), cell("r"))))
    arguments = (buffer("x", "f32", 5, 8), buffer("table", "i32", 6), buffer("y", "f32", 6, 8))
    nest = Nest(arguments, (), (allocate((registers("r", "f32", 8),), body),), ("y",))
    x, table = integers(rng, 5, 8), np.array([4, 0, 2, 2, 1, 3], np.int32)
    arrays = {"x": x, "table": table, "y": np.zeros((6, 8), np.float32)}
    check(nest, avx2(), arrays, {"y": x[table]})
    for bad in (-1, 5, 1 << 30):
        arrays["table"] = np.array([4, 0, bad, 2, 1, 3], np.int32)
        code, value = Native(nest, avx2()).run(arrays).status
        assert (code - 1 >> 8, code - 1 & 255, value) == (0, 0, bad)
        with pytest.raises(IndexRangeError, match=f"index {bad} outside dimension 0"):
            evaluate_nest(nest, avx2().by_name, arrays, {})


def test_a_vector_may_not_reach_beyond_an_indirect_start() -> None:
    """x[table[0] + l] for eight lanes: the last lane counts, not the first."""
    start = affine(((Access("table", (constant(0),)), 1),))
    load = call("load.f32x8", cell("r"), place("x", start))
    body = allocate((registers("r", "f32", 8),), load, call("store.f32x8", place("y", 0), cell("r")))
    arguments = (buffer("x", "f32", 10), buffer("table", "i64", 1), buffer("y", "f32", 8))
    native = Native(Nest(arguments, (), (body,), ("y",)), avx2())
    arrays = {"x": np.arange(10, dtype=np.float32), "y": np.zeros(8, np.float32)}
    assert native.run({**arrays, "table": np.array([2])}).status == (0, 0)
    assert native.run({**arrays, "table": np.array([3])}).status == (1, 3)


def test_a_condition_that_reads_an_index_is_tested_where_the_others_hold() -> None:
    """y[i] = 1 where i < 3 and table[i] >= 2; the table ends at 3."""
    entry = affine(((Access("table", (i,)), 1),))
    chosen = When((Condition(entry - 2), Condition(-i + 2)), (_store("y", i),))
    one = call("move.i32x1", cell("r"), number(1, "i32"))
    arguments = (buffer("table", "i32", 3), buffer("y", "i32", 9))
    nest = Nest(arguments, (), (allocate((registers("r", "i32", 1),), one, loop("i", 0, 9, chosen)),), ("y",))
    arrays = {"table": np.array([2, 1, 7], np.int32), "y": np.zeros(9, np.int32)}
    check(nest, avx2(), arrays, {"y": np.array([1, 0, 1, 0, 0, 0, 0, 0, 0], np.int32)})


def test_an_index_computed_from_data_may_wrap_but_never_escapes() -> None:
    """x[4 * table[0] + 1] with a table entry near the end of i64."""
    start = affine(((Access("table", (constant(0),)), 4),), 1)
    body = allocate((registers("r", "i32", 1),), call("load.i32x1", cell("r"), place("x", start)), _store("y", 0))
    arguments = (buffer("x", "i32", 6), buffer("table", "i64", 1), buffer("y", "i32", 1))
    native = Native(Nest(arguments, (), (body,), ("y",)), avx2())
    arrays = {"x": np.arange(6, dtype=np.int32), "y": np.zeros(1, np.int32)}
    assert native.run({**arrays, "table": np.array([1])}).arrays["y"].tolist() == [5]
    assert native.run({**arrays, "table": np.array([2**61 - 1])}).status == (1, 2**63 - 3)


@pytest.mark.parametrize("divisor", [4, 3])
def test_quotients_and_remainders_round_down_for_negative_indices(divisor: int) -> None:
    """q[i + 5] = i // d and r[i + 5] = i % d from -5 on."""
    quotient = call("cast_trunc.i64.i32x1", cell("r"), Value(i // divisor))
    remainder = call("cast_trunc.i64.i32x1", cell("r"), Value(i % divisor))
    body = loop("i", -5, 6, quotient, _store("q", i + 5), remainder, _store("m", i + 5))
    nest = Nest(
        (buffer("q", "i32", 11), buffer("m", "i32", 11)), (), (allocate((registers("r", "i32", 1),), body),), ("q", "m")
    )
    numbers = np.arange(-5, 6, dtype=np.int32)
    zero = np.zeros(11, np.int32)
    check(nest, avx2(), {"q": zero, "m": zero}, {"q": numbers // divisor, "m": numbers % divisor})


def test_the_same_quotients_of_indices_that_are_never_negative() -> None:
    body = loop("i", 0, 11, call("cast_trunc.i64.i32x1", cell("r"), Value(i // 3 + (i % 3) * 10)), _store("q", i))
    nest = Nest((buffer("q", "i32", 11),), (), (allocate((registers("r", "i32", 1),), body),), ("q",))
    assert "udiv" in lower(nest, avx2()).text
    numbers = np.arange(11, dtype=np.int32)
    check(nest, avx2(), {"q": np.zeros(11, np.int32)}, {"q": numbers // 3 + numbers % 3 * 10})


def test_a_downward_loop_visits_the_same_iterations_last_first() -> None:
    """The last write wins: y[0] is the first value of the loop."""
    for low, high, step in ((0, 10, 3), (2, 3, 1), (0, 0, 2), (4, 12, 4)):
        n = variable("n")
        value = call("cast_trunc.i64.i32x1", cell("r"), Value(i))
        body = loop("i", low, n, value, _store("y", 0), _store("seen", i), step=step, downward=True)
        arguments = (buffer("y", "i32", 1), buffer("seen", "i32", 12))
        nest = Nest(arguments, ("n",), (allocate((registers("r", "i32", 1),), body),), ("y", "seen"))
        seen = np.full(12, -1, np.int32)
        want = seen.copy()
        want[low:high:step] = np.arange(low, high, step)
        last = np.array([low if high > low else -1], np.int32)
        arrays = {"y": np.array([-1], np.int32), "seen": seen}
        check(nest, avx2(), arrays, {"y": last, "seen": want}, n=high)


def test_bounds_may_be_the_largest_and_smallest_of_several_indices() -> None:
    """Tiles of 4 over max(2, i) .. min(i + 4, n)."""
    n = variable("n")
    value = call("cast_trunc.i64.i32x1", cell("r"), Value(i))
    inner = loop("j", (constant(2), i), (i + 4, n), value, _store("y", j))
    body = loop("i", 0, n, inner, step=4)
    nest = Nest((buffer("y", "i32", 20),), ("n",), (allocate((registers("r", "i32", 1),), body),), ("y",))
    for count in (0, 2, 3, 8, 19):
        want = np.array([k // 4 * 4 if 2 <= k < count else -1 for k in range(20)], np.int32)
        check(nest, avx2(), {"y": np.full(20, -1, np.int32)}, {"y": want}, n=count)


def test_named_strides_and_run_time_shapes_meet(rng: np.random.Generator) -> None:
    """y[j, 0:8] = x[0:8, j] of an x[8, n]: a column, its stride given at run time."""
    n = variable("n")
    load = call("load_strided.f32x8", cell("r"), place("x", 0, j), S=n)
    body = loop("j", 0, n, load, call("store.f32x8", place("y", j, 0), cell("r")))
    nest = Nest(
        (buffer("x", "f32", 8, "n"), buffer("y", "f32", "n", 8)),
        ("n",),
        (allocate((registers("r", "f32", 8),), body),),
        ("y",),
    )
    for count in (1, 6):
        x = integers(rng, 8, count)
        check(nest, avx2(), {"x": x, "y": np.zeros((count, 8), np.float32)}, {"y": x.T}, n=count)


def test_several_run_time_extents_multiply(rng: np.random.Generator) -> None:
    """y[i, j, k] = x[k, i, j] with all three extents at run time; and buffers with strides of their own."""
    k = variable("k")
    load, store = call("load.i32x1", cell("r"), place("x", k, i, j)), _store("y", i, j, k)
    body = loop("i", 0, "a", loop("j", 0, "b", loop("k", 0, "c", load, store)))
    arguments = (buffer("x", "i32", "c", "a", "b"), buffer("y", "i32", "a", "b", "c"))
    nest = Nest(arguments, ("a", "b", "c"), (allocate((registers("r", "i32", 1),), body),), ("y",))
    x = integers(rng, 4, 2, 3, kind="i32")
    want = {"y": x.transpose(1, 2, 0)}
    check(nest, avx2(), {"x": x, "y": np.zeros((2, 3, 4), np.int32)}, want, a=2, b=3, c=4)


def test_a_buffer_may_state_its_strides(rng: np.random.Generator) -> None:
    """x is staged column by column, five apart."""
    staged = Buffer(
        "t", "memory", buffer("t", "i32").dtype, (constant(3), constant(4)), strides=(constant(1), constant(5))
    )
    load, back = call("load.i32x1", cell("r"), place("x", i, j)), call("load.i32x1", cell("r"), place("t", i, j))
    fill = loop("i", 0, 3, loop("j", 0, 4, load, _store("t", i, j)))
    drain = loop("i", 0, 3, loop("j", 0, 4, back, _store("y", i, j)))
    arguments = (buffer("x", "i32", 3, 4), buffer("y", "i32", 3, 4))
    nest = Nest(
        arguments,
        (),
        (Parallel("core", "p", (constant(1),), (allocate((staged, registers("r", "i32", 1)), fill, drain),)),),
        ("y",),
    )
    x = integers(rng, 3, 4, kind="i32")
    assert lower(nest, avx2()).private.bytes({}) == 128  # 1 + 2 * 1 + 3 * 5 elements, in cache lines
    check(nest, avx2(), {"x": x, "y": np.zeros_like(x)}, {"y": x})


def test_a_started_call_has_ended_after_its_wait(rng: np.random.Generator) -> None:
    load = Start("t", call("load.f32x8", cell("r"), place("x", 0)))
    store = call("store.f32x8", place("y", 0), cell("r"))
    held = (registers("r", "f32", 8),)
    arguments = (buffer("x", "f32", 8), buffer("y", "f32", 8))
    x = integers(rng, 8)
    arrays = {"x": x, "y": np.zeros(8, np.float32)}
    check(Nest(arguments, (), (allocate(held, load, Wait("t"), store),), ("y",)), avx2(), arrays, {"y": x})
    early = Nest(arguments, (), (allocate(held, load, store, Wait("t")),), ("y",))
    assert np.isnan(evaluate_nest(early, avx2().by_name, arrays, {})["y"].astype(float)).all()


def test_a_loop_around_a_barrier_carries_a_recurrence() -> None:
    """h[t + 1, i] = h[t, 7 - i] + 1: what the other unit wrote is seen after the barrier."""
    t = variable("t")
    load = call("load.i32x1", cell("r"), place("h", t, -i + 7))
    add = call("add.i32x1", cell("r"), cell("r"), number(1, "i32"))
    step = Parallel(
        "core", "i", (constant(8),), (allocate((registers("r", "i32", 1),), load, add, _store("h", t + 1, i)),)
    )
    nest = Nest(
        (buffer("h", "i32", variable("T") + 1, 8),), ("T",), (loop("t", 0, "T", step, Barrier("core")),), ("h",)
    )
    for steps in (0, 1, 50):
        h = np.zeros((steps + 1, 8), np.int32)
        h[0] = np.arange(8)
        want = h.copy()
        for k in range(steps):
            want[k + 1] = want[k, ::-1] + 1
        check(nest, avx2(), {"h": h}, {"h": want}, T=steps)


def test_conditions_known_at_compile_time_leave_no_branch() -> None:
    known = When((Condition(i), Condition(-i + 9)), (_store("y", i),), (_store("y", 0),))
    value = call("cast_trunc.i64.i32x1", cell("r"), Value(i))
    nest = Nest(
        (buffer("y", "i32", 10),), (), (allocate((registers("r", "i32", 1),), loop("i", 0, 10, value, known)),), ("y",)
    )
    assert lower(nest, avx2()).text.count("br i1") == 1  # the loop's own
    check(nest, avx2(), {"y": np.zeros(10, np.int32)}, {"y": np.arange(10, dtype=np.int32)})


def test_a_condition_on_a_tile_makes_its_masks_constant() -> None:
    """when n - i >= 8: min(8, n - i) is 8, so nothing is masked."""
    n = variable("n")
    load = call("load_masked.f32x8", cell("r"), place("x", i), n=(constant(8), n - i))
    store = call("store.f32x8", place("y", i), cell("r"))
    body = loop("i", 0, n, When((Condition(n - i - 8),), (load, store)), step=8)
    nest = Nest(
        (buffer("x", "f32", "n"), buffer("y", "f32", "n")),
        ("n",),
        (allocate((registers("r", "f32", 8),), body),),
        ("y",),
    )
    assert "i1 true, i1 true" in lower(nest, avx2()).text
    x = np.arange(21, dtype=np.float32)
    want = np.where(x < 16, x, 0).astype(np.float32)
    check(nest, avx2(), {"x": x, "y": np.zeros(21, np.float32)}, {"y": want}, n=21)


def test_a_loop_of_one_iteration_is_no_loop() -> None:
    value = call("cast_trunc.i64.i32x1", cell("r"), Value(i + j))
    body = loop("i", 3, 4, loop("j", i, i + 2, value, _store("y", j - i), step=2))
    nest = Nest((buffer("y", "i32", 2),), (), (allocate((registers("r", "i32", 1),), body),), ("y",))
    assert "phi" not in lower(nest, avx2()).text
    check(nest, avx2(), {"y": np.zeros(2, np.int32)}, {"y": np.array([6, 0], np.int32)})


def test_registers_do_not_live_across_a_barrier() -> None:
    nest = Nest((), (), (allocate((registers("r", "i32", 1),), Barrier("core")),))
    with pytest.raises(CodegenError, match="alive across a barrier"):
        lower(nest, avx2())


def test_a_buffer_whose_size_depends_on_a_loop_is_refused() -> None:
    nest = Nest((), (), (loop("i", 0, 4, allocate((buffer("t", "i32", i),))),))
    with pytest.raises(CodegenError, match="has no size"):
        lower(nest, avx2())


def test_arena_bytes_follow_run_time_sizes() -> None:
    inner = Parallel("core", "i", (constant(4),), (allocate((buffer("p", "f32", "n", 3),)),))
    nest = Nest((), ("n",), (allocate((buffer("s", "f64", "n"),), inner),))
    module = lower(nest, avx2())
    assert module.shared.bytes({"n": 9}) == 128
    assert module.private.bytes({"n": 9}) == 128
    assert module.private.bytes({"n": 1}) == 64


def test_names_of_a_model_do_not_reach_the_text() -> None:
    body = loop("evil name", 0, 3, call("load.i32x1", cell("a;b"), place('"x"', variable("evil name"))))
    nest = Nest((buffer('"x"', "i32", 3),), (), (allocate((registers("a;b", "i32", 1),), body),))
    text = lower(nest, avx2()).text
    assert "evil" not in text and "a;b" not in text and '"x"' not in text


def _store(name: str, *indices: Index | int | str, register: str = "r") -> Call:
    return call("store.i32x1", place(name, *indices), cell(register))


def test_an_experts_function_is_called_by_its_symbol(rng: np.random.Generator) -> None:
    """``call`` instead of ``emit``: C arguments in operand order, strides, parameters."""
    program = parse("size n in 1..64 in x: i32[n] inout y: i32[n] for l<n: y[l] += x[l]")
    operands = tuple(Operand(t.name, t.dtype, "memory") for t in program.tensors)
    expert = Instruction("expert", program, operands, call="expert_add")
    target = replace(avx2(), by_name={"expert": expert})
    arguments = (buffer("x", "i32", 64), buffer("y", "i32", 64))
    nest = Nest(arguments, (), (call("expert", place("x", 2), place("y", 2), n=7),), ("y",))
    x, y = integers(rng, 64, kind="i32"), integers(rng, 64, kind="i32")
    want = y.copy()
    want[2:9] = np.add(x[2:9], y[2:9])
    beside = load_object(compile_ir(_EXPERT), {})
    native = Native(nest, target, {"expert_add": beside.address("expert_add")})
    np.testing.assert_array_equal(native.run({"x": x, "y": y}).arrays["y"], want)


def test_a_single_unit_needs_no_thread_pool() -> None:
    nest = Nest((buffer("y", "i32", 1),), (), (Barrier("core"), _one_store(), Barrier("core")), ("y",))
    assert Native(nest, avx2(), {}).run({"y": np.zeros(1, np.int32)}).arrays["y"].tolist() == [5]


def test_a_state_surrounds_the_instructions_that_need_it() -> None:
    """Enter before the loop, leave after it, not around each call; nothing where no instruction asks."""
    text = "@mode = internal global i32 0"
    enter, leave = "store i32 5, ptr @mode\nret void", "store i32 9, ptr @mode\nret void"
    program = parse("out r: i32[1] for l<1: r[l] = 5")
    held = Operand("r", program.tensor("r").dtype, "registers")
    read = Instruction("read", program, (held,), emit="%x = load volatile i32, ptr @mode\nret i32 %x", state="tiles")
    machine = avx2()
    target = replace(
        machine,
        by_name={"read": read, "store.i32x1": machine.instruction("store.i32x1")},
        states=(State("tiles", enter, leave),),
        llvm=replace(machine.llvm or Llvm(), definitions=text),
    )
    body = allocate((registers("r", "i32", 1),), loop("i", 0, 3, call("read", cell("r")), _store("y", i)))
    native = Native(Nest((buffer("y", "i32", 3),), (), (body,), ("y",)), target)
    assert native.module.text.count("call void @s0_enter()") == 1
    assert native.run({"y": np.zeros(3, np.int32)}).arrays["y"].tolist() == [5, 5, 5]


_EXPERT = """
define void @expert_add(ptr %x, ptr %y, i32 %n) {
entry:
  br label %next
next:
  %i = phi i32 [ 0, %entry ], [ %j, %next ]
  %p = getelementptr i32, ptr %x, i32 %i
  %q = getelementptr i32, ptr %y, i32 %i
  %a = load i32, ptr %p
  %b = load i32, ptr %q
  %c = add i32 %a, %b
  store i32 %c, ptr %q
  %j = add i32 %i, 1
  %more = icmp slt i32 %j, %n
  br i1 %more, label %next, label %done
done:
  ret void
}
"""


def _one_store() -> Node:
    value = call("move.i32x1", cell("r"), number(5, "i32"))
    return allocate((registers("r", "i32", 1),), value, _store("y", 0))
