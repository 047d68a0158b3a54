"""Steps of a sequence, as text before and after."""

from __future__ import annotations

import numpy as np

from dovetail.ir.evaluate import evaluate
from dovetail.ir.fill import fill
from dovetail.ir.gates import with_parts_apart
from dovetail.ir.inline_steps import with_values_inside
from dovetail.ir.parse import parse
from dovetail.ir.program import Program
from dovetail.ir.steps import with_whole_steps
from dovetail.ir.verify import verify

CELL = """in a: f32[5, 12]  const r: f32[12, 4]  in h0: f32[4]
temp h: f32[6, 4]  temp u: f32[5, 12]  temp s: f32[5, 12]  temp p: f32[5, 4]  out y: f32[5, 4]
for j<4: h[0, j] = h0[j]
seq t<5: for m<12, k<4: u[t, m] += h[t, k] * r[m, k]
seq t<5: for m<12: s[t, m] = u[t, m] + a[t, m]
seq t<5: for j<4: p[t, j] = s[t, j + 8]
seq t<5: for j<4: h[t + 1, j] = max(min(p[t, j] - s[t, j + 4], 3.0), -3.0)
for t<5, j<4: y[4 - t, j] = h[t + 1, j]
"""


def lines(program: Program) -> list[str]:
    return [str(statement) for statement in program.statements]


def same(before: Program, after: Program) -> None:
    """Both are programs, and compute the same bits."""
    verify(after)
    arrays = fill(before, 4)
    given = {t.name: arrays[t.name].reshape([e.const for e in t.shape]) for t in after.inputs}
    wanted, found = evaluate(before, arrays), evaluate(after, given)
    for tensor in before.outputs:
        assert np.count_nonzero(wanted[tensor.name])
        np.testing.assert_array_equal(found[tensor.name], wanted[tensor.name])


def test_what_follows_step_by_step_becomes_part_of_the_steps_and_a_state_a_value() -> None:
    source = parse(CELL)
    found = with_whole_steps(source)
    assert lines(found)[-3:] == [
        "seq t<5: for j<4: h_now[t, j] = max(min(p[t, j] - s[t, j + 4], 3.0), -3.0)",
        "seq t<5: for j<4: h[t + 1, j] = h_now[t, j]",
        "seq t<5: for j<4: y[4 - t, j] = h_now[t, j]",
    ]
    same(source, found)


def test_what_reads_another_step_stays_outside() -> None:
    source = parse(CELL.replace("y[4 - t, j] = h[t + 1, j]", "y[t, j] = h[5 - t, j]"))
    assert not with_whole_steps(source).statements[-1].seq


def test_sequences_that_were_apart_stay_apart() -> None:
    second = """temp g: f32[6, 4]  temp z: f32[5, 4]  out w: f32[5, 4]
for t<5, j<4: z[t, j] = h[t + 1, j]
seq t<5: for j<4: w[t, j] = z[4 - t, j]
"""
    source = parse(CELL + second)
    found = with_whole_steps(source)
    assert len([group for group in found.groups() if found.statements[group[0]].seq]) == 2
    same(source, found)


def test_values_that_are_only_cut_are_computed_where_they_are_read() -> None:
    source = parse(CELL)
    found = with_values_inside(with_whole_steps(source))
    assert {t.name for t in found.temps} == {"h", "u", "p", "h_now"}
    assert lines(found)[2] == "seq t<5: for j<4: p[t, j] = u[t, j + 8] + a[t, j + 8]"
    assert "p[t, j] - (u[t, j + 4] + a[t, j + 4])" in lines(found)[3]
    same(source, found)


def test_a_value_is_not_read_after_what_it_was_made_of_has_changed() -> None:
    text = """in x: f32[6]  temp h: f32[7, 6]  temp k: f32[6, 6]  out y: f32[6, 6]
for j<6: h[0, j] = x[j]
seq t<6: for j<6: h[t + 1, j] = h[t, j] + 1.0
seq t<6: for j<6: k[t, j] = h[t + 1, j]
seq t<6: for j<6: y[t, j] = k[t, j] + h[t, j]
"""
    source = parse(text)
    same(source, with_values_inside(with_whole_steps(source)))


def test_a_sum_that_is_read_in_parts_has_them_as_a_dimension_and_no_others() -> None:
    source = parse(CELL)
    found = with_parts_apart(with_values_inside(with_whole_steps(source)))
    assert lines(found)[1] == "seq t<5: for g<2, j_<4, k<4: u[t, g, j_] += h[t, k] * r[g + 1, j_, k]"
    assert "u[t, 1, j] + a[t, j + 8]" in lines(found)[2]
    assert [str(e) for e in found.tensor("r").shape] == ["3", "4", "4"]
    same(source, found)


def test_parts_that_overlap_stay_together() -> None:
    source = parse(CELL.replace("s[t, j + 4]", "s[t, j + 5]"))
    found = with_parts_apart(with_values_inside(with_whole_steps(source)))
    assert "u[t, m] += h[t, k] * r[m, k]" in lines(found)[1]
    same(source, found)
