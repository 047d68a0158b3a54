"""Recurrent models are found however they are written, each loop becomes one kernel."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("onnx")

import numpy as np

from tests.recurrent_gallery.run import agree, ran
from tests.recurrent_gallery.spellings import SPELLINGS

MOST_BESIDE = 3
"""Regions for each loop beside it: products of all inputs, first states, what is done with the outputs."""


@pytest.mark.parametrize("name", SPELLINGS)
def test_a_recurrence_is_found_and_is_one_kernel(name: str) -> None:
    spelling = SPELLINGS[name]
    found = ran(spelling)
    agree(found)
    assert found.loops == spelling.loops, found.report
    assert found.on_host == 0, found.report
    assert found.compiled <= spelling.loops * (1 + MOST_BESIDE), found.report
    assert all(steps == spelling.steps for steps in found.rolled), found.report


def test_the_two_forms_of_a_gru_are_kept_apart() -> None:
    """With the same weights they compute other numbers, and each is compiled as it is."""
    before, after = (ran(SPELLINGS[f"ONNX GRU, reset {when}"]) for when in ("before", "after, backwards"))
    assert {row.title for one in (before, after) for row in one.report.rows if "gru" in row.operators} == {"gru"}
    assert np.abs(before.found[0] - after.found[0]).max() > 1e-2
