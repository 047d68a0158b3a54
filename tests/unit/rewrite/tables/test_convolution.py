"""Other algorithms for a convolution: what programs they become, what they compute, and how exactly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dovetail.ir.canonical import canonicalise
from dovetail.ir.evaluate import evaluate
from dovetail.ir.functional.normalise import normalise
from dovetail.ir.functional.raise_program import raise_program
from dovetail.ir.parse import parse
from dovetail.ir.program import Program
from dovetail.rewrite.apply import everywhere
from dovetail.rewrite.rule import Rule, stated_error
from dovetail.rewrite.tables.convolution import CONVOLUTION, im2col, winograd

FORMS = {rule.name: rule for rule in CONVOLUTION}
SHAPES = [(1, 4, 6, 6, 6, 1), (1, 3, 2, 7, 7, 0), (1, 2, 3, 10, 10, 0), (2, 3, 4, 5, 9, 1)]
"""Images, channels in, channels out, rows, columns, padding."""


def _convolution(shape: tuple[int, ...], stride: int = 1, taps: int = 3) -> Program:
    n, c, k, rows, columns, pad = shape
    p, q = ((size + 2 * pad - taps) // stride + 1 for size in (rows, columns))
    row, column = f"{stride} * p + r - {pad}", f"{stride} * q + s - {pad}"
    where = f" where {row} >= 0, {row} < {rows}, {column} >= 0, {column} < {columns}" if pad else ""
    loops = f"n<{n}, k<{k}, p<{p}, q<{q}, c<{c}, r<{taps}, s<{taps}"
    return parse(
        f"in x: f32[{n}, {c}, {rows}, {columns}]\nconst w: f32[{k}, {c}, {taps}, {taps}]\n"
        f"out y: f32[{n}, {k}, {p}, {q}]\n"
        f"for {loops}{where}: y[n, k, p, q] += x[n, c, {row}, {column}] * w[k, c, r, s]",
        "convolution",
    )


def _form(program: Program, rule: Rule) -> Program:
    definition = raise_program(canonicalise(program))
    found = next(everywhere(definition, rule, frozenset({"finite"})), None)
    assert found is not None
    return normalise(replace(definition, body=found.whole.term))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", FORMS)
def test_every_form_computes_the_convolution(name: str, shape: tuple[int, ...]) -> None:
    program = _convolution(shape)
    random = np.random.default_rng(1)
    data = {t.name: random.integers(-4, 5, [e.const for e in t.shape]).astype(np.float32) for t in program.inputs}
    wanted, found = (evaluate(side, data)["y"] for side in (program, _form(program, FORMS[name])))
    exact = name != "winograd-4x4"  # sixths are rounded
    assert np.array_equal(found, wanted) if exact else np.allclose(found, wanted, atol=1e-3)
    assert np.abs(wanted).max() > 0


@pytest.mark.parametrize("outputs", [2, 4])
def test_the_error_of_winograd_in_single_precision_is_within_what_is_stated(outputs: int) -> None:
    program = _convolution((1, 32, 8, 18, 18, 1))
    random = np.random.default_rng(2)
    data = {t.name: random.standard_normal([e.const for e in t.shape]).astype(np.float32) for t in program.inputs}
    rule = winograd(outputs)
    found = evaluate(_form(program, rule), data)["y"].astype(np.float64)
    wide = {name: values.astype(np.float64) for name, values in data.items()}
    exact = evaluate(_double(program), wide)["y"].astype(np.float64)
    sizes = {name: np.abs(values).astype(np.float64) for name, values in data.items()}
    sums = evaluate(_double(program), sizes)["y"].astype(np.float64)
    ratio = float(np.max(np.abs(found - exact) / sums)) / 2.0**-24
    assert 0 < ratio <= stated_error(rule)


def _double(program: Program) -> Program:
    return parse(str(program).replace("f32", "f64"), "double")


def test_im2col_is_a_copy_and_a_product_of_matrices() -> None:
    first, second = _form(_convolution((1, 4, 6, 6, 6, 1), stride=2), im2col()).statements
    assert str(first) == (
        "for d0<4, d1<3, d2<3, d3<3, d4<3 where d1 + 2 * d3 >= 1, d2 + 2 * d4 >= 1: "
        "v0[0, d0, d1, d2, d3, d4] += x[0, d0, d1 + 2 * d3 - 1, d2 + 2 * d4 - 1]"
    )
    assert str(second) == (
        "for d0<6, d1<3, d2<3, d3<4, d4<3, d5<3: y[0, d0, d1, d2] += v0[0, d3, d4, d5, d1, d2] * w[d0, d3, d4, d5]"
    )


@pytest.mark.parametrize(("outputs", "tiles"), [(2, 9), (4, 4)])
def test_winograd_has_one_contraction_over_flat_tiles(outputs: int, tiles: int) -> None:
    program = _form(_convolution((1, 8, 16, 6, 6, 1)), winograd(outputs))
    points = outputs + 2
    (product,) = (s for s in program.statements if s.reduced)
    assert [loop.extent.const for loop in product.loops] == [points, points, tiles, 16, 8]
    assert len(program.statements) == 1 + 1 + 4 * points + 2 * outputs
    assert all(tensor.shape[-1].const in (8, 16) for tensor in program.temps), "channels come last"


@pytest.mark.parametrize("stride, taps", [(2, 3), (1, 1), (1, 5)])
def test_winograd_is_for_three_by_three_windows_side_by_side(stride: int, taps: int) -> None:
    definition = raise_program(canonicalise(_convolution((1, 2, 2, 9, 9, 0), stride, taps)))
    assert not list(everywhere(definition, winograd(2)))


def test_winograd_is_for_floats() -> None:
    program = parse(str(_convolution(SHAPES[0])).replace("f32", "i32"), "whole")
    assert not list(everywhere(raise_program(canonicalise(program)), winograd(2)))


def test_channels_along_two_axes_have_the_direct_form_only() -> None:
    program = parse(
        "in x: f32[2, 3, 4, 8, 8]\nconst w: f32[5, 3, 4, 3, 3]\nout y: f32[2, 5, 6, 6]\n"
        "for n<2, k<5, p<6, q<6, c<3, d<4, r<3, s<3: y[n, k, p, q] += x[n, c, d, p + r, q + s] * w[k, c, d, r, s]",
        "two axes",
    )
    definition = raise_program(canonicalise(program))
    assert not [rule.name for rule in CONVOLUTION if list(everywhere(definition, rule))]
