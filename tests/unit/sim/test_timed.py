"""The timed simulator: each rule on a nest small enough to time by hand, and loops closed in one step."""

from __future__ import annotations

import itertools
import json
import time
from dataclasses import replace
from pathlib import Path

import pytest

from dovetail.base.errors import LimitError, SimulationError, TargetError
from dovetail.ir.index import Access, Condition, Index, affine, constant, variable
from dovetail.ir.nest import Barrier, Nest, Node, Start, Wait, When
from dovetail.sim.costs import TICKS, cost_ticks
from dovetail.sim.report import Timing, chrome_trace, table, write_chrome_trace
from dovetail.sim.timed import simulate_time
from dovetail.targets.load import load_target
from tests.unit.sim.machines import (
    K,
    alloc,
    buffer,
    call,
    fill,
    loop,
    machine,
    parallel,
    place,
    product,
    product_arguments,
)
from tests.unit.sim.random_nests import Maker, Rows

S, ACC = buffer("s", "scratchpad", "i8", 16, 4, 4), buffer("acc", "sums", "i32", 8, 4, 4)
A = place("a", 0, 0)


def timed(*body: Node, target: str = "tile4", close_loops: bool = True) -> Timing:
    nest = Nest(product_arguments(64, 64, 64), (), (alloc((S, ACC), *body),), ("y",))
    return simulate_time(nest, machine(target), close_loops=close_loops)


def multiply(sums: int, first: int = 0, second: int = 1) -> Node:
    return call("multiply", place("acc", sums, 0, 0), place("s", first, 0, 0), place("s", second, 0, 0))


def begin(token: str, tile: int) -> Start:
    return Start(token, fill(place("s", tile, 0, 0), A, 64))


def fills(count: int, name: str = "fill") -> tuple[Node, ...]:
    sizes = {"m": 4, "n": 4} if name == "fill" else {}
    starts = [Start(f"t{n}", call(name, place("s", n, 0, 0), A, ld=64, **sizes)) for n in range(count)]
    return (*starts, *(Wait(f"t{n}") for n in range(count)))


def test_a_sum_that_is_added_to_again_waits_for_its_latency() -> None:
    assert timed(multiply(0), multiply(0)).cycles == 10 + 10


def test_independent_sums_follow_each_other_at_the_rate_of_the_pipe() -> None:
    assert timed(multiply(0), multiply(1), multiply(2)).cycles == 4 + 4 + 10


def test_a_copy_is_there_after_its_latency() -> None:
    assert timed(begin("t", 0), Wait("t")).cycles == 24


def test_a_wait_is_for_the_last_copy_of_its_token() -> None:
    three = loop("k", 3, Start("t", fill(place("s", K, 0, 0), A, 64)))
    assert timed(three, Wait("t")).cycles == timed(Wait("t"), three, Wait("t"), Wait("t")).cycles == 4 + 4 + 24


def test_copies_queue_for_their_engine_and_overlap_their_latencies() -> None:
    assert timed(*fills(3)).cycles == 4 + 4 + 24


def test_a_plain_call_of_a_copy_waits_for_it() -> None:
    both = (fill(place("s", n, 0, 0), A, 64) for n in range(2))
    assert timed(*both).cycles == 24 + 24


def test_a_copy_under_way_overlaps_with_arithmetic() -> None:
    assert timed(begin("t", 5), *(multiply(n) for n in range(6)), Wait("t")).cycles == 5 * 4 + 10
    assert timed(begin("t", 5), Wait("t"), *(multiply(n) for n in range(6))).cycles == 24 + 5 * 4 + 10


def test_a_copy_waits_for_those_who_still_read_what_it_overwrites() -> None:
    assert timed(multiply(0, 0), begin("t", 0), Wait("t")).cycles == 4 + 24
    assert timed(multiply(0, 0), begin("t", 5), Wait("t")).cycles == 24


def test_a_barrier_waits_for_results() -> None:
    assert timed(multiply(0), multiply(1)).cycles == 4 + 10
    assert timed(multiply(0), Barrier("core"), multiply(1)).cycles == 10 + 10


def test_cores_contend_for_the_memory_they_share() -> None:
    alone, together = parallel("v", 1, *fills(8)), parallel("v", 4, *fills(8))
    assert timed(alone, target="quad").cycles == 7 * 4 + 24
    found = timed(together, target="quad")
    assert found.cycles == 7 * 16 + 24
    assert found.memory("memory").bytes == 4 * 8 * 16
    assert found.memory("memory").busy_cycles == 8 * 16


def test_a_broadcast_reads_once_for_all() -> None:
    found = timed(parallel("v", 4, *fills(8, "fill_all")), target="quad")
    assert found.cycles == 7 * 4 + 24
    assert found.memory("memory").bytes == 8 * 16
    assert found.memory("scratchpad").bytes == 4 * 8 * 16


def test_a_copy_outside_of_a_parallel_is_made_by_every_core() -> None:
    assert timed(*fills(8), target="quad").cycles == 7 * 16 + 24
    assert timed(*fills(8, "fill_all"), target="quad").cycles == 7 * 4 + 24


def test_more_iterations_than_cores_take_turns() -> None:
    one = timed(parallel("v", 4, *(multiply(n) for n in range(4))), target="quad").cycles
    assert one == 3 * 4 + 10
    found = timed(parallel("v", 9, *(multiply(n) for n in range(4))), target="quad")
    assert found.cycles == 3 * 16 + 6
    assert found.instruction("multiply").calls == 36
    assert found.unit("core").busy_cycles == 36 * 4
    assert found.unit("core").count == 4


def test_cores_that_decide_differently_are_timed_apart() -> None:
    v = variable("v")
    body = When((Condition(-v),), tuple(multiply(n) for n in range(6)), (multiply(0),))
    found = timed(parallel("v", 4, body), target="quad")
    assert found.cycles == 5 * 4 + 10
    assert found.instruction("multiply").calls == 6 + 3


def test_neighbours_that_decide_alike_are_one_lane() -> None:
    """Three cores with four products, and one at the edge with two."""
    count = (4, variable("v") * -2 + 8)
    found = timed(parallel("v", 4, loop("k", count, multiply(0))), target="quad")
    assert found.instruction("multiply").calls == 3 * 4 + 2
    assert found.instruction("multiply").busy_cycles == (3 * 4 + 2) * 4
    assert found.stepped_calls == 4 + 2
    assert found.cycles == 4 * 10


def test_the_bytes_of_operands_pass_the_ports_of_their_memories() -> None:
    found = timed(multiply(0))
    assert found.memory("scratchpad").bytes == 32
    assert found.memory("sums").bytes == 2 * 64
    assert found.memory("scratchpad").busy_cycles == 2
    assert found.memory("sums").utilisation == pytest.approx(2 / 10)


def test_utilisation_is_busy_cycles_of_all_cycles() -> None:
    found = timed(*(multiply(n) for n in range(6)))
    assert found.unit("core").utilisation == pytest.approx(24 / 30)


@pytest.mark.parametrize("seed", [*range(110), 1202, 1502, 1793])
def test_closing_loops_changes_nothing(seed: int) -> None:
    """Cycles, busy cycles and bytes are those of stepping through every iteration, to the tick.

    The last seeds have units behind the others that come to a memory when a loop of the others is closed."""
    closed_is_stepped(Maker(seed).nest(), seed)


@pytest.mark.parametrize("seed", range(60))
def test_closing_loops_changes_nothing_where_tokens_are_started_several_times(seed: int) -> None:
    closed_is_stepped(Maker(seed, groups=True).nest(), seed)


@pytest.mark.parametrize("seed", range(80))
def test_closing_loops_changes_nothing_where_rows_are_fetched_ahead(seed: int) -> None:
    closed_is_stepped(Rows(seed).nest(), seed)


def test_rows_that_differ_only_in_where_they_lie_are_stepped_through_once() -> None:
    for seed in range(30):
        rows = Rows(seed)
        rows.rows, rows.columns = 40, 50
        found = simulate_time(rows.nest(), machine(), most_events=0)
        assert found.stepped_calls < 250 < sum(i.calls for i in found.instructions) / 10


def test_what_a_loop_did_before_is_marked_on_the_timeline() -> None:
    rows = Rows(1)
    rows.rows, rows.columns = 6, 7
    found = simulate_time(rows.nest(), machine())
    repeats = [e for e in found.events if e.is_repeat]
    assert any(e.name == "p as before" for e in repeats) or any(e.name == "q as before" for e in repeats)
    assert max(e.end for e in found.events) == found.cycles * TICKS


def test_a_copy_under_way_does_not_count_for_loops_beside_it() -> None:
    """What the second clears do is done again by the third ones; the copies beside them end no later for that."""
    slow = tuple(Start("t", fill(place("s", n, 0, 0), A, 64)) for n in range(16))
    clears = loop("k", 8, call("clear", place("acc", 0, 0, 0)))
    first, last = Condition(-variable("i")), Condition(variable("i") - 2)
    body = loop("i", 3, When((first,), slow), clears, When((last,), (multiply(1),)))
    quick, full = (timed(body, Wait("t"), close_loops=c) for c in (True, False))
    assert quick.cycles == full.cycles == 15 * 4 + 24


@pytest.mark.parametrize("waiting", [1, 2, 3, 4])
def test_copies_queue_only_while_their_engine_is_behind(waiting: int) -> None:
    """Sums are stored behind sixteen copies, and again behind few, when the engine has to wait for the first sum."""
    first, second = Condition(-variable("i")), Condition(variable("i") - 1)
    many, few = (
        tuple(Start("t", fill(place("s", n % 8, 0, 0), A, 64)) for n in range(count)) for count in (16, waiting)
    )
    store = loop("k", 4, Start("y", call("drain", place("y", 0, 0), place("acc", K, 0, 0), ld=64)))
    body = loop("i", 2, multiply(0, 14, 15), When((first,), many), When((second,), few), store, Wait("t"), Wait("y"))
    quick, full = (timed(body, close_loops=c) for c in (True, False))
    assert quick.cycles == full.cycles


def closed_is_stepped(nest: Nest, seed: int) -> None:
    target = machine("quad" if seed % 3 else "tile4")
    quick = simulate_time(nest, target, most_events=0)
    full = simulate_time(nest, target, most_events=0, close_loops=False)
    assert quick.cycles == full.cycles
    assert sorted(map(str, quick.instructions)) == sorted(map(str, full.instructions))
    assert sorted(map(str, quick.units)) == sorted(map(str, full.units))
    assert quick.memories == full.memories
    assert quick.stepped_calls <= full.stepped_calls


def test_most_loops_are_closed() -> None:
    """Otherwise the test above would compare stepping with stepping."""
    long = [loop("z", 100, *Maker(seed).block(("z",), 1)) for seed in range(40)]
    closed = 0
    for body in long:
        quick = timed(body)
        closed += quick.stepped_calls < sum(i.calls for i in quick.instructions) / 3
    assert closed >= 20


def test_buffers_used_in_turn_repeat_every_second_iteration() -> None:
    here, there = place("s", K % 2, 0, 0), place("s", (K + 1) % 2, 0, 0)
    body = (
        Start("t", fill(there, place("a", 0, K * 4), 64)),
        call("multiply", place("acc", 0, 0, 0), here, here),
        Wait("t"),
    )
    quick, full = (timed(loop("k", 501, *body), close_loops=c) for c in (True, False))
    assert quick.cycles == full.cycles == 501 * 24
    assert quick.stepped_calls < 20


def test_places_that_meet_only_once_are_not_missed() -> None:
    """One sum moves and the other stays: they are the same sum in iteration 50, which takes longer."""
    moving, fixed = (call("multiply", place("acc", at, 0, 0), *(place("s", n, 0, 0) for n in (1, 2))) for at in (K, 50))
    drain = call("drain", place("y", 0, 0), place("acc", 50, 0, 0), ld=64)
    quick, full = (timed(loop("k", 100, moving, fixed, drain), close_loops=c) for c in (True, False))
    assert quick.cycles == full.cycles == 100 * (4 + 10 + 36) + 6


def test_an_edge_at_the_end_is_stepped_through() -> None:
    rows = (4, K * -4 + 1995)
    body = (Start("t", call("fill", place("s", 0, 0, 0), A, ld=64, m=rows, n=4)), Wait("t"))
    quick, full = (timed(loop("k", 499, *body), close_loops=c) for c in (True, False))
    assert quick.cycles == full.cycles == 498 * 24 + 23
    assert quick.stepped_calls < 20


def test_the_last_prefetch_is_left_out() -> None:
    ahead = When((Condition(-K + 498),), (Start("t", fill(place("s", 0, 0, 0), A, 64)), Wait("t")))
    quick, full = (timed(loop("k", 500, ahead, multiply(0, 1, 2)), close_loops=c) for c in (True, False))
    assert quick.cycles == full.cycles
    assert quick.instruction("fill").calls == 499
    assert quick.stepped_calls < 30


def test_a_large_product_is_timed_in_less_than_two_seconds() -> None:
    """1024 cubed on a 16x16x16 instruction: 262,144 calls and twice as many copies."""
    target = load_target(Path(__file__).parents[2] / "targets" / "toy16.toml")
    i, j, k = (variable(name) * 16 for name in "ijk")
    tiles = (buffer("s", "scratchpad", "i8", 16, 16), buffer("w", "scratchpad", "i8", 16, 16))
    first, second, sums = place("s", 0, 0), place("w", 0, 0), place("acc", 0, 0)
    inner = loop(
        "k",
        64,
        Start("t0", call("copy_in", first, place("a", i, k), ld=1024)),
        Start("t1", call("copy_in", second, place("b", k, j), ld=1024)),
        Wait("t0"),
        Wait("t1"),
        call("matmul16", sums, first, second),
    )
    out = (Start("t2", call("copy_out", place("y", i, j), sums, ld=1024)), Wait("t2"))
    tile = alloc((*tiles, buffer("acc", "accumulator", "i32", 16, 16)), call("clear", sums), inner, *out)
    nest = Nest(product_arguments(1024, 1024, 1024), (), (loop("i", 64, loop("j", 64, tile)),), ("y",))
    start = time.perf_counter()
    found = simulate_time(nest, target)
    assert time.perf_counter() - start < 2
    assert found.instruction("matmul16").calls == 64**3
    assert found.instruction("copy_in").calls == 2 * 64**3
    assert found.stepped_calls < 100


def test_places_that_look_ahead_over_three_loops_close_them_all() -> None:
    """The next operands are found from one count t + 1 of all iterations; 64 x 64 x 64 of them."""
    count = variable("i") * 4096 + variable("j") * 64 + K

    def begin(t: Index) -> tuple[Node, ...]:
        row, column, at = t // 4096 * 4, t // 64 % 64 * 4, t % 64 * 4
        return (
            Start("t", fill(place("s", t % 2, 0, 0), place("a", row, at), 256)),
            Start("t", fill(place("s", (t + 2) // 64 % 2 + 2, 0, 0), place("b", at, column), 256)),
        )

    more = When((Condition(-count + (64**3 - 2)),), begin(count + 1))
    places = place("s", count % 2, 0, 0), place("s", 4, 0, 0)
    inner = loop("k", 64, Wait("t"), more, call("multiply", place("acc", 0, 0, 0), *places))
    start = time.perf_counter()
    found = timed(*begin(constant(0)), loop("i", 64, loop("j", 64, inner)))
    assert time.perf_counter() - start < 1
    assert found.instruction("fill").calls == 2 * 64**3
    assert found.stepped_calls < 2000


def test_copies_that_queue_up_are_taken_in_one_step() -> None:
    """The clock stands still while they are started, and their engine is busy ever longer."""
    starts = loop("k", 500, Start("t", fill(place("s", K % 4 + 2, 0, 0), place("a", 0, K * 4), 64)))
    quick, full = (timed(multiply(0), starts, Wait("t"), multiply(0), close_loops=c) for c in (True, False))
    assert quick.cycles == full.cycles == 499 * 4 + 24 + 10
    assert quick.memories == full.memories
    assert quick.stepped_calls < 10


def test_arithmetic_repeats_while_copies_are_under_way() -> None:
    """Their engine, which nothing else uses meanwhile, does not matter to it; they take longer than it."""
    starts = loop("j", 900, Start("t", call("drain", place("y", 0, 0), place("acc", 7, 0, 0), ld=64)))
    products = loop("k", 500, multiply(0))
    quick, full = (timed(starts, products, Wait("t"), close_loops=c) for c in (True, False))
    assert quick.cycles == full.cycles > 900 * 16
    assert quick.stepped_calls < 40


def test_a_copy_in_a_queue_that_must_wait_is_not_missed() -> None:
    """The one in iteration 13 overwrites what a product still reads."""
    where = place("s", K, 0, 0)
    tiles = (buffer("s", "scratchpad", "i8", 16, 4, 4), buffer("acc", "sums", "i32", 8, 4, 4))
    late = call("multiply", place("acc", 0, 0, 0), place("s", 13, 0, 0), place("s", 13, 0, 0))
    body = (late, late, loop("k", 16, Start("t", fill(where, place("a", 0, 0), 64))), Wait("t"))
    nest = Nest(product_arguments(64, 64, 64), (), (alloc(tiles, *body),), ("y",))
    quick, full = (simulate_time(nest, machine(), close_loops=c) for c in (True, False))
    assert quick.cycles == full.cycles
    assert quick.stepped_calls < full.stepped_calls


def test_data_that_decides_the_time_is_refused() -> None:
    arguments = (*product_arguments(4, 4, 4), buffer("n", "memory", "i32", 4))
    end = affine(((Access("n", (constant(0),)), 1),))
    nest = Nest(arguments, (), (alloc((S, ACC), loop("k", end, multiply(0))),), ("y",))
    with pytest.raises(SimulationError, match=r"the time depends on data: n\[0\]"):
        simulate_time(nest, machine())
    copy = call("fill", place("s", 0, 0, 0), A, ld=64, m=end, n=4)
    with pytest.raises(SimulationError, match="the time depends on data: a parameter"):
        simulate_time(Nest(arguments, (), (alloc((S,), copy),), ("y",)), machine())


def test_run_time_sizes_decide_the_time() -> None:
    nest = Nest(product_arguments(4, 4, 4), ("m",), (alloc((S, ACC), loop("k", "m", multiply(0))),), ("y",))
    assert [simulate_time(nest, machine(), {"m": m}).cycles for m in (0, 3, 1000)] == [0, 30, 10000]


def test_a_nest_that_takes_too_many_steps_is_refused() -> None:
    body = loop(
        "k", 10**9, call("multiply", place("acc", K, 0, 0), place("s", 0, 0, 0), place("s", K, 0, 0)), multiply(3)
    )
    nest = Nest(product_arguments(64, 64, 64), (), (alloc((S, ACC), body),), ("y",))
    with pytest.raises(LimitError, match="more than 1000 calls"):
        simulate_time(nest, machine(), most_calls=1000)


def test_a_memory_that_is_full_has_no_time() -> None:
    nest = Nest(product_arguments(4, 4, 4), (), (alloc((buffer("s", "scratchpad", "i8", 1025),), *()),), ("y",))
    with pytest.raises(SimulationError, match="memory 'scratchpad' is full"):
        simulate_time(nest, machine())


@pytest.mark.parametrize(
    ("cycles", "words"), [("4 - m", "fill takes -1 cycles with m = 5"), ("8 / (m - 5)", "divides by zero")]
)
def test_a_cost_that_is_no_time_names_the_file_and_the_field(cycles: str, words: str) -> None:
    wrong = replace(machine().instruction("fill"), cycles=cycles)
    with pytest.raises(TargetError) as caught:
        cost_ticks(wrong, "cycles", {"m": 5})
    for word in (words, "tile4.toml", "fill", f"cycles = {cycles}"):
        assert word in str(caught.value)


def test_the_timeline_opens_in_a_trace_viewer(tmp_path: Path) -> None:
    found = simulate_time(product(64, 64, 64), machine())
    path = tmp_path / "trace.json"
    write_chrome_trace(found, path)
    events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    calls = [e for e in events if e["ph"] == "X"]
    assert {"fill", "multiply"} <= {e["name"] for e in calls}
    assert all(e["dur"] >= 0 for e in calls)
    assert max(e["ts"] + e["dur"] for e in calls) == pytest.approx(found.cycles)
    assert any(e["cat"] == "repeat" for e in calls)
    assert {"core", "core copies"} <= {e["args"]["name"] for e in events if e["ph"] == "M"}


def test_pipes_never_do_two_things_at_once() -> None:
    found = simulate_time(product(8, 8, 16), machine(), close_loops=False)
    spans = sorted((e.start, e.end) for e in found.events if e.track == "core copies")
    assert all(a[1] <= b[0] for a, b in itertools.pairwise(spans))
    assert chrome_trace(found, 1e9)["traceEvents"]


def test_the_table_shows_prediction_and_simulation_side_by_side() -> None:
    text = table(timed(multiply(0), multiply(1)), 21)
    assert text.startswith("14 cycles simulated, 21 predicted, +50.0%")
    assert "instruction multiply      2" in text
