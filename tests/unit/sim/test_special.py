"""Bodies with the values of loops put in, what pieces touch, and footprints as bits."""

from __future__ import annotations

import random

from dovetail.ir.index import Condition, Index, variable
from dovetail.ir.nest import Nest, Node, Start, When
from dovetail.sim.costs import Costs, Footprint
from dovetail.sim.operands import target_shapes
from dovetail.sim.reach import Reach
from dovetail.sim.repeat import synchronous_buffers
from dovetail.sim.special import Special, Specials
from dovetail.sim.steps import AllocStep, CallStep, LoopStep, Step, WhenStep, prepare
from tests.unit.sim.machines import K, alloc, buffer, call, fill, loop, machine, place, product_arguments

HELD = (buffer("s", "scratchpad", "i8", 16, 4, 4), buffer("acc", "sums", "i32", 8, 4, 4))
A = place("a", 0, 0)


def specials(*body: Node) -> tuple[Specials, tuple[Step, ...]]:
    """The steps of ``body``, in which a product uses both buffers so that places in them matter."""
    both = call("multiply", place("acc", 0, 0, 0), place("s", 0, 0, 0), place("s", 0, 0, 0))
    nest = Nest(product_arguments(64, 64, 64), (), (alloc(HELD, *body, both),), ("y",))
    step = prepare(nest, machine(), {})[1]
    found = Specials(frozenset(synchronous_buffers(step)))
    while isinstance(step[0], AllocStep):
        step = step[0].body
    return found, step[:-1]


def at(made: Specials, body: tuple[Step, ...], **values: int) -> Special:
    return made.of(body, values)


def multiply(tile: Index) -> Node:
    return call("multiply", place("acc", 0, 0, 0), place("s", tile, 0, 0), place("s", tile + 1, 0, 0))


def test_bodies_that_differ_only_in_where_they_lie_are_one() -> None:
    made, body = specials(loop("j", 3, multiply(K * 2 + variable("j"))))
    first, second = at(made, body, k=0), at(made, body, k=5)
    assert first.body is second.body
    assert (first.shifts, second.shifts) == ((), (("s", 10 * 16),))


def test_conditions_are_decided_by_the_ranges_of_loops_inside() -> None:
    guarded = When((Condition(K + variable("j") - 3),), (multiply(variable("j")),))
    made, body = specials(loop("j", 3, guarded))
    assert at(made, body, k=0).body == ()
    assert isinstance(inner(at(made, body, k=2)), WhenStep)
    assert isinstance(inner(at(made, body, k=3)), CallStep)
    assert at(made, body, k=3).body is at(made, body, k=9).body


def test_what_looks_ahead_across_rows_is_decided_in_all_rows_but_the_last() -> None:
    row = (K + (variable("j") + 1) // 7) % 9
    made, body = specials(loop("j", 7, When((Condition(row - 1),), (multiply(variable("j")),))))
    alike = {id(at(made, body, k=k).body) for k in range(1, 8)}
    assert len(alike) == 1
    assert len(alike | {id(at(made, body, k=k).body) for k in (0, 8)}) == 3


def test_loops_count_from_zero_and_those_of_one_iteration_are_opened() -> None:
    made, body = specials(loop("j", K + 3, multiply(variable("j")), lower=K), loop("j", K + 1, multiply(K), lower=K))
    found = at(made, body, k=4)
    first, second = found.body
    assert isinstance(first, LoopStep) and (first.lower[0].const, first.upper[0].const) == (0, 3)
    assert isinstance(second, CallStep)
    assert found.body is at(made, body, k=6).body


def test_bodies_that_are_all_different_are_given_up() -> None:
    made, body = specials(loop("j", K + 2, multiply(variable("j"))))
    for k in range(70):
        assert made.pays(body) is (k < 64)
        at(made, body, k=k)


def test_a_piece_touches_what_its_loops_touch() -> None:
    made, body = specials(loop("j", 3, Start("t", fill(place("s", variable("j") * 2, 0, 0), A, 64))))
    found = Reach(made, Costs(target_shapes(machine()))).of(at(made, body).body)
    assert found is not None
    tile = Footprint(0, 15, (16,), (1,))
    assert [found["s"].meets(tile, 16 * n) for n in range(-1, 6)] == [False, True, False, True, False, True, False]


def test_footprints_meet_where_they_share_an_element() -> None:
    chance = random.Random(0)
    for _ in range(2000):
        one, other = (lattice(chance) for _ in range(2))
        distance = chance.randint(-30, 30)
        shared = elements(one) & {e + distance for e in elements(other)}
        assert one.meets(other, distance) is bool(shared)


def inner(special: Special) -> Step:
    step = special.body[0]
    assert isinstance(step, LoopStep)
    return step.body[0]


def lattice(chance: random.Random) -> Footprint:
    extents, strides = (tuple(chance.randint(low, high) for _ in range(3)) for low, high in ((1, 4), (-9, 9)))
    steps = [(extent - 1) * stride for extent, stride in zip(extents, strides, strict=True)]
    return Footprint(sum(min(0, s) for s in steps), sum(max(0, s) for s in steps), extents, strides)


def elements(footprint: Footprint) -> set[int]:
    found = {0}
    for extent, stride in zip(footprint.extents, footprint.strides, strict=True):
        found = {e + n * stride for e in found for n in range(extent)}
    return found
