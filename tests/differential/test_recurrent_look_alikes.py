"""What only looks like a recurrence is not taken for one that it is not, and runs right."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("onnx")

from tests.recurrent_gallery.run import agree, ran_look_alike
from tests.recurrent_gallery.spellings import LOOK_ALIKES


@pytest.mark.parametrize("name", LOOK_ALIKES)
def test_a_look_alike_runs_right_and_is_not_taken_for_a_loop_it_is_not(name: str) -> None:
    look_alike = LOOK_ALIKES[name]
    found = ran_look_alike(look_alike)
    agree(found)
    assert found.on_host == 0, found.report
    assert look_alike.never not in found.rolled, found.report
