from __future__ import annotations

import numpy as np

from dovetail.ir.plan import Digit
from dovetail.model.build import _machine
from dovetail.model.constants import Constants
from dovetail.model.parts import Layout, part_of
from dovetail.targets.load import load_target
from tests.unit.model.graphs import Array, whole_numbers
from tests.unit.model.test_parts import MADE


def constants(**data: Array) -> Constants:
    return Constants(data, _machine(load_target("host")), 2)


def test_a_constant_is_in_memory_once_for_each_layout() -> None:
    w = whole_numbers(1, 8, 4)
    found = constants(w=w)
    panels = Layout((8, 4), (Digit(0, 4), Digit(1), Digit(0, 1, 4)))
    first, second, whole = found.laid_out("w", panels), found.laid_out("w", panels), found.whole("w")
    assert first == second != whole
    assert len(found.arrays) == 2
    assert found.arrays[whole.at] is w, "not copied"
    assert np.array_equal(found.arrays[first.at], w.reshape(2, 4, 4).transpose(0, 2, 1))


def test_what_depends_on_constants_alone_is_made_once_by_its_own_code() -> None:
    part = part_of(MADE, load_target("host"), 2, None)
    w = whole_numbers(2, 32, 8)
    found = constants(w=w, v=w + 1)
    first, second, other = (found.made(part, {"a1": name}) for name in ("w", "w", "v"))
    assert first == second != other
    (array,) = (found.arrays[place.at] for place in first.values())
    assert array.sum() == (w * w).sum()
