"""Programs as they are compiled."""

from __future__ import annotations

from dovetail.ir.compact import aligned, compact
from dovetail.ir.parse import parse
from dovetail.ir.verify import verify


def test_a_temporary_lies_as_the_result_it_becomes() -> None:
    program = parse(
        "in x: f32[7, 3]  in w: f32[4, 3]  in b: f32[4]  temp t: f32[1, 4, 7]  temp u: f32[1, 4, 7]  out y: f32[7, 4]\n"
        "for k<4, p<7, c<3: t[0, k, p] += x[p, c] * w[k, c]\n"
        "for k<4, p<7: u[0, k, p] = t[0, k, p] + b[k]\n"
        "for k<4, p<7: y[p, k] = max(u[0, k, p], 0)"
    )
    found = compact(program)
    verify(found)
    assert [str(t) for t in found.temps] == ["temp t: f32[1, 7, 4]"]
    assert "\n".join(map(str, found.statements)) == (
        "for k<4, p<7, c<3: t[0, p, k] += x[p, c] * w[k, c]\nfor k<4, p<7: y[p, k] = max(t[0, p, k] + b[k], 0)"
    )


def test_a_temporary_that_two_read_stays_as_it_is() -> None:
    program = parse(
        "in x: f32[7, 3]  temp t: f32[3, 7]  out y: f32[7, 3]  out z: f32[3, 7]\n"
        "for a<7, b<3: t[b, a] = exp(x[a, b])\n"
        "for a<7, b<3: y[a, b] = t[b, a] + 1\n"
        "for a<7, b<3: z[b, a] = t[b, a] - 1"
    )
    assert aligned(program) == program
