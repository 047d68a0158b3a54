"""The terms that programs are raised to: the shapes that rewrite rules know."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

import dovetail.frontends.functional as fn
from dovetail.base.errors import RewriteError
from dovetail.frontends.functional import Value, const, f32
from dovetail.ir.functional.normalise import normalise
from dovetail.ir.functional.raise_program import raise_program
from dovetail.ir.functional.simplify import simplify
from dovetail.ir.functional.term import nameless
from dovetail.ir.functional.text import parse_term
from dovetail.ir.parse import parse

CONV = """in x: f32[1, 64, 56, 56]  const w: f32[64, 64, 3, 3]  out y: f32[1, 64, 56, 56]
for n<1, k<64, p<56, q<56, c<64, r<3, s<3 where 0 <= p+r-1 < 56, 0 <= q+s-1 < 56:
  y[n, k, p, q] += x[n, c, p+r-1, q+s-1] * w[k, c, r, s]"""
MATMUL = "in a: f32[6, 8]  in b: f32[8, 5]  out y: f32[6, 5]  for i<6, j<5, k<8: y[i, j] += a[i, k] * b[k, j]"

FORMS = {
    "a product of matrices": (MATMUL, r"map(\r -> map(\c -> reduce(add, 0, map(mul, zip(r, c))), transpose(b)), a)"),
    "an accumulator": (
        MATMUL.replace("out y", "inout y"),
        r"map(\r s -> map(\c t -> reduce(add, t, map(mul, zip(r, c))), zip(transpose(b), s)), zip(a, y))",
    ),
    "integers summed in a wider type": (
        "in a: i8[8]  in b: i8[8]  out y: i32[]  for k<8: y[] += a[k] * b[k]",
        r"reduce(add, 0, map(\u v -> i32(u) * i32(v), zip(a, b)))",
    ),
    "small floats": (
        "in a: f16[8]  in b: f16[8]  out y: f16[]  for k<8: y[] += a[k] * b[k]",
        "f16(reduce(add, 0, map(mul, zip(a, b))))",
    ),
    "a bias and a rectifier": (
        "in x: f32[8, 6]  in b: f32[6]  out y: f32[8, 6]  for i<8, j<6: y[i, j] = max(0.0, b[j] + x[i, j])",
        r"map(\r -> map(\u v -> max(0.0, v + u), zip(r, b)), x)",
    ),
    "a sum of rows": ("in x: f32[8, 6]  out y: f32[8]  for i<8, j<6: y[i] += x[i, j]", "map(reduce(add, 0), x)"),
    "a sum of columns": (
        "in x: f32[8, 6]  out y: f32[6]  for i<8, j<6: y[j] += x[i, j]",
        "map(reduce(add, 0), transpose(x))",
    ),
    "pooling": (
        "in x: f32[5, 15, 16]  out y: f32[5, 7, 8]  for c<5, p<7, q<8, r<3, s<2: y[c, p, q] max= x[c, 2*p+r, 2*q+s]",
        r"""map(\i -> map(map(\v -> reduce(max, -inf, map(reduce(max, -inf), v))),
                      map(\l -> transpose(map(split(2), l)), slide(3, 2, i))), x)""",
    ),
    "padding": (
        "in x: f32[8]  out y: f32[8]  for i<8, j<3 where i+j >= 1, i+j <= 8: y[i] += x[i+j-1]",
        "map(reduce(add, 0), slide(3, 1, pad(1, 1, none, x)))",
    ),
    "dilation": (
        "in x: f32[8]  out y: f32[4]  for i<4, j<3: y[i] += x[i + 2*j]",
        "map(reduce(add, 0), map(slice(0, 3, 2), slide(5, 1, x)))",
    ),
    "axes in another order": (
        "in x: f32[3, 4, 5]  out y: f32[5, 3, 4]  for i<3, j<4, k<5: y[k, i, j] = x[i, j, k]",
        "transpose(map(transpose, x))",
    ),
    "an axis that is split": (
        "in x: f32[8, 3]  out y: f32[2, 3, 4]  for i<2, j<4, k<3: y[i, k, j] = x[4*i + j, k]",
        "map(transpose, split(4, x))",
    ),
    "axes that are joined": (
        "in x: f32[2, 4]  out y: f32[8]  for i<2, j<4: y[4*i + j] = x[i, j]",
        "join(x)",
    ),
    "one row": ("in x: f32[4, 3]  out y: f32[3]  for i<3: y[i] = x[2, i]", "view([: 2], x)"),
    "every other row": ("in x: f32[8]  out y: f32[4]  for i<4: y[i] = x[2*i + 1]", "slice(1, 4, 2, x)"),
    "a reversal": ("in x: f32[4]  out y: f32[4]  for i<4: y[i] = x[3 - i]", "view([d0<4: 3 - d0], x)"),
    "the number of each element": ("out y: i64[4]  for i<4: y[i] = i", "iota(4)"),
    "one value everywhere": ("out y: f32[4, 3]  for i<4, j<3: y[i, j] = 0.5", "repeat(4, repeat(3, f32(0.5)))"),
    "softmax": (
        """in x: f32[6]  out y: f32[6]  temp m: f32[]  temp e: f32[6]  temp s: f32[]
        for i<6: m[] max= x[i]  for i<6: e[i] = exp(x[i] - m[])  for i<6: s[] += e[i]  for i<6: y[i] = e[i] / s[]""",
        r"""let m = to("", reduce(max, -inf, x)) in let e = map(\v -> exp(v - m), x) in
        let s = to("", reduce(add, 0, e)) in map(\v -> v / s, e)""",
    ),
    "two results": (
        "in x: f32[8]  out y: f32[8]  out s: f32[]  for i<8: y[i] = exp(x[i])  for i<8: s[] += y[i]",
        "let y = map(exp, x) in tuple(y, reduce(add, 0, y))",
    ),
    "an element that is written through an index": (
        "in x: f32[4]  out y: f32[9]  for i<4: y[2*i + 1] += x[i]",
        "let y = scatter(+=, 9, [d0<4: 2 * d0 + 1], x) in y",
    ),
    "steps": (
        "in x: f32[8]  out y: f32[9]  y[0] = 0.0  seq t<8: y[t + 1] = x[t] + y[t]",
        r"""let y = scatter(=, 9, [: 0], f32(0.0)) in
        let z = steps(1, =, 0, [t0<8: t0 + 1], \h -> map(add, zip(x, slice(0, 8, 1, h))), y) in z""",
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_programs_are_raised_to_these_terms(name: str) -> None:
    text, wanted = FORMS[name]
    found = raise_program(parse(text)).body
    assert nameless(found) == nameless(parse_term(wanted)), str(found)


def test_a_convolution_is_the_term_that_a_user_writes() -> None:
    @fn.function(x=f32[8, 14, 14], w=const(f32[6, 8, 3, 3]))
    def written(x: Value, w: Value) -> Value:
        return fn.conv2d(x, w, (3, 3), (2, 2), (1, 1))

    found = raise_program(normalise(written)).body
    assert nameless(found) == nameless(written.body), str(found)
    assert simplify(found) == found


def test_images_of_a_batch_are_convolved_one_by_one() -> None:
    found = nameless(raise_program(parse(CONV)).body)
    one = CONV.replace("for n<1, k", "for k").replace("[1, ", "[").replace("[n, ", "[")
    inner = nameless(raise_program(parse(one)).body)
    assert str(found).startswith(r"map(\%0 ->") and str(inner).startswith(r"map(\%0 ->")
    assert str(found).count("slide(3, 1") == str(inner).count("slide(3, 1") == 2


def test_raising_says_what_it_cannot() -> None:
    text = "in x: f32[8]  in i: i32[4]  out y: f32[4]\nfor k<4: y[k] = x[i[k]]"
    with pytest.raises(RewriteError) as caught:
        raise_program(parse(text))
    assert str(caught.value) == (
        "index i[k] is read from a tensor\n"
        "  line 2: for k<4: y[k] = x[i[k]]\n"
        "  a term says where elements lie before it runs\n"
        "  try: compile the program as it is"
    )


@pytest.mark.parametrize("text", (MATMUL, CONV))
def test_raising_and_normalising_take_milliseconds(text: str) -> None:
    program = parse(text)
    raised = raise_program(program)
    assert _fastest(lambda: raise_program(program)) < 0.005
    assert _fastest(lambda: normalise(raised, typed=True)) < 0.005


def _fastest(work: Callable[[], object]) -> float:
    """Processor seconds of the fastest of many runs: what the work takes, not what the machine does besides."""
    seconds = []
    for _ in range(20):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return min(seconds)
