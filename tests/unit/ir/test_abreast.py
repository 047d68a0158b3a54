"""Sequences of as many steps, as text before and after."""

from __future__ import annotations

from dovetail.ir.abreast import with_sequences_abreast
from dovetail.ir.parse import parse
from dovetail.ir.program import Program
from tests.unit.ir.test_steps import lines, same

THERE = """for j<4: h[0, j] = 0.0
seq t<5: for j<4: h[t + 1, j] = max(h[t, 3 - j] + x[t, j], 0.0)
"""
BACK = """for j<4: g[0, j] = 1.0
seq s<5: for t<4: g[s + 1, t] = min(g[s, t] + x[4 - s, t], 9.0)
"""
END = """for j<4: y[j] = h[5, j] + g[5, j]
"""


def source(text: str) -> Program:
    return parse("in x: f32[5, 4]  temp h: f32[6, 4]  temp g: f32[6, 4]  out y: f32[4]\n" + text)


def sequences(program: Program) -> list[tuple[int, ...]]:
    return [group for group in program.groups() if program.statements[group[0]].seq]


def test_two_directions_are_walked_together() -> None:
    before = source(THERE + BACK + END)
    found = with_sequences_abreast(before)
    assert lines(found) == [
        "for j<4: h[0, j] = 0.0",
        "for j<4: g[0, j] = 1.0",
        "seq t_<5: for j<4: h[t_ + 1, j] = max(h[t_, 3 - j] + x[t_, j], 0.0)",
        "seq t_<5: for t<4: g[t_ + 1, t] = min(g[t_, t] + x[4 - t_, t], 9.0)",
        "for j<4: y[j] = h[5, j] + g[5, j]",
    ]
    same(before, found)


def test_a_sequence_that_needs_the_other_one_comes_after_it() -> None:
    before = source(THERE + BACK.replace("x[4 - s, t]", "h[5 - s, t]") + END)
    assert with_sequences_abreast(before) is before


def test_what_lies_between_and_is_needed_keeps_them_apart() -> None:
    text = THERE + "for j<4: g[0, j] = h[5, j]\n" + BACK.partition("\n")[2] + END
    before = source(text)
    assert with_sequences_abreast(before) is before


def test_other_numbers_of_steps_are_other_sequences() -> None:
    before = source(THERE + BACK.replace("s<5", "s<3").replace("g[5", "g[3") + END.replace("g[5", "g[3"))
    assert with_sequences_abreast(before) is before


def test_three_become_one() -> None:
    third = "for j<4: k[0, j] = 2.0\nseq r<5: for j<4: k[r + 1, j] = 0.5 * k[r, j] + x[r, j]\n"
    text = "temp k: f32[6, 4]\n" + THERE + BACK + third + END.replace("\n", " + k[5, j]\n")
    before = parse("in x: f32[5, 4]  temp h: f32[6, 4]  temp g: f32[6, 4]  out y: f32[4]\n" + text)
    found = with_sequences_abreast(before)
    assert [len(group) for group in sequences(found)] == [3]
    same(before, found)


def test_the_number_of_steps_may_be_a_run_time_size() -> None:
    text = str(source(THERE + BACK + END)).replace("[5, 4]", "[T, 4]").replace("[6, 4]", "[T + 1, 4]")
    text = text.replace("<5", "<T").replace("[5,", "[T,").replace("4 - s", "T - 1 - s")
    found = with_sequences_abreast(parse("size T in 1..9\n" + text))
    assert [len(group) for group in sequences(found)] == [2]
