"""Two programs of one form as one with run-time sizes, and which programs that then stands for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.ir.bind import with_sizes
from dovetail.ir.evaluate import evaluate
from dovetail.ir.generalise import HIGHEST, form_of, generalise, instance
from dovetail.ir.parse import parse
from dovetail.ir.program import Program, Size
from dovetail.ir.verify import verify


def product(m: int, n: int = 8, k: int = 16) -> Program:
    return parse(f"""
    in a: f32[{m}, {k}]  const b: f32[{k}, {n}]  out c: f32[{m}, {n}]
    for i<{m}, j<{n}, l<{k}: c[i, j] += a[i, l] * b[l, j]
    """)


def attention(b: int, s: int) -> Program:
    return parse(f"""
    in q: f32[{b}, {s}, 4]  in k: f32[{b}, {s}, 4]  out p: f32[{b}, {s}, {s}]
    for d0<{b}, i<{s}, j<{s}, l<4: p[d0, i, j] += q[d0, i, l] * k[d0, j, l]
    """)


def recurrence(t: int) -> Program:
    return parse(f"""
    in x: i32[{t}, 4]  temp h: i32[{t + 1}, 4]  out y: i32[4]
    for i<4: h[0, i] = 0
    seq t<{t}: for i<4: h[t + 1, i] = h[t, i] + x[{t - 1} - t, i]
    for i<4: y[i] = h[{t}, i]
    """)


def joined(m: int, n: int) -> Program:
    return parse(f"""
    in a: f32[{m}]  in b: f32[{n}]  out c: f32[{m + n}]
    for i<{m}: c[i] = a[i]
    for i<{n}: c[i + {m}] = b[i]
    """)


def general(a: Program, b: Program) -> Program:
    found = generalise(a, b)
    assert found is not None
    return found


def test_what_differs_becomes_a_size() -> None:
    found = general(product(128), product(96))
    assert found.sizes == (Size("n0", 1, HIGHEST[0], 96),)
    assert "in a: f32[n0, 16]" in str(found)
    assert "for i<n0, j<8, l<16" in str(found)
    verify(found)


def test_both_are_instances_and_so_are_others_of_the_form() -> None:
    found = general(product(128), product(96))
    for rows in (128, 96, 1, 7, 5000):
        assert instance(found, product(rows)) == {"n0": rows}


def test_a_program_that_differs_by_more_than_the_size_is_no_instance() -> None:
    found = general(product(128), product(96))
    assert instance(found, product(64, n=9)) is None
    assert instance(found, product(HIGHEST[0] + 1)) is None, "beyond the range"
    assert instance(found, parse(str(product(64)).replace("f32", "f64"))) is None
    assert instance(found, parse(str(product(64)).replace("+=", "max="))) is None
    assert instance(found, parse(str(product(64)).replace("a[i, l] * b", "b[l, j] * b"))) is None
    assert instance(found, found) is None, "sizes have no values yet"


def test_numbers_that_belong_together_must_go_on_belonging_together() -> None:
    found = general(attention(2, 8), attention(3, 20))
    assert instance(found, attention(5, 6)) == {"n0": 5, "n1": 6}
    assert instance(found, attention(1, 1)) == {"n0": 1, "n1": 1}
    other = parse(str(attention(2, 8)).replace("p: f32[2, 8, 8]", "p: f32[2, 8, 9]"))
    assert instance(found, other) is None
    same = general(attention(2, 4), attention(3, 6))
    assert instance(same, attention(2, 6)) is None, "4 and 6 were twice 2 and 3"


def test_constants_of_indices_follow_from_sizes() -> None:
    found = general(recurrence(5), recurrence(9))
    assert len(found.sizes) == 1
    assert instance(found, recurrence(30)) == {"n0": 30}
    assert instance(found, parse(str(recurrence(30)).replace("29 - t", "28 - t").replace("-t + 29", "-t + 28"))) is None


def test_an_extent_may_be_the_sum_of_two_sizes() -> None:
    found = general(joined(10, 40), joined(14, 45))
    assert len(found.sizes) == 2
    assert instance(found, joined(3, 100)) is not None


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (product(8), product(8)),
        (product(8), attention(1, 8)),
        (product(8), replace(product(8), sizes=(Size("m", 1, 4),))),
        (
            parse("in x: f32[12] out y: f32[3, 4] for i<3, j<4: y[i, j] = x[4*i + j]"),
            parse("in x: f32[15] out y: f32[3, 5] for i<3, j<5: y[i, j] = x[5*i + j]"),
        ),
        (
            parse("in x: f32[6] out y: f32[6] for i<6: y[i] = x[i] / 6.0"),
            parse("in x: f32[7] out y: f32[7] for i<7: y[i] = x[i] / 7.0"),
        ),
    ],
    ids=["nothing differs", "another form", "sizes already", "a coefficient differs", "a value differs"],
)
def test_there_may_be_no_general_program(a: Program, b: Program) -> None:
    assert generalise(a, b) is None


def test_what_is_unsound_for_some_values_starts_where_it_was_seen() -> None:
    def window(n: int) -> Program:
        return parse(f"in x: f32[{n}] out y: f32[{n - 4}] for i<{n - 4}, r<5: y[i] += x[i + r]")

    found = general(window(10), window(20))
    assert [instance(found, window(n)) is not None for n in (10, 20, 11, 300)] == [True] * 4


def test_names_of_sizes_are_free() -> None:
    taken = "in n0: f32[{0}] out y: f32[{0}] for n1<{0}: y[n1] = n0[n1]"
    found = general(parse(taken.format(4)), parse(taken.format(9)))
    assert found.sizes[0].name == "n_0"
    verify(found)


def test_the_text_of_a_form_tells_everything_but_numbers_apart() -> None:
    assert form_of(product(4)).text == form_of(product(9, 3, 2)).text
    texts = {form_of(p).text for p in (product(4), attention(1, 4), recurrence(4), joined(1, 4))}
    assert len(texts) == 4


@st.composite
def shaped(draw: st.DrawFn) -> tuple[str, int]:
    """A program with {0}, {1} and {2} for numbers, and how many of them it has."""
    dims = draw(st.integers(1, 3))
    extents = [f"{{{d}}}" for d in range(dims)]
    extra = draw(st.lists(st.integers(0, 2), min_size=dims, max_size=dims))
    loops = ", ".join(f"i{d}<{e}" for d, e in enumerate(extents))
    out = ", ".join(f"i{d}" for d in range(dims))
    reads = ", ".join(f"i{d} + {k}" for d, k in enumerate(extra))
    lines = [
        f"in x: i32[{', '.join(f'<{d}+{k}>' for d, k in enumerate(extra))}]",
        f"out y: i32[{', '.join(extents)}]",
        "out z: i32[]",
        f"for {loops}: y[{out}] = x[{reads}] * 3 + {draw(st.sampled_from(['1', 'i0', 'x[' + reads + ']']))}",
        f"for {loops}: z[] += y[{out}]",
    ]
    return "\n".join(lines), dims


def written(template: str, values: list[int]) -> Program:
    for d, value in enumerate(values):
        template = template.replace(f"{{{d}}}", str(value))
        for k in range(3):
            template = template.replace(f"<{d}+{k}>", str(value + k))
    return parse(template)


@settings(max_examples=60, deadline=None)
@given(shaped(), st.data())
def test_random_programs_become_general_and_come_back_exactly(found: tuple[str, int], data: st.DataObject) -> None:
    template, dims = found
    a, b, c = (data.draw(st.lists(st.integers(1, 9), min_size=dims, max_size=dims)) for _ in range(3))
    first, second, third = (written(template, values) for values in (a, b, c))
    made = generalise(first, second)
    if made is None:
        return
    verify(made)
    for program in (first, second):
        sizes = instance(made, program)
        assert sizes is not None
        assert with_sizes(made, sizes) == program
    sizes = instance(made, third)
    if sizes is not None:
        x = np.arange(np.prod([e.const for e in third.tensor("x").shape]), dtype=np.int32)
        arrays = {"x": x.reshape([e.const for e in third.tensor("x").shape])}
        for name, want in evaluate(third, arrays).items():
            np.testing.assert_array_equal(evaluate(made, arrays, sizes)[name], want)
