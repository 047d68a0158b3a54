"""Tiles reach every point once, and points that meet keep their order."""

from dataclasses import replace

from dovetail.certify.cover import cover_checks, never_meet
from dovetail.ir.certificate import Check
from dovetail.ir.parse import parse
from dovetail.ir.plan import Leaf, Plan, Tile
from dovetail.ir.program import Program
from dovetail.schedule.default import default_plan
from dovetail.targets.load import load_target

GEMM = parse("in a: f32[32,40] in b: f32[40,48] out c: f32[32,48]\nfor i<32, j<48, k<40: c[i,j] += a[i,k] * b[k,j]")
CHAIN = parse(
    "in x: f32[8,9] temp m: f32[8] out y: f32[8,9]\n"
    "for i<8, j<9: m[i] max= x[i,j]\n"
    "for i<8, j<9: y[i,j] = x[i,j] - m[i]"
)
STEPS = parse(
    "in w: f32[4,4] temp a: f32[3,4] out h: f32[4,4]\nfor i<4: h[0,i] = 1\n"
    "seq t<3: for i<4, j<4: a[t,i] += w[i,j] * h[t,j]\nseq t<3: for i<4: h[t+1,i] = max(a[t,i], 0)"
)


def order(program: Program, plan: Plan) -> Check:
    return cover_checks(program, plan)[1]


def test_the_default_plan_of_a_product_covers_it_in_order() -> None:
    plan = default_plan(GEMM, load_target("host"), 2)
    assert [check.passed for check in cover_checks(GEMM, plan)] == [True, True]


def test_a_statement_without_a_leaf_is_not_covered() -> None:
    checks = cover_checks(CHAIN, Plan((Leaf(0),)))
    assert not checks[0].passed
    assert checks[0].detail == "statement 1 has no place in the plan"


def test_a_consumer_after_its_producer_is_in_order() -> None:
    assert order(CHAIN, Plan((Leaf(0), Leaf(1)))).passed


def test_a_consumer_before_its_producer_is_not() -> None:
    check = order(CHAIN, Plan((Leaf(1), Leaf(0))))
    assert not check.passed
    assert check.detail == "m[i] of statement 0 and m[i] of 1"


def test_rows_may_be_fused_and_columns_may_not() -> None:
    rows = Tile("t", ((0, "i"), (1, "i")), 2, (Leaf(0), Leaf(1)))
    columns = Tile("t", ((0, "j"), (1, "j")), 3, (Leaf(0), Leaf(1)))
    assert order(CHAIN, Plan((rows,))).passed
    assert not order(CHAIN, Plan((columns,))).passed


def test_a_consumer_may_wait_for_the_last_round() -> None:
    assert order(CHAIN, Plan((Tile("t", ((0, "j"),), 3, (Leaf(0), Leaf(1))),))).passed


def test_units_may_share_rows_and_not_a_sum() -> None:
    unit = load_target("host").units[0].name
    rows = Tile("t", ((0, "i"),), 4, (Leaf(0),), unit)
    assert order(GEMM, Plan((rows,))).passed
    assert not order(GEMM, Plan((replace(rows, loops=((0, "k"),)),))).passed


def test_units_that_start_at_an_offset_element_are_told_apart_by_isl() -> None:
    unit = load_target("host").units[0].name
    program = parse("in x: f32[9] out y: f32[9]\nfor i<9: y[8-i] += x[i]")
    check = order(program, Plan((Tile("t", ((0, "i"),), 2, (Leaf(0),), unit),)))
    assert check.passed
    assert check.method == "isl"


def test_steps_in_order_are_in_order_and_steps_downward_are_not() -> None:
    tile = Tile("t", ((1, "t"), (2, "t")), 1, (Leaf(1), Leaf(2)))
    assert order(STEPS, Plan((Leaf(0), tile))).passed
    assert not order(STEPS, Plan((Leaf(0), replace(tile, downward=True)))).passed
    assert not order(STEPS, Plan((Leaf(0), replace(tile, body=(Leaf(2), Leaf(1)))))).passed


def test_accesses_that_one_dimension_keeps_apart_never_meet() -> None:
    text = "in x: f32[99] out y: f32[99,99]\n"
    apart = ("y[4*i, j]", "y[2*j+1, i]"), ("y[0, i]", "y[1, i]"), ("y[i, 6*j+2]", "y[j, 3*i+1]")
    close = ("y[4*i, j]", "y[2*j+2, i]"), ("y[0, i]", "y[j, i]"), ("y[i+1, j]", "y[i, j]"), ("y[i//2, 2*j]", "y[i, j]")
    for pairs, expected in ((apart, True), (close, False)):
        for one, other in pairs:
            outs = [parse(f"{text}for i<9, j<9: {access} = x[i]").statements[0].out for access in (one, other)]
            assert never_meet(outs[0], outs[1]) is never_meet(outs[1], outs[0]) is expected
