"""What each pattern becomes in a program, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from dovetail.base.errors import TermError
from dovetail.ir.evaluate import evaluate
from dovetail.ir.functional.evaluate import evaluate as evaluate_term
from dovetail.ir.functional.normalise import normalise
from dovetail.ir.functional.text import parse_definition

PATTERNS = {
    "maps fuse": (r"map(\v -> v + 1, map(exp, x))", "for d0<8: y[d0] = 1 + exp(x[d0])"),
    "zip": ("map(mul, zip(x, slice(0, 8, 1, z)))", "for d0<8: y[d0] = x[d0] * z[d0]"),
    "windows": ("map(reduce(max, -inf), slide(3, 2, x))", "for d0<3, d1<3: y[d0] max= x[2 * d0 + d1]"),
    "parts": ("map(reduce(add, 0), split(4, x))", "for d0<2, d1<4: y[d0] += x[4 * d0 + d1]"),
    "parts, exchanged": ("join(transpose(split(4, x)))", "for d0<2, d1<4: y[d0 + 2 * d1] = x[4 * d0 + d1]"),
    "copies": ("repeat(3, x)", "for d0<3, d1<8: y[d0, d1] = x[d1]"),
    "a slice": ("slice(1, 3, 2, x)", "for d0<3: y[d0] = x[2 * d0 + 1]"),
    "a view": ("view([i<4: 7 - 2 * i], x)", "for d0<4: y[d0] = x[7 - 2 * d0]"),
    "a view that leaves its array": (
        "map(reduce(add, 0), view([i<8, j<3 where i >= 0: i + j], x))",
        "for d0<8, d1<3 where d0 + d1 <= 7: y[d0] += x[d0 + d1]",
    ),
    "positions": (r"map(\i -> i // 2, iota(8))", "for d0<2, d1<4: y[d0 + 2 * d1] = d1"),
    "a scatter": ("scatter(+=, 9, [i<8: i // 2], x)", "for d0<4, d1<2: y[d0] += x[2 * d0 + d1]"),
    "stored and copied": (
        'let a = map(exp, x) in to("", a)',
        "for d0<8: v0[d0] = exp(x[d0])\nfor d0<8: y[d0] = v0[d0]",
    ),
    "a result that is named is not copied": ("let a = map(exp, x) in a", "for d0<8: y[d0] = exp(x[d0])"),
    "elements one by one": (
        r"map(\v -> array(v, v * 2), x)",
        "for d0<8: y[d0, 0] = x[d0]\nfor d0<8: y[d0, 1] = 2 * x[d0]",
    ),
    "a sum of elements one by one": (
        r"map(\v -> reduce(add, 0, array(v, v * 2, 1.5)), x)",
        "for d0<8: y[d0] = 1.5 + (2 * x[d0] + x[d0])",
    ),
    "elements one by one, inside": (
        r"map(\a v -> array(a, a - v), zip(x, slice(1, 8, 1, z)))",
        "for d0<8: y[d0, 0] = x[d0]\nfor d0<8: y[d0, 1] = x[d0] - z[d0 + 1]",
    ),
    "a sum that starts from a value": (
        "map(\\v -> reduce(add, v, z), x)",
        "for d0<8: y[d0] += x[d0]\nfor d0<8, d1<12: y[d0] += z[d1]",
    ),
    "a sum inside arithmetic": (
        r"map(\v -> v / reduce(add, 0, z), x)",
        "for d0<12: v0[] += z[d0]\nfor d0<8: y[d0] = x[d0] / v0[]",
    ),
    "a sum of sums is one": (
        "reduce(add, 0, map(reduce(add, 0), split(4, z)))",
        "for d0<12: y[] += z[d0]",
    ),
    "a maximum of sums is two": (
        "reduce(max, -inf, map(reduce(add, 0), split(4, z)))",
        "for d0<3, d1<4: v0[d0] += z[4 * d0 + d1]\nfor d0<3: y[] max= v0[d0]",
    ),
    "padding with a number": (
        "pad(1, 2, 0.5, x)",
        "for d0<11 where d0 <= 0: y[d0] = 0.5\n"
        "for d0<11 where d0 <= 8, d0 >= 1: y[d0] = x[d0 - 1]\n"
        "for d0<11 where d0 >= 9: y[d0] = 0.5",
    ),
    "something else where there is none": (
        r"map(\v -> orelse(v, -0.0), pad(1, 0, none, x))",
        "for d0<9 where d0 <= 0: y[d0] = -0.0\nfor d0<9 where d0 >= 1: y[d0] = x[d0 - 1]",
    ),
    "a scan": (
        r"scan(\s v -> s * 0.5 + v, 0, x)",
        "v0[0] = 0\nseq t0<8: v0[t0 + 1] = 0.5 * v0[t0] + x[t0]\nfor d0<8: y[d0] = v0[d0 + 1]",
    ),
    "a scan in a map": (
        r"map(scan(\s v -> s - v, 1), split(4, x))",
        "for d0<2: v0[d0, 0] = 1\n"
        "seq t0<4: for d0<2: v0[d0, t0 + 1] = v0[d0, t0] - x[4 * d0 + t0]\n"
        "for d0<2, d1<4: y[d0, d1] = v0[d0, d1 + 1]",
    ),
    "a scan of vectors with a product in it": (
        r"""scan(\s v -> map(\r -> reduce(add, 0, map(mul, zip(r, s))) + v, split(2, slice(0, 4, 1, z))),
                 repeat(2, 0.0), x)""",
        "for d0<2: v0[0, d0] = 0.0\n"
        "seq t0<8: for d0<2, d1<2: v1[t0, d0] += v0[t0, d1] * z[2 * d0 + d1]\n"
        "seq t0<8: for d0<2: v0[t0 + 1, d0] = v1[t0, d0] + x[t0]\n"
        "for d0<8, d1<2: y[d0, d1] = v0[d0 + 1, d1]",
    ),
    "a fold": (
        r"reduce(\s v -> s / v, 1.0, x)",
        "v0[0] = 1.0\nseq t0<8: v0[t0 + 1] = v0[t0] / x[t0]\ny[] = v0[8]",
    ),
    "a named sum in a map": (
        r"map(\r -> let m = reduce(add, 0, r) in map(\v -> v - m, r), split(4, x))",
        "for d0<2, d1<4: v0[d0] += x[4 * d0 + d1]\nfor d0<2, d1<4: y[d0, d1] = x[4 * d0 + d1] - v0[d0]",
    ),
    "a named array in a map": (
        r"map(\r -> let e = map(exp, r) in reduce(add, 0, e), split(4, x))",
        "for d0<2, d1<4: v0[d0, d1] = exp(x[4 * d0 + d1])\nfor d0<2, d1<4: y[d0] += v0[d0, d1]",
    ),
    "named arrays under padding": (
        r"reduce(add, 0, map(reduce(max, -inf), pad(1, 0, none, map(\r -> let e = map(exp, r) in e, split(4, x)))))",
        "for d0<3, d1<4 where d0 >= 1: v0[d0, d1] = exp(x[4 * d0 + d1 - 4])\n"
        "for d0<3, d1<4 where d0 >= 1: v1[d0] max= v0[d0, d1]\n"
        "for d0<3: y[] += v1[d0]",
    ),
    "an array that is partly there, stored": (
        r"let p = pad(1, 1, none, x) in map(reduce(add, 0), slide(3, 1, p))",
        "for d0<10 where d0 <= 8, d0 >= 1: v0[d0] = x[d0 - 1]\n"
        "for d0<8, d1<3 where d0 + d1 <= 8, d0 + d1 >= 1: y[d0] += v0[d0 + d1]",
    ),
    "a sum whose parts are a tuple": (
        r"let p = map(\v -> tuple(v, v * 2), x) in map(\t -> get(0, t) + get(1, t), p)",
        "for d0<8: v0[d0] = 2 * x[d0]\nfor d0<8: v1[d0] = x[d0]\nfor d0<8: y[d0] = v0[d0] + v1[d0]",
    ),
    "arrays reduced element by element": (
        r"reduce(\a b -> map(add, zip(a, b)), repeat(4, 0), split(4, x))",
        "for d0<4, d1<2: y[d0] += x[d0 + 4 * d1]",
    ),
    "steps": (
        r"""let h = scatter(=, 9, [: 0], f32(1)) in
        steps(1, =, 0, [t<8: t + 1], \a -> map(sub, zip(slice(0, 8, 1, a), x)), h)""",
        "y[0] = 1\nseq t0<8: y[t0 + 1] = y[t0] - x[t0]",
    ),
    "arithmetic that wraps early": (
        r"map(\v -> i32(i8(v) * i8(v)) + 1, x)",
        "for d0<8: y[d0] = 1 + i8(i8(x[d0]) * i8(x[d0]))",
    ),
}

REFUSED = {
    "none in a result": ("pad(1, 0, none, x)", "'f' does not become a program: y[0] is never written"),
    "a scan in a scan": (
        r"scan(\s v -> reduce(\a b -> a / b + s, 0.0, z), 0.0, x)",
        "steps inside steps",
    ),
    "an array read after it was changed": (
        r"let a = map(exp, x) in let b = steps(0, =, 0, [: 0], \v -> f32(1), a) in map(add, zip(a, b))",
        "an array is read after a part of it was changed",
    ),
    "a term that is ill typed": ("map(mul, zip(x, z))", "'z' does not fit\n  in zip(x, z)"),
}


def definition(body: str) -> str:
    return f"def f(x: f32[8], z: f32[12]) -> y = {body}"


@pytest.mark.parametrize("name", PATTERNS)
def test_terms_become_these_statements(name: str) -> None:
    body, wanted = PATTERNS[name]
    term = parse_definition(definition(body))
    program = normalise(term)
    assert "\n".join(map(str, program.statements)) == wanted
    generator = np.random.default_rng(0)
    arrays = {t.name: generator.integers(1, 4, [e.const for e in t.shape]).astype(np.float32) for t in program.inputs}
    found, expected = (a["y"].astype(np.float64) for a in (evaluate(program, arrays), evaluate_term(term, arrays)))
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_program_is_refused(name: str) -> None:
    body, message = REFUSED[name]
    with pytest.raises(TermError) as caught:
        normalise(parse_definition(definition(body)))
    assert message in str(caught.value)


def test_parameters_that_are_written_keep_their_place() -> None:
    text = "def f(x: f32[4], inout c: f32[4], z: f32[4]) -> y, c = tuple(map(neg, c), map(add, zip(c, z)))"
    program = normalise(parse_definition(text))
    assert [t.name for t in program.inputs] == ["x", "c", "z"] and [t.name for t in program.outputs] == ["y", "c"]
    assert [str(s) for s in program.statements] == ["for d0<4: y[d0] = -c[d0]", "for d0<4: c[d0] = c[d0] + z[d0]"]


def test_two_parameters_may_change_places() -> None:
    text = "def f(inout a: f32[4], inout b: f32[4]) -> a, b = tuple(b, a)"
    program = normalise(parse_definition(text))
    arrays = {"a": np.arange(4, dtype=np.float32), "b": -np.ones(4, np.float32)}
    found = evaluate(program, arrays)
    np.testing.assert_array_equal(found["a"], arrays["b"])
    np.testing.assert_array_equal(found["b"], arrays["a"])


def test_a_parameter_may_be_turned_round() -> None:
    text = "def f(inout a: f32[4]) -> a = view([i<4: 3 - i], a)"
    found = evaluate(normalise(parse_definition(text)), {"a": np.arange(4, dtype=np.float32)})
    np.testing.assert_array_equal(found["a"], [3, 2, 1, 0])


def test_run_time_sizes_stay_in_the_program() -> None:
    text = "size n in 0..9 def f(x: f32[n, 3]) -> y, k = tuple(map(reduce(add, 0), x), n + 1)"
    program = normalise(parse_definition(text))
    assert str(program) == (
        "size n in 0..9\nin x: f32[n, 3]\nout y: f32[n]\nout k: i64[]\nk[] = n + 1\nfor d0<n, d1<3: y[d0] += x[d0, d1]"
    )
