"""The functional simulator: results to the bit, and every rule of a machine enforced."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import pytest

from dovetail.base.errors import CallError, DovetailError, SimulationError
from dovetail.ir.index import variable
from dovetail.ir.nest import Alloc, Loop, Nest, Node, Parallel, Start, Wait
from dovetail.sim.functional import simulate
from tests.unit.sim.machines import (
    Array,
    K,
    alloc,
    buffer,
    call,
    fill,
    integers,
    loop,
    machine,
    now,
    parallel,
    place,
    product,
    product_arguments,
)

S, W = buffer("s", "scratchpad", "i8", 4, 4), buffer("w", "scratchpad", "i8", 4, 4)
ACC = buffer("acc", "sums", "i32", 4, 4)
HERE, OTHER, SUM = place("s", 0, 0), place("w", 0, 0), place("acc", 0, 0)
MULTIPLY = call("multiply", SUM, HERE, OTHER)
DRAIN = call("drain", place("y", 0, 0), SUM, ld=4)


def operands(m: int, n: int, k: int) -> dict[str, Array]:
    rng = np.random.default_rng(m + n + k)
    return {"a": integers(rng, m, k), "b": integers(rng, k, n)}


def expected(arrays: Mapping[str, Array]) -> Array:
    return np.asarray(arrays["a"], np.int32) @ np.asarray(arrays["b"], np.int32)


def small(*body: Node) -> Nest:
    """4x4x4, with all buffers there."""
    return Nest(product_arguments(4, 4, 4), (), (alloc((S, W, ACC), *body),), ("y",))


def refused(nest: Nest, *words: str, target: str = "tile4") -> None:
    """The nest ends in a SimulationError that has all of ``words`` in it."""
    with pytest.raises(SimulationError) as caught:
        simulate(nest, machine(target), operands(4, 4, 4))
    for word in words:
        assert re.search(word, str(caught.value)), f"{word} in {caught.value}"


FILLED = (*now("t0", fill(HERE, place("a", 0, 0), 4)), *now("t1", fill(OTHER, place("b", 0, 0), 4)))


@pytest.mark.parametrize(("m", "n", "k"), [(4, 4, 4), (8, 12, 16), (20, 4, 8)])
def test_a_product_in_tiles_is_exact(m: int, n: int, k: int) -> None:
    arrays = operands(m, n, k)
    found = simulate(product(m, n, k), machine(), arrays)
    np.testing.assert_array_equal(found.arrays["y"], expected(arrays))
    assert found.peak_bytes["scratchpad"] == 32
    assert found.peak_bytes["sums"] == 64


@pytest.mark.parametrize("m", [8, 16, 28])
def test_rows_over_four_cores_with_memories_of_their_own_are_exact(m: int) -> None:
    arrays = operands(m, 8, 8)
    found = simulate(product(m, 8, 8, spread=True), machine("quad"), arrays)
    np.testing.assert_array_equal(found.arrays["y"], expected(arrays))
    assert found.peak_bytes["scratchpad"] == 32


def test_a_layout_moves_elements_and_the_instruction_that_has_it_finds_them() -> None:
    arrays = operands(8, 8, 8)
    found = simulate(product(8, 8, 8, multiply="multiply_columns", b="fill_columns"), machine(), arrays)
    np.testing.assert_array_equal(found.arrays["y"], expected(arrays))


def test_a_layout_that_the_reader_does_not_have_shows() -> None:
    arrays = operands(8, 8, 8)
    found = simulate(product(8, 8, 8, b="fill_columns"), machine(), arrays)
    assert not np.array_equal(found.arrays["y"], expected(arrays))


def test_what_all_cores_hold_is_filled_outside_of_the_parallel() -> None:
    v = variable("v")
    second = call("fill_all", OTHER, place("b", 0, 0), ld=4)
    each = (*now("t0", fill(HERE, place("a", v * 4, 0), 4)), call("clear", SUM), MULTIPLY)
    drained = now("t2", call("drain", place("y", v * 4, 0), SUM, ld=4))
    body = alloc((S, W, ACC), *now("t1", second), parallel("v", 4, *each, *drained))
    arrays = operands(16, 4, 4)
    found = simulate(Nest(product_arguments(16, 4, 4), (), (body,), ("y",)), machine("quad"), arrays)
    np.testing.assert_array_equal(found.arrays["y"], expected(arrays))


def test_each_core_keeps_what_it_wrote_between_two_parallels() -> None:
    v, w = variable("v"), variable("w")
    first = parallel("v", 4, *now("t0", fill(HERE, place("a", v * 4, 0), 4)))
    second = (call("clear", SUM), MULTIPLY, *now("t2", call("drain", place("y", w * 4, 0), SUM, ld=4)))
    weights = now("t1", call("fill_all", OTHER, place("b", 0, 0), ld=4))
    body = alloc((S, W, ACC), first, *weights, parallel("w", 4, *second))
    arrays = operands(16, 4, 4)
    found = simulate(Nest(product_arguments(16, 4, 4), (), (body,), ("y",)), machine("quad"), arrays)
    np.testing.assert_array_equal(found.arrays["y"], expected(arrays))


def test_run_time_sizes_are_bound() -> None:
    nest = product(8, 8, 8)
    bound = Nest(
        (
            buffer("a", "memory", "i8", "N", 8),
            buffer("b", "memory", "i8", 8, 8),
            buffer("y", "memory", "i32", "N", 8),
        ),
        ("N",),
        (Loop("i", (variable("i") * 0,), (variable("N") // 4,), 1, _body(nest)),),
        ("y",),
    )
    arrays = operands(12, 8, 8)
    found = simulate(bound, machine(), arrays, {"N": 12})
    np.testing.assert_array_equal(found.arrays["y"], expected(arrays))
    with pytest.raises(CallError, match="size 'N' is not given"):
        simulate(bound, machine(), arrays)


def _body(nest: Nest) -> tuple[Node, ...]:
    outer = nest.body[0]
    assert isinstance(outer, Loop)
    return outer.body


def test_double_buffers_are_exact() -> None:
    """The next tile of a is on its way while this one is multiplied."""
    kk = variable("k")
    two = buffer("s", "scratchpad", "i8", 2, 4, 4)
    here, there = place("s", kk % 2, 0, 0), place("s", (kk + 1) % 2, 0, 0)
    prefetch = Start("next", fill(there, place("a", 0, kk * 4 + 4), 16))
    weights = now("t1", fill(OTHER, place("b", kk * 4, 0), 4))
    steady = loop("k", 3, prefetch, *weights, call("multiply", SUM, here, OTHER), Wait("next"))
    last = (*now("t1", fill(OTHER, place("b", 12, 0), 4)), call("multiply", SUM, place("s", 1, 0, 0), OTHER))
    first = now("t0", fill(place("s", 0, 0, 0), place("a", 0, 0), 16))
    body = alloc((two, W, ACC), *first, call("clear", SUM), steady, *last, *now("t2", DRAIN))
    arrays = operands(4, 4, 16)
    found = simulate(Nest(product_arguments(4, 4, 16), (), (body,), ("y",)), machine(), arrays)
    np.testing.assert_array_equal(found.arrays["y"], expected(arrays))


def test_reading_outside_a_buffer_is_refused() -> None:
    outside = fill(HERE, place("a", 4, 0), 4)
    refused(small(*now("t0", outside)), "fill touches elements 16..31 of 16", "operand 'x'", r"a: i8\[4, 4\]")


def test_writing_outside_a_buffer_names_the_loops() -> None:
    nest = small(loop("k", 3, *now("t0", fill(place("s", K * 4, 0), place("a", 0, 0), 4))))
    refused(nest, "fill touches elements 16..31 of 16", "operand 's'", "at k = 1")


def test_reading_what_nobody_wrote_is_refused() -> None:
    refused(small(*FILLED, MULTIPLY), "multiply reads element 0 of acc", "operand 'acc'", "call multiply")


def test_a_result_that_is_not_written_is_refused() -> None:
    refused(small(call("clear", SUM)), "16 elements of 'y' are never written")


def test_a_fresh_buffer_holds_nothing_of_the_one_before_at_its_address() -> None:
    once = Alloc(ACC, (call("clear", SUM),))
    nest = Nest(product_arguments(4, 4, 4), (), (alloc((S, W), *FILLED, once, Alloc(ACC, (MULTIPLY,))),), ("y",))
    refused(nest, "multiply reads element 0 of acc")


def test_a_memory_that_is_full_is_refused() -> None:
    body = alloc((S, buffer("big", "scratchpad", "i8", 1009)), call("clear", SUM))
    nest = Nest(product_arguments(4, 4, 4), (), (alloc((ACC,), body),), ("y",))
    refused(nest, "memory 'scratchpad' is full", "1024 bytes and holds s 16", "alloc big")


def test_units_that_share_a_memory_need_room_for_all_of_them() -> None:
    """Main memory is one: a buffer made inside of the parallel is there four times."""

    def nest(bytes_: int) -> Nest:
        held = alloc((buffer("t", "memory", "i8", bytes_),), *now("t0", fill(HERE, place("a", 0, 0), 4)))
        return Nest(product_arguments(4, 4, 4), (), (alloc((S,), parallel("v", 4, held)),), ("y",))

    refused(nest(1 << 18), "memory 'memory' is full", "4 times 262144", target="quad")
    refused(nest(1 << 17), "never written", target="quad")


def test_a_misaligned_operand_is_refused() -> None:
    wide = buffer("s", "scratchpad", "i8", 32)
    body = alloc((wide,), *now("t0", fill(place("s", 8), place("a", 0, 0), 4)))
    nest = Nest(product_arguments(4, 4, 4), (), (body,), ("y",))
    refused(nest, "operand 's' of fill starts at address 8 of 'scratchpad'", "multiples of 16")


def test_an_operand_in_the_wrong_memory_is_refused() -> None:
    wrong = buffer("acc", "scratchpad", "i32", 4, 4)
    nest = Nest(product_arguments(4, 4, 4), (), (alloc((wrong,), call("clear", SUM)),), ("y",))
    refused(nest, "operand 'acc' of clear lies in memory 'scratchpad'", "takes it from 'sums'")


BEGUN = Start("t0", fill(HERE, place("a", 0, 0), 4))


def test_reading_the_destination_of_a_copy_before_its_wait_is_refused() -> None:
    filled = now("t1", fill(OTHER, place("b", 0, 0), 4))
    nest = small(*filled, call("clear", SUM), BEGUN, MULTIPLY, Wait("t0"))
    refused(nest, "multiply reads s: .* while the copy 't0' writes it", "started by fill", "wait t0 before")


def test_overwriting_the_destination_of_a_copy_is_refused() -> None:
    again = fill(HERE, place("a", 0, 0), 4)
    nest = small(BEGUN, Start("t1", again), Wait("t0"), Wait("t1"))
    refused(nest, "fill writes s: .* while the copy 't0' writes it")


def test_overwriting_the_source_of_a_copy_is_refused() -> None:
    nest = small(call("clear", SUM), Start("t0", DRAIN), call("clear", SUM), Wait("t0"))
    refused(nest, "clear writes acc: .* while the copy 't0' reads it", "wait t0")


def test_reading_the_source_of_a_copy_is_allowed() -> None:
    both = (BEGUN, Start("t1", fill(OTHER, place("a", 0, 0), 4)), Wait("t0"), Wait("t1"))
    found = simulate(small(call("clear", SUM), *both, *now("t2", DRAIN)), machine(), operands(4, 4, 4))
    assert not found.arrays["y"].any()


def test_a_buffer_that_ends_under_a_copy_is_refused() -> None:
    nest = Nest(product_arguments(4, 4, 4), (), (alloc((S,), BEGUN), Wait("t0")), ("y",))
    refused(nest, "buffer 's' ends while 't0' still writes it")


def test_two_copies_under_way_to_one_place_are_refused() -> None:
    nest = small(loop("k", 2, BEGUN), Wait("t0"))
    refused(nest, "fill writes s: .* while the copy 't0' writes it", "at k = 1")


def test_one_wait_is_for_every_copy_of_its_token() -> None:
    """All tiles of both operands are copied in one loop, and multiplied after one wait."""
    s, w = place("s", K, 0, 0), place("w", K, 0, 0)
    filled = loop("k", 2, Start("t0", fill(s, place("a", 0, K * 4), 8)), Start("t0", fill(w, place("b", K * 4, 0), 4)))
    multiplied = (call("clear", SUM), loop("k", 2, call("multiply", SUM, s, w)), *now("t2", DRAIN))
    held = (buffer("s", "scratchpad", "i8", 2, 4, 4), buffer("w", "scratchpad", "i8", 2, 4, 4), ACC)
    arrays = operands(4, 4, 8)

    def nest(*body: Node) -> Nest:
        return Nest(product_arguments(4, 4, 8), (), (alloc(held, *body),), ("y",))

    found = simulate(nest(filled, Wait("t0"), *multiplied), machine(), arrays)
    np.testing.assert_array_equal(found.arrays["y"], expected(arrays))
    with pytest.raises(SimulationError, match=r"multiply reads s: .* while the copy 't0' writes it"):
        simulate(nest(filled, *multiplied, Wait("t0")), machine(), arrays)


def test_a_wait_where_nothing_is_under_way_does_nothing() -> None:
    """A fill whose region lies outside of its tensor copies nothing."""
    nest = small(Wait("t0"), *FILLED, Wait("t0"), call("clear", SUM), MULTIPLY, *now("t2", DRAIN))
    arrays = operands(4, 4, 4)
    np.testing.assert_array_equal(simulate(nest, machine(), arrays).arrays["y"], expected(arrays))


def test_a_copy_that_the_last_iteration_leaves_under_way_is_refused() -> None:
    nest = small(BEGUN, loop("k", 2, Wait("t0"), BEGUN))
    refused(nest, "buffer 's' ends while 't0' still writes it")


def test_a_plain_instruction_cannot_be_started() -> None:
    refused(small(*now("t0", call("clear", SUM))), "start of clear, which is not asynchronous", "async = true")


def test_parameters_outside_their_range_or_constraint_are_refused() -> None:
    odd = call("fill", HERE, place("a", 0, 0), ld=4, m=4, n=K + 3)
    refused(small(loop("k", 1, *now("t0", odd))), "fill is called with n = 3", "n % 2 == 0")
    wide = call("fill", HERE, place("a", 0, 0), ld=4, m=4, n=K + 6)
    refused(small(loop("k", 1, *now("t0", wide))), "fill is called with n = 6", r"'n' lies in 1..4")


def test_arguments_are_checked() -> None:
    arrays = operands(4, 4, 4)
    with pytest.raises(CallError, match=r"argument 'a' is int8\[2, 4\], expected i8\[4, 4\]"):
        simulate(small(), machine(), {**arrays, "a": arrays["a"][:2]})
    with pytest.raises(DovetailError, match="argument 'b' is not given"):
        simulate(small(), machine(), {"a": arrays["a"]})


def test_a_parallel_of_another_unit_count_gives_the_same_result() -> None:
    nest = product(8, 8, 8, spread=True)
    assert isinstance(nest.body[0], Parallel)
    arrays = operands(8, 8, 8)
    one, four = (simulate(nest, machine(name), arrays).arrays["y"] for name in ("tile4", "quad"))
    np.testing.assert_array_equal(one, four)
