"""What a whole program costs, told for every way to write the same computation."""

import numpy as np
import pytest

from dovetail.ir.evaluate import evaluate
from dovetail.ir.fill import fill
from dovetail.ir.parse import parse
from dovetail.ir.plan import Tile
from dovetail.ir.program import Program
from dovetail.pipeline import compile
from dovetail.rewrite.forms import forms
from dovetail.schedule.ahead import split_ahead
from dovetail.schedule.collapse import collapse
from dovetail.schedule.default import default_plan
from dovetail.schedule.estimate import arithmetic_cycles, estimate_cycles
from dovetail.targets.load import load_target

HOST = load_target("x86-64-v3")


def conv(c: int, k: int, n: int) -> Program:
    loops = f"b<1, k<{k}, p<{n}, q<{n}, c<{c}, r<3, s<3 where 0 <= p+r-1 < {n}, 0 <= q+s-1 < {n}"
    head = f"in x: f32[1,{c},{n},{n}] const w: f32[{k},{c},3,3] out y: f32[1,{k},{n},{n}]"
    return parse(f"{head}\nfor {loops}: y[b,k,p,q] += x[b,c,p+r-1,q+s-1] * w[k,c,r,s]")


def columns(c: int, k: int, n: int) -> Program:
    copied = f"c<{c}, r<3, s<3, p<{n}, q<{n} where 0 <= p+r-1 < {n}, 0 <= q+s-1 < {n}"
    head = f"in x: f32[{c},{n},{n}] const w: f32[{k},{c},3,3] out y: f32[{k},{n},{n}] temp t: f32[{c},3,3,{n},{n}]"
    return parse(
        f"{head}\nfor {copied}: t[c,r,s,p,q] += x[c,p+r-1,q+s-1]\n"
        f"for k<{k}, p<{n}, q<{n}, c<{c}, r<3, s<3: y[k,p,q] += t[c,r,s,p,q] * w[k,c,r,s]"
    )


def product(m: int, n: int, k: int, role: str = "in") -> Program:
    head = f"in a: f32[{m},{k}] {role} b: f32[{k},{n}] out c: f32[{m},{n}]"
    return parse(f"{head}\nfor i<{m}, j<{n}, l<{k}: c[i,j] += a[i,l] * b[l,j]")


def test_twice_the_work_costs_about_twice() -> None:
    one, two = (estimate_cycles(product(256, 256, n), HOST, 1) for n in (256, 512))
    assert 1.8 < two / one < 2.2


def test_it_is_more_than_the_arithmetic_at_best_and_not_much_more() -> None:
    least = 512**3 / 16  # two multiply-adds of eight lanes in a cycle
    assert least < estimate_cycles(product(512, 512, 512), HOST, 1) < 1.5 * least


def test_two_units_are_faster_than_one_where_there_is_enough_to_do() -> None:
    large, small = product(512, 512, 512), product(4, 4, 4)
    assert estimate_cycles(large, HOST, 2) < 0.6 * estimate_cycles(large, HOST, 1)
    assert estimate_cycles(small, HOST, 2) < 10_000


@pytest.mark.parametrize("shape", [(64, 64, 56), (128, 128, 28), (256, 256, 14)])
def test_windows_that_are_stored_first_cost_more_than_windows_in_place(shape: tuple[int, int, int]) -> None:
    assert estimate_cycles(conv(*shape), HOST, 2) < estimate_cycles(columns(*shape), HOST, 2)


def test_forms_with_less_arithmetic_cost_less_until_their_constants_do_not_fit() -> None:
    order = {}
    for shape in ((64, 64, 56), (512, 512, 7)):
        program = conv(*shape)
        costs = {form.name: estimate_cycles(form.program, HOST, 2) for form in forms(program, relaxed=True)}
        costs["direct"] = estimate_cycles(program, HOST, 2)
        order[shape] = sorted(costs, key=lambda name: costs[name])
    assert order[64, 64, 56] == ["winograd-4x4", "winograd-2x2", "direct", "im2col"]
    assert order[512, 512, 7][:2] == ["winograd-2x2", "direct"]


def test_constants_that_do_not_fit_the_last_cache_cost_their_way() -> None:
    kept, streamed = (estimate_cycles(product(4, n, 1024, "const"), HOST, 2) / n for n in (1024, 16384))
    assert streamed > 1.5 * kept


def test_what_is_computed_ahead_costs_nothing() -> None:
    text = """in x: f32[64,64] const w: f32[64,64] out y: f32[64,64] temp u: f32[64,64]
for i<64, j<64, l<64: u[i,j] += w[i,l] * w[l,j]
for i<64, j<64, l<64: y[i,j] += x[i,l] * u[l,j]"""
    both = parse(text)
    alone = parse(text.replace("temp u", "const u").replace("for i<64, j<64, l<64: u[i,j] += w[i,l] * w[l,j]\n", ""))
    assert split_ahead(both).ahead is not None
    assert estimate_cycles(both, HOST, 1) == estimate_cycles(alone, HOST, 1)


def test_steps_are_counted() -> None:
    text = "in x: f32[{n},64] out h: f32[{m},64]\nfor i<64: h[0,i] = 0\nseq t<{n}: for i<64: h[t+1,i] = h[t,i] + x[t,i]"
    few, many = (estimate_cycles(parse(text.format(n=n, m=n + 1)), HOST, 1) for n in (10, 100))
    assert 5 < many / few < 12


def test_the_same_program_costs_the_same() -> None:
    assert estimate_cycles(conv(16, 16, 14), HOST, 2) == estimate_cycles(conv(16, 16, 14), HOST, 2)


def test_copies_with_zeros_around_run_along_memory() -> None:
    flat = collapse(columns(8, 16, 56))
    assert [str(t.shape) for t in flat.tensors if t.name == "t"] == [str((parse_extent(72), parse_extent(3136)))]
    plan = default_plan(flat, HOST, 2)
    first = next(iter(plan.leaves()))
    assert (first.lanes, first.width) == ("q", 8)
    node = plan.body[0]
    assert isinstance(node, Tile) and node.unit


@pytest.mark.parametrize("shape", [(3, 5, 56), (2, 8, 30), (3, 4, 7)])
def test_stored_windows_are_exact(shape: tuple[int, int, int]) -> None:
    program = columns(*shape)
    arrays = fill(program, 3)
    kernel = compile(program, "host", 2, cache=False, plan=default_plan(collapse(program), HOST, 2))
    found = kernel(*(arrays[t.name] for t in program.inputs))
    np.testing.assert_array_equal(found, evaluate(program, arrays)["y"])


def parse_extent(number: int) -> object:
    return parse(f"in x: f32[{number}] out y: f32[1]\ny[0] = x[0]").tensors[0].shape[0]


def test_copies_that_turn_run_along_what_they_write() -> None:
    text = """in x: f32[16,20,20] out t: f32[22,22,16]
for h<22, l<22, c<16 where 0 <= h-1 < 20, 0 <= l-1 < 20: t[h,l,c] += x[c,h-1,l-1]"""
    first = next(iter(default_plan(collapse(parse(text)), HOST, 2).leaves()))
    assert (first.lanes, first.width) == ("c", 8)


@pytest.mark.parametrize("threads", [1, 2])
def test_no_program_is_estimated_below_its_arithmetic(threads: int) -> None:
    program = conv(64, 64, 28)
    least = arithmetic_cycles(program, HOST, threads)
    assert least == 28 * 28 * 64 * 64 * 9 / 8 / 2 / threads
    assert least < estimate_cycles(program, HOST, threads) < 3 * least
