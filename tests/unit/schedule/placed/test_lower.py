"""Plans become nests: what is copied when, what is waited for, what happens where loops end. Golden nests are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from dovetail.base.errors import PlanError
from dovetail.ir.nest import Start, Wait, When, walk
from dovetail.ir.parse import parse
from dovetail.ir.plan import Hold, Leaf, Plan, Tile
from dovetail.ir.program import Program
from dovetail.targets.model import Target
from tests.unit.schedule.placed.small import (
    BY_PRODUCT,
    built,
    is_exact,
    machine,
    product,
    product_plan,
    tiles,
    variant,
)

GOLDEN = Path(__file__).parents[3] / "golden/placed"
PADDED = parse("""
    in x: i8[4,6,6]  in w: i8[4,4,3,3]  out y: i32[4,6,6]
    for k<4, p<6, q<6, c<4, r<3, s<3 where p+r>=1, p+r<=6, q+s>=1, q+s<=6:
        y[k,p,q] += x[c,p+r-1,q+s-1] * w[k,c,r,s]
""")
BY_ROWS = Leaf(
    0,
    instruction="product",
    bound=(("i", ("q",)), ("j", ("k",)), ("k", ("c",))),
    operands=(("acc", "y"), ("a", "x"), ("w", "w")),
)


def padded_plan(twice: bool = False) -> Plan:
    outer = (Hold("y", "sums"), Hold("x", "pad", twice=twice), Hold("w", "pad"))
    inner = tiles("r 1, s 1, p 1", BY_ROWS, inside=(Hold("w", "weights", twice=True),))
    return Plan((tiles("p 2", inner, inside=outer),))


@pytest.mark.parametrize(
    ("name", "program", "plan"),
    [
        ("product", product(), product_plan("i 8, k 4", twice=True)),
        ("padded-convolution", PADDED, padded_plan()),
    ],
)
def test_a_nest_reads_as_it_did(name: str, program: Program, plan: Plan, update_golden: bool) -> None:
    file = GOLDEN / f"{name}.txt"
    text = f"{program}\n----\n{plan}\n----\n{built(program, plan, machine())}\n"
    if update_golden:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    assert file.read_text() == text
    assert is_exact(program, plan, machine())


@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("sums_twice", [False, True])
@pytest.mark.parametrize("outer", ["i 8, k 4", "k 12, j 4, i 8", "i 8, j 4, k 8", "j 8, i 16, k 12"])
def test_products_are_exact_however_they_are_cut(outer: str, twice: bool, sums_twice: bool) -> None:
    assert is_exact(product(), product_plan(outer, twice=twice, sums_twice=sums_twice))


@pytest.mark.parametrize("twice", [False, True])
def test_padding_is_zero_on_both_sides(twice: bool) -> None:
    assert is_exact(PADDED, padded_plan(twice), machine())


def test_the_next_fill_is_started_right_after_the_wait_for_this_one() -> None:
    nodes = list(walk(built(product(), product_plan("i 8, k 4", twice=True)).body))
    for number, node in enumerate(nodes):
        if isinstance(node, Wait) and node.token.startswith("a_"):
            following = nodes[number + 1]
            assert isinstance(following, When)
            assert {n.token for n in walk(following.body) if isinstance(n, Start)} == {node.token}


def test_the_first_fill_stands_before_its_loops_and_the_last_starts_no_other() -> None:
    text = str(built(product(), product_plan("i 8, k 4", twice=True)))
    before, _, inside = text.partition("loop i8")
    assert "start a_" in before
    assert "when 3 * i8 + k4 <= 4:" in inside


def test_results_held_twice_leave_while_the_next_are_made() -> None:
    """The wait stands before the next drain and behind the loop, not behind the drain."""
    lines = [
        line.strip() for line in str(built(product(), product_plan("i 8, j 4, k 12", sums_twice=True))).splitlines()
    ]
    start = next(n for n, line in enumerate(lines) if line.startswith("start c_"))
    assert lines[start - 1].startswith("wait c_")
    assert lines[start - 2].startswith("when ")
    assert lines[-1].startswith("wait c_")
    at_once = [line.strip() for line in str(built(product(), product_plan("i 8, j 4, k 12"))).splitlines()]
    start = next(n for n, line in enumerate(at_once) if line.startswith("start c_"))
    assert at_once[start + 1].startswith("wait c_")


def test_tiles_that_do_not_exist_are_left_out() -> None:
    """Blocks of 16 rows in calls of 8: the second call of the last block has no row."""
    rows = parse("in a: i8[20,4]  in b: i8[4,4]  out c: i32[20,4]\nfor i<20, j<4, k<4: c[i,j] += a[i,k] * b[k,j]")
    plan = product_plan("i 16", twice=True, sums_twice=True)
    assert "<= 19" in str(built(rows, plan))
    assert is_exact(rows, plan)


def test_long_rows_are_copied_in_chunks() -> None:
    """Copies take 64 at a time; 100 columns of which a block holds 72."""
    wide = parse("in a: i8[4,4]  in b: i8[4,100]  out c: i32[4,100]\nfor i<4, j<100, k<4: c[i,j] += a[i,k] * b[k,j]")
    plan = product_plan("j 72")
    assert "min(64," in str(built(wide, plan))
    assert is_exact(wide, plan)


def test_what_is_added_to_is_brought_first_with_zeros_beyond_its_edges() -> None:
    rows = parse("in a: i8[6,4]  in b: i8[4,6]  inout c: i32[6,6]\nfor i<6, j<6, k<4: c[i,j] += a[i,k] * b[k,j]")
    plan = product_plan("i 8, j 4")
    assert "load_sums" in str(built(rows, plan, machine()))
    assert is_exact(rows, plan, machine())


def test_two_statements_hold_the_same_tensor_each_in_its_own_way() -> None:
    two = parse("""
        in a: i8[8,8]  in b: i8[8,8]  out c: i32[8,8]  out d: i32[8,8]
        for i<8, j<8, k<8: c[i,j] += a[i,k] * b[k,j]
        for i<8, j<8, k<8: d[i,j] += b[i,k] * a[k,j]
    """)
    nodes = []
    for number, (out, left, right) in enumerate([("c", "a", "b"), ("d", "b", "a")]):
        leaf = Leaf(
            number, instruction="product", bound=BY_PRODUCT.bound, operands=(("acc", out), ("a", left), ("w", right))
        )
        holds = tuple(Hold(t, m, statement=number) for t, m in ((out, "sums"), (left, "pad"), (right, "pad")))
        inner = Tile(f"k{number}", ((number, "k"),), 4, (leaf,), holds=(Hold(right, "weights", statement=number),))
        cut = Tile(f"j{number}", ((number, "j"),), 4, (inner,))
        nodes.append(Tile(f"i{number}", ((number, "i"),), 4, (cut,), holds=holds))
    assert is_exact(two, Plan(tuple(nodes)))


def test_what_stays_the_same_in_all_steps_of_a_sequence_is_filled_before_them() -> None:
    steps = parse("""
        in x: i8[5,8,4]  in w: i8[4,4]  out y: i32[5,8,4]
        seq t<5: for i<8, j<4, k<4: y[t,i,j] += x[t,i,k] * w[k,j]
    """)
    leaf = Leaf(0, instruction="product", bound=BY_PRODUCT.bound, operands=(("acc", "y"), ("a", "x"), ("w", "w")))
    holds = tuple(Hold(t, m, statement=0) for t, m in (("y", "sums"), ("x", "pad"), ("w", "pad"), ("w", "weights")))
    plan = Plan((Tile("t", ((0, "t"),), 1, (Tile("i", ((0, "i"),), 8, (leaf,), holds=holds),)),))
    before, _, inside = str(built(steps, plan)).partition("loop t ")
    assert "load_weights" in before
    assert "load_weights" not in inside
    assert "load(" in inside
    assert is_exact(steps, plan)


# -- what cannot be


def refused(program: Program, plan: Plan, target: Target | None = None) -> str:
    with pytest.raises(PlanError) as caught:
        built(program, plan, target)
    return str(caught.value)


def test_a_call_cannot_do_more_than_its_instruction() -> None:
    assert "a call cannot do 10 of 'i'" in refused(product(), Plan((tiles("k 4, j 4", BY_PRODUCT),)))


def test_an_operand_must_be_held_where_it_is_wanted() -> None:
    plan = Plan((tiles("i 8, j 4, k 4", BY_PRODUCT, inside=(Hold("c", "sums"),)),))
    assert "is not held in 'pad'" in refused(product(), plan)


def test_a_sum_is_not_held_for_a_part_of_itself() -> None:
    around = tiles("k 4, i 8, j 4", BY_PRODUCT, inside=(Hold("c", "sums"), Hold("a", "pad"), Hold("b", "pad")))
    assert "is inside a part of its own sum" in refused(product(), Plan((around,)))


def test_loops_that_no_call_runs_over_come_down_to_one() -> None:
    many = parse(
        "in a: i8[3,8,4] in b: i8[4,4] out c: i32[3,8,4]\nfor n<3, i<8, j<4, k<4: c[n,i,j] += a[n,i,k] * b[k,j]"
    )
    holds = (Hold("c", "sums"), Hold("a", "pad"), Hold("b", "pad"), Hold("b", "weights"))
    assert "3 iterations of 'n' are left" in refused(many, Plan((tiles("i 8", BY_PRODUCT, inside=holds),)))


def test_edges_need_zeros_from_somewhere(tmp_path: Path) -> None:
    """Five columns in calls of four, and nothing that sets the pad to zero: no host, no copy of a zero."""
    alone = variant(
        tmp_path,
        ('[[unit]]\nname = "host"\ncount = 1\nruns = "generic"\n', ""),
        ('[ldx, step]" }\nparams', '[ldx, 1]" }\nparams'),
    )
    odd = parse("in a: i8[8,4] in b: i8[4,5] out c: i32[8,5]\nfor i<8, j<5, k<4: c[i,j] += a[i,k] * b[k,j]")
    text = refused(odd, product_plan("i 8, j 8"), alone)
    assert "nothing sets 'pad' to zero" in text
    assert "y[...] = 0" in text


def test_what_is_held_covers_whole_calls_of_an_instruction_that_does_no_less() -> None:
    odd = parse("in a: i8[8,4] in b: i8[4,5] out c: i32[8,5]\nfor i<8, j<5, k<4: c[i,j] += a[i,k] * b[k,j]")
    assert "a tile of 'j' around it by a multiple of 4" in refused(odd, product_plan("i 8"))
    assert is_exact(odd, product_plan("i 8, j 8"))


def test_a_hold_that_nothing_uses_is_refused() -> None:
    plan = Plan((tiles("i 8", BY_PRODUCT, inside=(Hold("z", "pad"),)),))
    assert "nothing inside its tile uses 'z'" in refused(product(), plan)


def test_a_tile_covers_loops_of_the_same_number_of_tiles() -> None:
    two = parse("in x: i32[8] in z: i32[9] out y: i32[8] out v: i32[9]\nfor i<8: y[i] = x[i]\nfor i<9: v[i] = z[i]")
    assert "covers loops of 8, 9 tiles" in refused(two, Plan((Tile("i", ((0, "i"), (1, "i")), 1, (Leaf(0), Leaf(1))),)))
