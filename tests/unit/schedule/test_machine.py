"""What the model counts beside arithmetic: parts that cores take, copies, stores, stretches of memory."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dovetail.ir.parse import parse
from dovetail.schedule import default, order
from dovetail.schedule.facts import Facts, facts_of
from dovetail.schedule.machine import machine_of
from dovetail.schedule.pointwise import Vectors, pointwise_cycles
from dovetail.schedule.tiling import across_cycles, pack_cycles
from dovetail.targets.load import load_target

TARGET = load_target("x86-64-v4")
MACHINE = machine_of(TARGET)
EVEN = replace(MACHINE, uneven=0.0)


def product(m: int, n: int, k: int, role: str = "in") -> Facts:
    head = f"{role} a: f32[{m}, {k}]  in b: f32[{k}, {n}]  out c: f32[{m}, {n}]"
    return facts_of(parse(f"{head}\nfor i<{m}, j<{n}, l<{k}: c[i, j] += a[i, l] * b[l, j]"), 0)


@pytest.mark.parametrize(
    ("parts", "longest"), [(16, 8), (21 + 1 / 3, 11), (10 + 2 / 3, 5 + 2 / 3), (11, 6), (0.5, 0.5), (1, 1)]
)
def test_units_take_whole_parts_and_the_last_one_is_as_large_as_it_is(parts: float, longest: float) -> None:
    assert EVEN.balance(parts, 2) == pytest.approx(longest / (parts / 2))
    assert MACHINE.balance(parts, 2) > EVEN.balance(parts, 2)
    assert MACHINE.balance(parts, 1) == 1


def test_a_panel_that_is_no_whole_vectors_is_copied_more_slowly() -> None:
    facts = product(64, 640, 64)
    by_vectors, by_twos, by_ones = (pack_cycles(facts, 1, "j", MACHINE, span) for span in (48, 14, 9))
    assert by_ones == 2 * by_twos == 4 * by_vectors
    assert pack_cycles(facts, 0, "i", MACHINE, 16) / facts.elements(facts.reads[0]) == by_ones / (64 * 640)
    assert pack_cycles(product(64, 640, 64, "const"), 0, "i", MACHINE, 16) == 0


@pytest.mark.parametrize(("points", "together"), [(112 * 112, True), (64 * 64, False)])
def test_rows_are_stored_together_while_the_nearest_cache_has_room_for_their_lines(points: int, together: bool) -> None:
    text = f"in x: f32[3, {points}]  const w: f32[64, 3]  out y: f32[64, {points}]"
    facts = facts_of(parse(f"{text}\nfor k<64, p<{points}, c<3: y[k, p] += x[c, p] * w[k, c]"), 0)
    each = 14 * 32 * MACHINE.scatter_cycles
    stored = across_cycles(facts, machine_of(load_target("znver5")), ("k", "p"), 16, 2, 14)
    assert (stored < each / 2) is together


def test_a_gathered_row_costs_what_is_there_of_its_vector() -> None:
    rows = {
        n: facts_of(parse(f"in x: f32[99, {2 * n}]  out y: f32[99, {n}]\nfor c<99, q<{n}: y[c, q] = x[c, 2*q]"), 0)
        for n in (7, 14)
    }
    seven, fourteen = (pointwise_cycles(MACHINE, [Vectors((facts,), ("q",), 16)]) for facts in rows.values())
    assert 1.8 < fourteen / seven < 2.2


def test_where_lines_pass_slowly_between_units_each_copies_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    program = parse(
        "in a: f32[1008,512]  in b: f32[512,720]  out c: f32[1008,720]\n"
        "for i<1008, j<720, l<512: c[i,j] += a[i,l] * b[l,j]"
    )
    shared = []
    for cycles in (0.0, 1000.0):
        far = replace(MACHINE, passed_line_cycles=cycles)
        monkeypatch.setattr(default, "machine_of", lambda target, far=far: far)
        shared.append([h.tensor for h in default.default_plan(program, TARGET, 2).all_holds() if h.shared])
    assert shared[0] and not shared[1]


def test_a_second_cache_smaller_than_the_ways_of_the_first_keeps_no_line() -> None:
    tiny = replace(MACHINE, caches=(MACHINE.caches[0], 4))
    assert tiny.ways(4096, 1) == 0
    assert tiny.loses(4096, 1)


def test_a_loop_shorter_than_its_tile_is_one_part() -> None:
    facts = product(5, 640, 64)
    assert [order._parts(facts, (("j", 64, False), ("i", step, True))) for step in (2, 5, 8)] == [2.5, 1, 1]
