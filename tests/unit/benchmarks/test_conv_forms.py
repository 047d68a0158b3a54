"""Forms of convolutions: programs that agree, on the machine in all their statements, exact where weights divide."""

from __future__ import annotations

import numpy as np
import pytest

import dovetail
from benchmarks.accelerators.cases import Case, forms_of, layers
from benchmarks.accelerators.choice import Chosen
from benchmarks.accelerators.conv_forms import Form, forms
from benchmarks.accelerators.programs import F64, batch_last_conv, channels_last_conv
from benchmarks.accelerators.subject import Row, compiled
from benchmarks.shapes import Conv
from dovetail.ir.evaluate import evaluate
from dovetail.ir.fill import fill

DIVIDES = 576.0
"""Weights that are multiples of this stay whole after the filter transform of 4 x 4 tiles."""


def conv(batch: int, size: int, pad: int, stride: int = 1, taps: int = 3) -> Conv:
    out = (size + 2 * pad - taps) // stride + 1
    pairs = ((size, size), (taps, taps), (out, out), (stride, stride), (pad, pad), (1, 1))
    return Conv(batch, 4, 8, *pairs)


def all_forms(shape: Conv) -> dict[str, Form]:
    text = batch_last_conv(shape, F64) if shape.n % 128 == 0 else channels_last_conv(shape, F64)
    return {f"{form.name} {form.variant}".rstrip(): form for form in forms(text)}


@pytest.mark.parametrize("shape", [conv(2, 7, 1), conv(1, 8, 0), conv(128, 4, 1)])
def test_all_forms_compute_the_same(shape: Conv) -> None:
    found = all_forms(shape)
    assert list(found) == ["implicit", "explicit", "winograd 2x2", "winograd 4x4"]
    arrays = fill(dovetail.program(found["implicit"].text), 1)
    arrays["w"] = np.asarray(arrays["w"], np.float64) * DIVIDES
    wanted = evaluate(dovetail.program(found["implicit"].text), arrays)["y"]
    assert wanted.any()
    for name, form in found.items():
        np.testing.assert_array_equal(evaluate(dovetail.program(form.text), arrays)["y"], wanted, err_msg=name)


def test_winograd_is_for_three_taps_at_stride_one() -> None:
    assert list(all_forms(conv(1, 9, 1, stride=2))) == ["implicit", "explicit"]
    assert list(all_forms(conv(1, 9, 1, taps=4))) == ["implicit", "explicit"]


def test_one_tap_has_no_windows_to_store() -> None:
    assert list(all_forms(conv(1, 5, 0, taps=1))) == ["implicit"]


@pytest.mark.parametrize(("name", "statements"), [("explicit", 2), ("winograd 2x2", 3)])
def test_all_of_a_form_runs_on_the_machine(name: str, statements: int) -> None:
    """Transforms are products with tables, filters are transformed ahead, windows are stored by copies."""
    program = dovetail.program(all_forms(conv(128, 4, 1))[name].text)
    kernel = compiled(program, "sw26010")
    assert not kernel.on_host
    assert len(kernel.last.program.statements) == statements
    arrays = fill(program, 1)
    arrays["w"] = np.asarray(arrays["w"], np.float64) * 4
    found = kernel(*(arrays[t.name] for t in program.inputs))
    np.testing.assert_array_equal(found, evaluate(program, arrays)["y"])


def test_a_layer_has_a_case_for_each_of_its_forms() -> None:
    label, shape = next(layers(1))
    cases = forms_of(label, shape)
    assert [name for name, _ in cases] == ["implicit", "explicit", "winograd", "winograd"]
    assert [case.label.removeprefix(label).strip() for _, case in cases][2:] == ["winograd 2x2", "winograd 4x4"]


def test_the_choice_is_right_when_its_form_is_fastest_in_any_variant() -> None:
    rows = tuple(Row(Case(f"c{n}", "m", "", 1), cycles) for n, cycles in enumerate((100.0, 300.0, 90.0, 80.0)))
    names = ("implicit", "explicit", "winograd", "winograd")
    right = Chosen(names, rows, (100.0, 300.0, 85.0, 95.0))
    assert (right.name, right.fastest, right.cycles("winograd")) == ("winograd", "winograd", 80.0)
    assert right.is_right
    assert not Chosen(names, rows, (80.0, 300.0, 85.0, 95.0)).is_right


def test_a_form_without_a_plan_is_not_the_fastest() -> None:
    rows = (Row(Case("a", "m", "", 1), 100.0), Row(Case("b", "m", "", 1), error="too large"))
    assert Chosen(("implicit", "winograd"), rows, (100.0, float("inf"))).is_right
