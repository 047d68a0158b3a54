"""Equal computations have one text, whether they are written as programs or as terms; look-alikes have two."""

from __future__ import annotations

import pytest

from dovetail.ir.canonical import canonicalise
from dovetail.ir.functional.normalise import normalise
from dovetail.ir.functional.text import parse_definition
from dovetail.ir.parse import parse

MATMUL = "in a: f32[6, 8]  in b: f32[8, 5]  out y: f32[6, 5]  for i<6, j<5, k<8: y[i, j] += a[i, k] * b[k, j]"
CONV = r"""in x: f32[4, 9, 9]  const w: f32[5, 4, 3, 3]  out y: f32[5, 7, 7]
for k<5, p<7, q<7, c<4, r<3, s<3: y[k, p, q] += x[c, p + r, q + s] * w[k, c, r, s]"""
SOFTMAX = """in x: f32[6]  out y: f32[6]  temp m: f32[]  temp e: f32[6]  temp s: f32[]
for i<6: m[] max= x[i]
for i<6: e[i] = exp(x[i] - m[])
for i<6: s[] += e[i]
for i<6: y[i] = e[i] / s[]"""
GRU = """in h: f32[4]  in r: f32[4]  const R: f32[4, 4]  in b: f32[4]  out y: f32[4]  temp u: f32[4]
for i<4, k<4: u[i] += R[i, k] * h[k]
for i<4: y[i] = tanh(r[i] * (u[i] + b[i]))"""
HEAD = "in x: f32[8]  in z: f32[8]  out y: f32[8]  "
COPY = "in x: f32[8]  out y: f32[8]  "
RUNNING = COPY + "temp h: f32[9]  h[0] = 0.0  seq t<8: h[t + 1] = h[t] + x[t]  "
TERM = "def f(x: f32[8], z: f32[8]) -> y = "
ONE = "def f(x: f32[8]) -> y = "

EQUAL = {
    # loop names and order
    "names of loops": (HEAD + "for i<8: y[i] = x[i] * z[i]", HEAD + "for n<8: y[n] = x[n] * z[n]"),
    "order of loops": (MATMUL, MATMUL.replace("i<6, j<5, k<8", "k<8, j<5, i<6")),
    "names of values": (ONE + r"map(\v -> v * 2, x)", ONE + r"map(\u -> u * 2, x)"),
    "a product as a term": (
        MATMUL,
        r"def f(a: f32[6, 8], b: f32[8, 5]) -> y = "
        r"map(\r -> map(\c -> reduce(add, 0, map(mul, zip(r, c))), transpose(b)), a)",
    ),
    "a product with the maps exchanged": (
        MATMUL,
        r"def f(a: f32[6, 8], b: f32[8, 5]) -> y = "
        r"transpose(map(\c -> map(\r -> reduce(add, 0, map(mul, zip(r, c))), a), transpose(b)))",
    ),
    "reductions in another order": (
        "in x: f32[3, 4, 5]  out y: f32[3]  for i<3, j<4, k<5: y[i] += x[i, j, k]",
        r"def f(x: f32[3, 4, 5]) -> y = map(\v -> reduce(add, 0, map(reduce(add, 0), transpose(v))), x)",
    ),
    "a reduction lifted over an array": (
        "in x: f32[3, 4]  out y: f32[4]  for i<3, j<4: y[j] += x[i, j]",
        r"def f(x: f32[3, 4]) -> y = reduce(\a b -> map(add, zip(a, b)), repeat(4, 0), x)",
    ),
    "a convolution by windows": (
        CONV,
        r"""def f(x: f32[4, 9, 9], const w: f32[5, 4, 3, 3]) -> y =
        map(\k -> map(map(\v -> reduce(add, 0, map(\a b -> reduce(add, 0, map(\c d -> reduce(add, 0,
            map(mul, zip(c, d))), zip(a, b))), zip(v, k)))),
            map(\l -> transpose(map(slide(3, 1), l)), slide(3, 1, map(transpose, transpose(x))))),
          map(\v -> map(transpose, transpose(v)), w))""",
    ),
    "a convolution with the channels outside": (
        CONV,
        r"""def f(x: f32[4, 9, 9], const w: f32[5, 4, 3, 3]) -> y =
        map(\k -> transpose(map(\row -> map(\v -> reduce(add, 0, map(\xc wc -> reduce(add, 0,
            map(\a b -> reduce(add, 0, map(mul, zip(a, b))), zip(xc, wc))), zip(v, k))), row),
            view([q<7, p<7, c<4, r<3, s<3: c, p + r, q + s], x))), w)""",
    ),
    # commutative operand order
    "order of factors": (HEAD + "for i<8: y[i] = x[i] * z[i]", HEAD + "for i<8: y[i] = z[i] * x[i]"),
    "order of factors in terms": (TERM + "map(mul, zip(x, z))", TERM + "map(mul, zip(z, x))"),
    "order of both": (
        HEAD + "for i<8: y[i] = max(x[i] + z[i], 1.0)",
        TERM + r"map(\a b -> max(1.0, a + b), zip(z, x))",
    ),
    "order of comparison": (
        COPY + "for i<8: y[i] = select(x[i] == 1.0, 2.0, 3.0)",
        COPY + "for i<8: y[i] = select(1.0 == x[i], 2.0, 3.0)",
    ),
    "operands passed by name": (TERM + "map(add, zip(x, z))", TERM + r"(\f -> map(f, zip(z, x)))(\a b -> b + a)"),
    # spelling of indices
    "sums in indices": (
        "in x: f32[9]  out y: f32[8]  for i<8: y[i] = x[i + 1]",
        "in x: f32[9]  out y: f32[8]  for i<8: y[i] = x[2*i + 3 - 2 - i]",
    ),
    "a slice and a view": (
        "def f(x: f32[9]) -> y = slice(1, 8, 1, x)",
        "def f(x: f32[9]) -> y = view([i<8: 1 + i], x)",
    ),
    "a slice of a slice": (
        "in x: f32[9]  out y: f32[3]  for i<3: y[i] = x[2*i + 3]",
        "def f(x: f32[9]) -> y = slice(1, 3, 1, slice(0, 4, 2, slice(1, 8, 1, x)))",
    ),
    "remainders that change nothing": (COPY + "for i<8: y[i] = x[i % 8]", COPY + "for i<8: y[i] = x[i]"),
    "quotients of sums": (
        "in x: f32[4]  out y: f32[2, 4]  for a<2, b<4: y[a, b] = x[(4*b + a) // 4]",
        "def f(x: f32[4]) -> y = repeat(2, x)",
    ),
    "conditions that always hold": (COPY + "for i<8 where i < 9: y[i] = x[i]", ONE + 'to("", x)'),
    "padding that is a condition": (
        "in x: f32[8]  out y: f32[8]  for i<8, j<3 where i+j >= 1, i+j <= 8: y[i] += x[i+j-1]",
        "def f(x: f32[8]) -> y = map(reduce(add, 0), slide(3, 1, pad(1, 1, none, x)))",
    ),
    "positions": (
        "out y: i64[8]  for i<8: y[i] = 2 * i + 1",
        r"def f() -> y = map(\i -> i + 1 + i, iota(8))",
    ),
    # unit loops
    "a loop that runs once": (COPY + "for o<1, i<8: y[i + o] = x[i]", COPY + "for i<8: y[i] = x[i]"),
    "a map over one element": (
        "in x: f32[1, 8]  out y: f32[1, 8]  for i<8: y[0, i] = x[0, i] + 1.0",
        r"def f(x: f32[1, 8]) -> y = map(map(\v -> v + 1.0), x)",
    ),
    "a sum of one": (
        "in x: f32[8]  out y: f32[8]  for i<8: y[i] += x[i]",
        r"def f(x: f32[8]) -> y = map(\v -> reduce(add, 0, repeat(1, v)), x)",
    ),
    # split-then-joined axes
    "an axis split and joined": (
        COPY + "for a<2, b<4: y[4*a + b] = x[4*a + b]",
        ONE + "join(split(4, x))",
    ),
    "an axis split twice": (
        ONE + r"map(\v -> v + 1, x)",
        ONE + r"join(map(join, map(split(2), map(map(\v -> v + 1), split(4, x)))))",
    ),
    "a sum over a split axis": (
        "in x: f32[8]  out y: f32[]  for i<8: y[] += x[i]",
        r"def f(x: f32[8]) -> y = reduce(add, 0, map(reduce(add, 0), split(2, x)))",
    ),
    "quotient and remainder as two loops": (
        "in x: f32[8]  out y: f32[2, 4]  for i<8: y[i // 4, i % 4] = x[i]",
        "def f(x: f32[8]) -> y = split(4, x)",
    ),
    # names and order of temporaries
    "names of temporaries": (
        SOFTMAX,
        SOFTMAX.replace("e:", "t:").replace("e[", "t[").replace("m[]", "q[]").replace("m:", "q:"),
    ),
    "order of temporaries": (
        SOFTMAX,
        SOFTMAX.replace("temp m: f32[]  temp e: f32[6]", "temp e: f32[6]  temp m: f32[]"),
    ),
    "softmax as a term": (
        SOFTMAX,
        r"""def f(x: f32[6]) -> y = let top = reduce(max, -inf, x) in let e = map(\v -> exp(v - top), x) in
        let total = reduce(add, 0, e) in map(\v -> v / total, e)""",
    ),
    "statements in another order": (
        HEAD
        + "temp s: f32[8]  temp t: f32[8]  for i<8: s[i] = exp(x[i])  for i<8: t[i] = tanh(z[i])  "
        + "for i<8: y[i] = s[i] * t[i]",
        TERM + r"let t = map(tanh, z) in let s = map(exp, x) in map(mul, zip(t, s))",
    ),
    "a number that is stored": (
        "in x: f32[8]  in z: f32[8]  out y: f32[8]  temp s: f32[]  for i<8: s[] += z[i]  for i<8: y[i] = x[i] * s[]",
        TERM + r"map(\v -> v * reduce(add, 0, z), x)",
    ),
    # dead statements
    "a temporary that nothing reads": (
        HEAD + "temp d: f32[8]  for i<8: d[i] = z[i]  for i<8: y[i] = x[i] + z[i]",
        TERM + r"let d = map(exp, z) in map(add, zip(x, z))",
    ),
    "a chain that nothing reads": (
        COPY + "for i<8: y[i] = x[i] + 1.0",
        ONE + r"let a = map(exp, x) in let b = map(tanh, a) in map(\v -> v + 1.0, x)",
    ),
    # casts that are implied
    "a sum in a wider type": (
        "in a: i8[6, 8]  in b: i8[8, 5]  out y: i32[6, 5]  for i<6, j<5, k<8: y[i, j] += a[i, k] * b[k, j]",
        r"""def f(a: i8[6, 8], b: i8[8, 5]) -> y =
        map(\r -> map(\c -> reduce(add, 0, map(\u v -> i32(u) * i32(v), zip(r, c))), transpose(b)), a)""",
    ),
    "a result that is rounded": (
        "in x: f16[8]  out y: f16[8]  for i<8: y[i] = x[i] * x[i]",
        r"def f(x: f16[8]) -> y = map(\v -> f16(v * v), x)",
    ),
    "a recurrence as steps": (
        "in x: f32[8]  out y: f32[9]  y[0] = 0.0  seq t<8: y[t + 1] = 0.5 * y[t] + x[t]",
        r"""def f(x: f32[8]) -> y = let y = scatter(=, 9, [: 0], f32(0.0)) in
        steps(1, =, 0, [t<8: t + 1], \h -> map(\a b -> b + a * 0.5, zip(slice(0, 8, 1, h), x)), y)""",
    ),
}

DIFFERENT = {
    "the two forms of a GRU": (GRU, GRU.replace("r[i] * (u[i] + b[i])", "r[i] * u[i] + b[i]")),
    "a GRU that resets before the product": (
        GRU,
        """in h: f32[4]  in r: f32[4]  const R: f32[4, 4]  in b: f32[4]  out y: f32[4]  temp u: f32[4]
        for i<4, k<4: u[i] += R[i, k] * (r[k] * h[k])
        for i<4: y[i] = tanh(u[i] + b[i])""",
    ),
    "the two forms of a GRU as terms": (
        r"def f(h: f32[4], r: f32[4], const R: f32[4, 4], b: f32[4]) -> y = "
        r"map(\w a c -> tanh(a * (reduce(add, 0, map(mul, zip(w, h))) + c)), zip(R, r, b))",
        r"def f(h: f32[4], r: f32[4], const R: f32[4, 4], b: f32[4]) -> y = "
        r"map(\w a c -> tanh(a * reduce(add, 0, map(mul, zip(w, h))) + c), zip(R, r, b))",
    ),
    "a GRU after and before the product as terms": (
        r"def f(h: f32[4], r: f32[4], const R: f32[4, 4]) -> y = "
        r"map(\w a -> a * reduce(add, 0, map(mul, zip(w, h))), zip(R, r))",
        r"def f(h: f32[4], r: f32[4], const R: f32[4, 4]) -> y = "
        r"map(\w -> reduce(add, 0, map(\v a g -> v * (a * g), zip(w, h, r))), R)",
    ),
    "a product and its transpose": (
        MATMUL.replace("f32[8, 5]", "f32[8, 6]").replace("f32[6, 5]", "f32[6, 6]").replace("j<5", "j<6"),
        MATMUL.replace("f32[8, 5]", "f32[8, 6]")
        .replace("f32[6, 5]", "f32[6, 6]")
        .replace("j<5", "j<6")
        .replace("y[i, j]", "y[j, i]"),
    ),
    "order of a difference": (HEAD + "for i<8: y[i] = x[i] - z[i]", HEAD + "for i<8: y[i] = z[i] - x[i]"),
    "order of a quotient": (TERM + r"map(\a b -> a / b, zip(x, z))", TERM + r"map(\a b -> a / b, zip(z, x))"),
    "a sum and a difference": (TERM + "map(add, zip(x, z))", TERM + "map(sub, zip(x, z))"),
    "association of a sum": (
        TERM + r"map(\a b -> (a + b) + 1.0, zip(x, z))",
        TERM + r"map(\a b -> a + (b + 1.0), zip(x, z))",
    ),
    "distribution": (
        TERM + r"map(\a b -> 2.0 * (a + b), zip(x, z))",
        TERM + r"map(\a b -> 2.0 * a + 2.0 * b, zip(x, z))",
    ),
    "a sum and a maximum": (
        "def f(x: f32[8]) -> y = reduce(add, 0, x)",
        "def f(x: f32[8]) -> y = reduce(max, -inf, x)",
    ),
    "a sum that starts at one": (
        "def f(x: f32[8]) -> y = reduce(add, 0, x)",
        "def f(x: f32[8]) -> y = reduce(add, 1, x)",
    ),
    "written and summed": (COPY + "for i<8: y[i] = x[i]", COPY + "for i<8: y[i] += x[i]"),
    "a window the other way round": (
        "in x: f32[8]  const w: f32[3]  out y: f32[6]  for i<6, j<3: y[i] += x[i + j] * w[j]",
        "in x: f32[8]  const w: f32[3]  out y: f32[6]  for i<6, j<3: y[i] += x[i + j] * w[2 - j]",
    ),
    "an offset": (
        "def f(x: f32[9]) -> y = slice(0, 8, 1, x)",
        "def f(x: f32[9]) -> y = slice(1, 8, 1, x)",
    ),
    "a reversal": (COPY + "for i<8: y[i] = x[i]", COPY + "for i<8: y[i] = x[7 - i]"),
    "a stride": (
        "def f(x: f32[16]) -> y = slice(0, 8, 1, x)",
        "def f(x: f32[16]) -> y = slice(0, 8, 2, x)",
    ),
    "split the other way": (
        "def f(x: f32[8]) -> y = join(transpose(split(4, x)))",
        "def f(x: f32[8]) -> y = join(transpose(split(2, x)))",
    ),
    "blocks and interleaving": (ONE + "x", ONE + "join(transpose(split(4, x)))"),
    "padding with zero and with nothing": (
        "def f(x: f32[8]) -> y = map(reduce(max, -inf), slide(3, 1, pad(1, 1, none, x)))",
        "def f(x: f32[8]) -> y = map(reduce(max, -inf), slide(3, 1, pad(1, 1, 0, x)))",
    ),
    "padding on the other side": (
        "def f(x: f32[8]) -> y = map(reduce(add, 0), slide(3, 1, pad(2, 0, none, x)))",
        "def f(x: f32[8]) -> y = map(reduce(add, 0), slide(3, 1, pad(0, 2, none, x)))",
    ),
    "a condition": (
        "in x: f32[8]  out y: f32[]  for i<8 where i < 7: y[] += x[i]",
        "in x: f32[8]  out y: f32[]  for i<8 where i >= 1: y[] += x[i]",
    ),
    "rounding in between": (
        r"def f(x: f16[8]) -> y = map(\v -> f16(v * v * v), x)",
        r"def f(x: f16[8]) -> y = map(\v -> f16(f16(v * v) * v), x)",
    ),
    "wrapping in between": (
        r"def f(x: i8[8]) -> y = map(\v -> i32(v) * i32(v), x)",
        r"def f(x: i8[8]) -> y = map(\v -> i32(v * v), x)",
    ),
    "rounding of parts and of the whole": (
        r"def f(x: f16[8]) -> y = f16(reduce(add, 0, map(\v -> v * v, x)))",
        r"def f(x: f16[8]) -> y = f16(reduce(add, 0, map(\v -> f16(v * v), x)))",
    ),
    "one and one point nought": (
        COPY + "for i<8: y[i] = x[i] * 2.0 + 1.0",
        COPY + "for i<8: y[i] = x[i] * 1.0 + 2.0",
    ),
    "zero and minus zero": (COPY + "for i<8: y[i] = x[i] * 0.0", COPY + "for i<8: y[i] = x[i] * -0.0"),
    "a stored and a fused value": (
        ONE + r"let e = map(exp, x) in map(\v -> v * 2, e)",
        ONE + r"map(\v -> v * 2, map(exp, x))",
    ),
    "a scan and the steps the other way round": (
        "in x: f32[8]  out y: f32[9]  y[0] = 0.0  seq t<8: y[t + 1] = y[t] + x[t]",
        "in x: f32[8]  out y: f32[9]  y[8] = 0.0  seq t<8: y[7 - t] = y[8 - t] + x[7 - t]",
    ),
    "the state before and after": (
        RUNNING + "for t<8: y[t] = h[t + 1]",
        RUNNING + "for t<8: y[t] = h[t]",
    ),
    "names of the interface": (COPY + "for i<8: y[i] = x[i]", COPY.replace("x:", "u:") + "for i<8: y[i] = u[i]"),
    "types of the interface": (
        "in x: f32[8]  out y: f32[8]  for i<8: y[i] = x[i]",
        "in x: f32[8]  out y: f64[8]  for i<8: y[i] = x[i]",
    ),
    "the mean of squares and the square of the mean": (
        "def f(x: f32[8]) -> y = reduce(add, 0, map(\\v -> v * v, x)) / 8.0",
        "def f(x: f32[8]) -> y = (\\s -> s * s)(reduce(add, 0, x)) / 8.0",
    ),
}


@pytest.mark.parametrize("name", EQUAL)
def test_equal_computations_have_one_text(name: str) -> None:
    one, other = map(canonical_text, EQUAL[name])
    assert one == other


@pytest.mark.parametrize("name", DIFFERENT)
def test_look_alikes_have_two(name: str) -> None:
    one, other = map(canonical_text, DIFFERENT[name])
    assert one != other


def test_there_are_thirty_of_each_and_terms_among_them() -> None:
    assert len(EQUAL) >= 30 and len(DIFFERENT) >= 30
    assert sum("def " in one + other for one, other in EQUAL.values()) >= 15


def canonical_text(text: str) -> str:
    """The text of a program, or of the program that a definition becomes."""
    if text.lstrip().startswith("def"):
        return str(normalise(parse_definition(text)))
    return str(canonicalise(parse(text)))
