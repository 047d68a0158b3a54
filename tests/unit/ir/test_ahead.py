"""What needs only constants is split from a program, and the two parts together mean what it meant."""

import numpy as np
import pytest

from dovetail.ir.ahead import split_ahead
from dovetail.ir.evaluate import evaluate
from dovetail.ir.fill import fill
from dovetail.ir.parse import parse
from dovetail.ir.program import Program
from dovetail.ir.verify import verify

SCALED = """
const w: f64[4]  const b: f64[4]  in x: f64[4]  temp v: f64[4]  temp u: f64[4]  out y: f64[4]
for i<4: v[i] = w[i] + w[i]
for i<4: u[i] = v[i] * b[i]
for i<4: y[i] = x[i] * u[i] + b[i]
"""


def agreed(program: Program) -> tuple[Program, Program]:
    """The two parts, after checking that both are programs and that they compute what ``program`` does."""
    ahead, main = split_ahead(program)
    assert ahead is not None
    verify(ahead)
    verify(main)
    arrays = fill(program, 1, {})
    made = evaluate(ahead, {t.name: arrays[t.name] for t in ahead.inputs})
    found = evaluate(main, {t.name: made[t.name] if t.name in made else arrays[t.name] for t in main.inputs})
    for name, array in evaluate(program, arrays).items():
        np.testing.assert_array_equal(found[name], array)
    return ahead, main


def test_what_constants_alone_decide_goes_ahead_with_all_it_is_computed_from() -> None:
    ahead, main = agreed(parse(SCALED))
    assert [str(s) for s in ahead.statements] == ["for i<4: v[i] = w[i] + w[i]", "for i<4: u[i] = v[i] * b[i]"]
    assert [str(t) for t in ahead.tensors] == ["const w: f64[4]", "const b: f64[4]", "temp v: f64[4]", "out u: f64[4]"]
    assert [str(t) for t in main.tensors] == ["const b: f64[4]", "in x: f64[4]", "const u: f64[4]", "out y: f64[4]"]


def test_sums_that_start_at_zero_go_ahead() -> None:
    text = """
    const g: f64[3,4]  const w: f64[4]  in x: f64[3]  temp u: f64[3]  out y: f64[3]
    for i<3, j<4: u[i] += g[i,j] * w[j]
    for i<3: y[i] = x[i] * u[i]
    """
    ahead, main = agreed(parse(text))
    assert len(ahead.statements) == len(main.statements) == 1


def test_numbers_go_ahead() -> None:
    text = """
    const w: f64[4]  in x: f64[4]  temp two: f64[1]  temp u: f64[4]  out y: f64[4]
    two[0] = 2
    for i<4: u[i] = w[i] * two[0]
    for i<4: y[i] = x[i] * u[i] + two[0]
    """
    ahead, main = agreed(parse(text))
    assert [t.name for t in ahead.outputs] == ["two", "u"]
    assert len(main.statements) == 1


@pytest.mark.parametrize(
    ("why", "text"),
    [
        ("nothing is constant", "in x: f64[4] temp t: f64[4] out y: f64[4] for i<4: t[i]=x[i] for i<4: y[i]=t[i]"),
        ("an output", "const w: f64[4] out y: f64[4] for i<4: y[i] = w[i] + 1"),
        (
            "a size",
            "size m in 1..4 in x: f64[m] const w: f64[m] temp t: f64[m] out y: f64[m] "
            "for i<m: t[i] = w[i] + 1 for i<m: y[i] = t[i] * x[i]",
        ),
        (
            "read before all of it is there",
            "const w: f64[4] in x: f64[4] temp t: f64[8] out y: f64[4] out z: f64[8] "
            "for i<4: t[i] = w[i] for i<4: y[i] = x[i]+t[i] for i<4: t[i+4] = w[i] for i<8: z[i] = t[i]",
        ),
        (
            "one of its writers reads an input",
            "const w: f64[4] in x: f64[4] temp t: f64[4] out y: f64[4] "
            "for i<4: t[i] += w[i] for i<4: t[i] += x[i] for i<4: y[i] = t[i]",
        ),
        (
            "in one row of steps with what stays",
            "const w: f64[4] in x: f64[4] temp t: f64[4] out y: f64[4] seq i<4: t[i] = w[i] seq i<4: y[i] = t[i]*x[i]",
        ),
        (
            "two rows of steps would become one",
            "const w: f64[4] in x: f64[4] temp a: f64[4] temp t: f64[4] out y: f64[4] "
            "seq i<4: a[i] = x[i] for i<4: t[i] = w[i] + 1 seq i<4: y[i] = a[3-i] * t[i]",
        ),
    ],
)
def test_a_program_stays_whole(why: str, text: str) -> None:
    program = parse(text)
    verify(program)
    assert split_ahead(program) == (None, program), why


def test_steps_over_constants_alone_go_ahead() -> None:
    text = """
    const w: f64[4]  in x: f64[4]  temp s: f64[5]  out y: f64[4]
    s[0] = 0
    seq t<4: s[t+1] = s[t] + w[t]
    for i<4: y[i] = s[i+1] * x[i]
    """
    ahead, _ = agreed(parse(text))
    assert len(ahead.statements) == 2


def test_a_constant_that_nothing_reads_stays_an_argument() -> None:
    ahead, main = agreed(parse(SCALED.replace("const b", "const unused: f64[2] const b")))
    assert "unused" not in [t.name for t in ahead.tensors]
    assert "unused" in [t.name for t in main.tensors]
