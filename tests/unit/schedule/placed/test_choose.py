"""Plans that are chosen: works of a statement, blocks, estimates, and what is left to the host."""

from __future__ import annotations

from pathlib import Path

import pytest

from dovetail.base.dtypes import DTYPES
from dovetail.ir.index import constant
from dovetail.ir.nest import Buffer
from dovetail.ir.parse import parse
from dovetail.schedule.placed.alignment import bytes_of, start_unit, takes_rows_only, up
from dovetail.schedule.placed.choose import capacities, default_placed_plan, only, placed_plans
from dovetail.schedule.placed.estimate import Estimator
from dovetail.schedule.placed.predict import predict
from dovetail.schedule.placed.space import Work, block_choices, orders, works
from dovetail.schedule.placed.zeros import zero_call, zero_target
from dovetail.sim.timed import simulate_time
from dovetail.simulated.lowered import all_fits, lowered
from tests.unit.schedule.placed.small import is_exact, machine, product, variant

LAYER = parse("""
    in a: i8[8,8]  in b: i8[8,8]  temp c: i32[8,8]  out y: i32[8,8]
    for i<8, j<8, k<8: c[i,j] += a[i,k] * b[k,j]
    for i<8, j<8: y[i,j] = max(c[i,j], 0)
""")


def work() -> Work:
    """Rows of the product in rows of the instruction."""
    found = works(product(), machine(), all_fits(product(), machine()), 0)
    return next(w for w in found if dict(w.bound) == {"i": ("i",), "j": ("j",), "k": ("k",)})


def test_operands_come_by_way_of_every_memory_in_between() -> None:
    assert work().routes == {"c": ("sums",), "a": ("pad",), "b": ("pad", "weights")}


def test_blocks_are_calls_doubled_until_they_are_all() -> None:
    assert block_choices(work(), "j") == (4, 8)
    assert block_choices(work(), "k") == (4, 8, 12)
    assert work().call_step("i", 10) == 8


def test_of_few_loops_every_order_is_tried_and_of_many_each_is_last_once() -> None:
    assert len(list(orders(("a", "b", "c")))) == 6
    assert [order[-1] for order in orders(("a", "b", "c", "d"))] == ["a", "b", "c", "d"]


def test_what_does_not_fit_its_memories_has_no_price() -> None:
    blocks = {"i": 8, "j": 8, "k": 12}
    assert Estimator(work(), capacities(machine())).best(blocks, frozenset()) is not None
    assert Estimator(work(), {"pad": 100, "sums": 2048, "weights": 64}).best(blocks, frozenset()) is None


def test_what_is_held_twice_takes_twice_the_room() -> None:
    blocks, room = {"i": 8, "j": 8, "k": 4}, {"pad": 8 * 4 + 4 * 8 + 20, "sums": 2048, "weights": 64}
    assert Estimator(work(), room).best(blocks, frozenset()) is not None
    assert Estimator(work(), room).best(blocks, frozenset({"a"})) is None


def test_an_estimate_is_near_what_is_simulated() -> None:
    plan = default_placed_plan(product(), zero_target(machine()), all_fits(product(), machine()))
    made, nest = lowered(product(), plan, machine())
    assert predict(nest, made).cycles == pytest.approx(simulate_time(nest, made).cycles, rel=0.1)


def test_every_plan_of_the_space_is_exact() -> None:
    plans = list(placed_plans(product(), zero_target(machine()), all_fits(product(), machine())))
    assert len(plans) > 5
    assert all(is_exact(product(), plan) for plan in plans[:8])


def test_what_nothing_fits_is_left_to_the_host() -> None:
    plan = default_placed_plan(LAYER, zero_target(machine()), all_fits(LAYER, machine()))
    assert [leaf.instruction for leaf in plan.leaves()] == ["product", ""]
    assert is_exact(LAYER, plan)


def test_a_statement_alone_is_given_what_it_reads() -> None:
    assert str(only(LAYER, 1)).startswith("in c: i32[8, 8]\nout y: i32[8, 8]\n")
    added = parse("in a: i8[4,4]  in b: i8[4,4]  inout c: i32[4,4]\nfor i<4, j<4, k<4: c[i,j] += a[i,k] * b[k,j]")
    assert "inout c: i32[4, 4]" in str(only(added, 0))


def test_zeros_are_a_store_of_the_host() -> None:
    target = zero_target(machine())
    call = zero_call("zero_i8", DTYPES["i8"])
    assert call.instruction in target.by_name
    assert target.instruction(call.instruction).unit == "host"


def test_a_machine_without_a_host_sets_no_zeros(tmp_path: Path) -> None:
    alone = variant(tmp_path, ('[[unit]]\nname = "host"\ncount = 1\nruns = "generic"\n', ""))
    assert zero_target(alone) is alone


def test_alignment_counts_in_elements_and_fills_up_what_a_buffer_takes(tmp_path: Path) -> None:
    aligned = variant(tmp_path, ("bytes = 2048", "bytes = 2048\nalign = 16"))
    assert (start_unit(aligned, "sums", DTYPES["i32"]), start_unit(aligned, "pad", DTYPES["i8"])) == (4, 1)
    buffer = Buffer("y", "sums", DTYPES["i32"], (constant(3), constant(3)), strides=(constant(4), constant(1)))
    assert bytes_of(buffer, aligned) == up(11 * 4, 16) == 48
    assert not takes_rows_only(aligned, "sums")
