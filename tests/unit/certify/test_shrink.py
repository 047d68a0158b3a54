"""Small instances: fewer rounds of every tile, tensors and conditions to match, still valid programs."""

import pytest

from dovetail.certify.shrink import Instance, calls_estimated, reduced
from dovetail.ir.evaluate import evaluate
from dovetail.ir.fill import fill
from dovetail.ir.parse import parse
from dovetail.ir.plan import Leaf, Plan, Tile
from dovetail.ir.program import Program
from dovetail.ir.verify import verify
from dovetail.schedule.collapse import collapse
from dovetail.schedule.default import default_plan
from dovetail.targets.load import load_target

HOST = load_target("x86-64-v3")
BUDGET = 5000
PROGRAMS = {
    "product": "in a: f32[1000,2000] in b: f32[2000,3001] out c: f32[1000,3001]\n"
    "for i<1000, j<3001, k<2000: c[i,j] += a[i,k] * b[k,j]",
    "padded window": "in x: f32[64,57] const w: f32[64,64,3] out y: f32[64,57]\n"
    "for k<64, p<57, c<64, r<3 where 0 <= p+r-1 < 57: y[k,p] += x[c,p+r-1] * w[k,c,r]",
    "wide border": "in x: f32[22000] out y: f32[2182]\n"
    "for p<2182, r<200 where 0 <= 10*p+10*r-100 < 22000: y[p] max= x[10*p+10*r-100]",
    "strided window": "in x: f32[64,230] const w: f32[64,64,7] out y: f32[64,112]\n"
    "for k<64, p<112, c<64, r<7: y[k,p] += x[c,2*p+r] * w[k,c,r]",
    "strided gradient": "in dy: f32[64,112] in w: f32[64,64,3] out dx: f32[64,224]\n"
    "for c<64, i<224, k<64, r<3 where (i+1-r)%2 == 0, 0 <= (i+1-r)//2 < 112: dx[c,i] += dy[k,(i+1-r)//2] * w[k,c,r]",
    "softmax": "in x: f32[512,1000] temp m: f32[512] temp e: f32[512,1000] temp s: f32[512] out y: f32[512,1000]\n"
    "for i<512, j<1000: m[i] max= x[i,j]\nfor i<512, j<1000: e[i,j] = exp(x[i,j] - m[i])\n"
    "for i<512, j<1000: s[i] += e[i,j]\nfor i<512, j<1000: y[i,j] = e[i,j] / s[i]",
    "gather": "in t: f32[500,768] in n: i32[1000] out y: f32[1000,768]\nfor i<1000, j<768: y[i,j] = t[n[i],j]",
    "scatter": "in n: i64[512,512] in u: f32[512,512] temp l: i64[512,512] out y: f32[512,512]\n"
    "for i<512, j<512: l[n[i,j],j] max= i\nfor i<512, j<512: y[i,j] = select(l[i,j] < 0, 0, u[i,j])",
    "two halves": "in x: f32[400] in z: f32[600] out y: f32[1000]\nfor i<400: y[i] = x[i]\nfor i<600: y[i+400] = z[i]",
    "causal": "in q: f32[300,64] in k: f32[300,64] out s: f32[300,300]\n"
    "for i<300, j<300, d<64 where j <= i: s[i,j] += q[i,d] * k[j,d]",
    "every fourth": "in x: f32[64,1002] temp t: f32[1002,64] out y: f32[250,64]\n"
    "for h<1002, c<64: t[h,c] = x[c,h]\nfor p<250, c<64: y[p,c] = t[4*p,c] - t[4*p+2,c]",
    "digits": "in x: f32[30,40,64] const w: f32[64,96] temp t: f32[1200,64] out y: f32[1200,96]\n"
    "for i<30, j<40, c<64: t[40*i+j,c] = x[i,j,c] + 1\nfor e<1200, k<96, c<64: y[e,k] += t[e,c] * w[c,k]",
    "last step": "in x: f32[200,8] out h: f32[201,8] out y: f32[8]\nfor i<8: h[0,i] = 0\n"
    "seq t<200: for i<8: h[t+1,i] = max(h[t,i], x[t,i])\nfor i<8: y[i] = h[200,i]",
}
COUNTED = (
    "in x: f32[9000] temp t: i64[4001] temp v: f32[9000] out y: f32[4001]\nfor i<4001: t[i] = 8990 - 2 * i\n"
    "for k<9000: v[k] = x[k] + 1\nfor i<4001: y[i] = v[t[i]]"
)


def small(program: Program, sizes: dict[str, int] | None = None) -> tuple[Program, Plan, Instance | None]:
    flat = collapse(program)
    plan = default_plan(flat, HOST, 2)
    return flat, plan, reduced(flat, plan, sizes or {}, BUDGET)


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_instance_is_valid_and_smaller(name: str) -> None:
    flat, plan, found = small(parse(PROGRAMS[name]))
    if name == "two halves":  # where the second half begins is a number in an index: nothing says that it moves
        assert found is None
        return
    assert found is not None
    verify(found.program)
    assert found.calls == calls_estimated(found.program, found.plan, {}) < calls_estimated(flat, plan, {}) / 10
    assert [s.combine for s in found.program.statements] == [s.combine for s in flat.statements]


def test_a_product_keeps_two_rounds_of_every_tile_and_the_rests() -> None:
    program = parse(PROGRAMS["product"])
    leaf = Leaf(0, "j", 8)
    inner = Tile("i1", ((0, "i"),), 4, (Tile("k1", ((0, "k"),), 1, (leaf,)),))
    plan = Plan((Tile("k2", ((0, "k"),), 256, (Tile("j1", ((0, "j"),), 24, (inner,)),)),))
    found = reduced(program, plan, {}, BUDGET)
    assert found is not None
    assert str(found.program.statements[0]).startswith("for i<8, j<49, k<5: ")  # 3001 = 125*24 + 1; 2000 = 7*256 + 208
    outer, middle = found.plan.body[0], found.plan.body[0].body[0]  # type: ignore[union-attr]
    assert isinstance(outer, Tile) and isinstance(middle, Tile)
    assert (outer.step, middle.step) == (2, 24)


def test_an_upper_bound_moves_with_the_loop_and_a_lower_one_stays() -> None:
    _, _, found = small(parse(PROGRAMS["padded window"]))
    assert found is not None
    statement = found.program.statements[0]
    extent = {loop.name: loop.extent.const for loop in statement.loops}["p"]
    assert [str(c) for c in statement.where] == ["p + r >= 1", f"p + r <= {extent}"]
    assert found.program.tensor("x").shape[1].const == extent


def test_loops_compared_with_each_other_keep_their_condition() -> None:
    _, _, found = small(parse(PROGRAMS["causal"]))
    assert found is not None
    assert [str(c) for c in found.program.statements[0].where] == ["i >= j"]


def test_a_loop_in_a_quotient_shrinks_by_whole_turns() -> None:
    _, _, found = small(parse(PROGRAMS["strided gradient"]))
    assert found is not None
    shapes = {t.name: [e.const for e in t.shape] for t in found.program.tensors}
    assert shapes["dx"][1] == 2 * shapes["dy"][1]


def test_a_loop_over_every_fourth_element_shrinks_with_the_loop_over_all() -> None:
    _, _, found = small(parse(PROGRAMS["every fourth"]))
    assert found is not None
    (h, _), (p, _) = ([loop.extent.const for loop in s.loops] for s in found.program.statements)
    assert 1002 - h == 4 * (250 - p) > 0


def test_digits_count_as_far_as_their_loops_go() -> None:
    _, _, found = small(parse(PROGRAMS["digits"]))
    assert found is not None
    first, second = found.program.statements
    i, j, _ = (loop.extent.const for loop in first.loops)
    assert second.loops[0].extent.const == i * j < 1200
    assert str(first.out.indices[0]) == (f"{j} * i + j" if j > 1 else "i + j")


def test_places_that_are_written_by_their_number_all_stay() -> None:
    writes = "\n".join(f"for i<1000: t[{n},i] = x[i] + {n}" for n in range(5))
    head = "in x: f32[1000] temp t: f32[5,1000] out y: f32[1000]"
    _, _, found = small(parse(f"{head}\n{writes}\nfor i<1000, n<5: y[i] += t[n,i]"))
    assert found is not None
    assert found.program.tensor("t").shape[0].const == 5


def test_what_is_small_already_stays() -> None:
    assert small(parse("in x: f32[2] out y: f32[2]\nfor i<2: y[i] = x[i]"))[2] is None


def test_places_that_are_counted_stay_inside_what_they_count() -> None:
    """The places are numbers of the first loop: what they point into must not lose more than that leaves."""
    flat, plan, found = small(parse(COUNTED))
    assert found is None or found.calls < calls_estimated(flat, plan, {})
    if found is not None:
        evaluate(found.program, fill(found.program, 1))
