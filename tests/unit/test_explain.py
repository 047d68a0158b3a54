"""Explanations: every choice of a plan in words, with the numbers of the plan and the target."""

from dovetail.explain import explain, summary
from dovetail.ir.certificate import Certificate, Check
from dovetail.ir.parse import parse
from dovetail.ir.plan import Digit, Hold, Leaf, Plan, Tile
from dovetail.targets.load import load_target

PROGRAM = parse("""
in a: f32[64,128]  const b: f32[96,128]  temp t: f32[64,96]  out c: f32[64,96]
for i<64, j<96, k<128: t[i,j] += a[i,k] * b[j,k]
for i<64, j<96: c[i,j] = max(t[i,j], 0)
""")
INNER = Tile("k1", ((0, "k"),), 1, (Leaf(0, "j", 8),))
TILE = Tile("j2", ((0, "j"), (1, "j")), 16, (INNER, Leaf(1, "j", 8)), holds=(Hold("t", "registers"),))
ROWS = Tile("i3", ((0, "i"), (1, "i")), 6, (TILE,))
BLOCK = Tile("j4", ((0, "j"), (1, "j")), 48, (ROWS,), unit="core")
PACKED = Hold("b", "memory", (Digit(0, 16), Digit(1), Digit(0, 1, 16)), ahead=True)
PLAN = Plan((BLOCK,), (PACKED,), note="analytic model")
CHECK = Check("all points are there once", "isl", "2 statements", True)


def test_every_choice_of_the_plan_is_explained() -> None:
    text = explain(PROGRAM, PLAN, load_target("x86-64-v3"), 2, Certificate("", "", "", (CHECK,)))
    assert text == EXPECTED


def test_the_summary_is_about_the_costliest_statement() -> None:
    found = summary(PROGRAM, PLAN, load_target("x86-64-v3"))
    assert found == "8 lanes of j, 6x16 in registers, 1 fused, b packed"


def test_a_recurrence_says_that_its_steps_have_an_order() -> None:
    program = parse("""
    size T in 1..9
    in x: f32[T,4]  out h: f32[T+1,4]
    for i<4: h[0,i] = 0
    seq t<T: for i<4: h[t+1,i] = h[t,i] + x[t,i]
    """)
    plan = Plan((Leaf(0), Tile("t1", ((1, "t"),), 1, (Leaf(1),))))
    text = explain(program, plan, load_target("x86-64-v3"), 1, Certificate("", "", "", ()))
    assert "order      t one step after the other, as the program says" in text
    assert "cores      one core does it all" in text


EXPECTED = """\
for x86-64-v3 (generic) with 2 threads; plan from the analytic model

for i<64, j<96, k<128: t[i, j] += a[i, k] * b[j, k]
  lanes      j, 8 at a time; 96 in all
  registers  6x16 of t (i x j) in 12 registers while k runs; with operands 15 of 16
  layout     b as [j/16, k, j%16], once, ahead of all calls: neighbouring lanes lie 128 elements apart in memory, here \
side by side
  blocks     48 of j: the work inside touches 68 KiB, within L2 (512 KiB)
  cores      j in 2 parts of 48, spread over 2 threads

for i<64, j<96: c[i, j] = max(t[i, j], 0)
  lanes      j, 8 at a time; 96 in all
  fused      runs on the tile of t while that is in registers

certificate
  ok     all points are there once (isl: 2 statements)"""
