"""Programs that mean something are accepted, quickly. What is refused is in ``tests/errors/program``."""

import time

import pytest

from dovetail.base.errors import LimitError
from dovetail.base.limits import Limits
from dovetail.ir.parse import parse
from dovetail.ir.verify import verify
from dovetail.poly import sets

VALID = {
    "padded convolution": """in x: f32[1, 64, 56, 56] const w: f32[64, 64, 3, 3] out y: f32[1, 64, 56, 56]
        for n<1, k<64, p<56, q<56, c<64, r<3, s<3 where 0 <= p + r - 1 < 56, 0 <= q + s - 1 < 56:
        y[n, k, p, q] += x[n, c, p + r - 1, q + s - 1] * w[k, c, r, s]""",
    "backward data": """in dy: f32[1, 8, 28, 28] const w: f32[8, 8, 3, 3] out dx: f32[1, 8, 56, 56]
        for n<1, k<8, h<56, g<56, c<8, r<3, s<3
        where (h + 1 - r) % 2 == 0, (g + 1 - s) % 2 == 0, 0 <= (h + 1 - r) // 2 < 28, 0 <= (g + 1 - s) // 2 < 28:
        dx[n, c, h, g] += dy[n, k, (h + 1 - r) // 2, (g + 1 - s) // 2] * w[k, c, r, s]""",
    "recurrence": """size T in 0..100
        in h0: f32[8] in W: f32[8, 8] in x: f32[T, 8] out h: f32[T + 1, 8] temp a: f32[T, 8]
        for i<8: h[0, i] = h0[i]
        seq t<T: for i<8, j<8: a[t, i] += W[i, j] * h[t, j]
        seq t<T: for i<8: h[t + 1, i] = max(a[t, i] + x[t, i], 0.0)""",
    "layer norm": """size n in 1..512
        in x: f32[n, 128] const g: f32[128] const b: f32[128] out y: f32[n, 128]
        temp m: f32[n] temp v: f32[n] temp d: f32[n, 128] temp r: f32[n] temp z: f32[n, 128]
        for i<n, j<128: m[i] += x[i, j]
        for i<n, j<128: d[i, j] = x[i, j] - m[i] / 128.0
        for i<n, j<128: v[i] += d[i, j] * d[i, j]
        for i<n: r[i] = rsqrt(v[i] / 128.0 + 1e-5)
        for i<n, j<128: z[i, j] = d[i, j] * r[i]
        for i<n, j<128: y[i, j] = z[i, j] * g[j] + b[j]""",
    "split axis": "in x: f32[64] out y: f32[16, 4] for i<64: y[i // 4, i % 4] = x[i]",
    "joined axes": "in x: f32[16, 4] out y: f32[64] for i<16, j<4: y[4 * i + j] = x[i, j]",
    "concatenation": "size n in 0..9 in a: f32[n] in b: f32[5] out y: f32[n + 5]"
    " for i<n: y[i] = a[i] for i<5: y[n + i] = b[i]",
    "gather": "in x: f32[10, 4] in f: i32[7] out y: f32[7, 4] for i<7, j<4: y[i, j] = x[f[i], j]",
    "scatter": "inout y: f32[10] in x: f32[7] in f: i32[7] for i<7: y[f[i]] = x[i]",
    "cumulative sum": "size n in 1..10 in x: f32[n] out y: f32[n]"
    " for where n >= 1: y[0] = x[0] seq t<n - 1: y[t + 1] = y[t] + x[t + 1]",
    "in place": "inout y: f32[10] for i<10: y[i] = y[i] + 1.0",
    "diagonal": "size n in 1..9 in x: f32[n, n] out y: f32[n] for i<n, j<n where i == j: y[i] = x[i, j]",
    "empty loop": "in x: f32[0, 4] out y: f32[0, 4] for i<0, j<4: y[i, j] = x[i, j + 9]",
    "two sums": "in x: f32[4] in z: f32[9] out y: f32[] for i<4: y[] += x[i] for i<9: y[] += z[i]",
    "rows and sums": "in x: f32[4, 9] out y: f32[5] for i<4, k<9: y[i] += x[i, k] for i<1: y[4] = 1.0",
}
MILLISECONDS = {"padded convolution": 3, "layer norm": 10, "recurrence": 10}
SLACK = 4
"""The machines that run tests are shared and slower than the one the targets were set on."""


@pytest.mark.parametrize("name", VALID)
def test_a_program_that_means_something_is_accepted(name: str) -> None:
    verify(parse(VALID[name]))


@pytest.mark.parametrize("name", MILLISECONDS)
def test_verifying_is_quick(name: str) -> None:
    program = parse(VALID[name])
    spent = []
    for _ in range(5):
        for question in (sets.first_point, sets.first_missing, sets.first_collision, sets.first_meeting):
            question.cache_clear()
        start = time.perf_counter()
        verify(program)
        spent.append(time.perf_counter() - start)
    assert min(spent) * 1000 < MILLISECONDS[name] * SLACK


def test_limits_are_the_callers() -> None:
    program = parse(VALID["layer norm"])
    with pytest.raises(LimitError, match="6 statements, the limit is 5"):
        verify(program, Limits(statements=5))
    with pytest.raises(LimitError, match="dimension 1 of 'x' is 128, the limit is 100"):
        verify(parse("in x: f32[4, 128] out y: f32[] y[] = x[0, 0]"), Limits(extent=100))
    with pytest.raises(LimitError, match="262144 bytes, the limit is 1000"):
        verify(program, Limits(tensor_bytes=1000))
