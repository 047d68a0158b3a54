"""Ways between memories, and how an operand must lie on the way."""

from __future__ import annotations

from pathlib import Path

from dovetail.base.dtypes import DTYPES
from dovetail.ir.index import Access, variable
from dovetail.schedule.placed.paths import lies_in, path
from dovetail.schedule.placed.storage import Wanted
from tests.unit.schedule.placed.small import machine, variant

WEIGHTS = Wanted(
    "w", Access("b", (variable("k"), variable("j"))), "weights", DTYPES["i8"], (("k",), ("j",)), (), None, False
)


def test_weights_come_by_way_of_the_pad() -> None:
    assert path(machine(), "dram", "weights") == ("pad", "weights")
    assert path(machine(), "sums", "dram") == ("dram",)
    assert path(machine(), "dram", "dram") == ()


def test_where_no_copies_lead_there_is_no_way() -> None:
    assert path(machine(), "weights", "dram") is None


def test_an_operand_lies_on_the_way_as_the_copy_takes_it() -> None:
    there = lies_in(machine(), "pad", WEIGHTS)
    assert there is not None
    assert (there.memory, there.strides) == ("pad", ("lds", 1))
    assert lies_in(machine(), "sums", WEIGHTS) is None


def test_a_copy_of_single_rows_leaves_their_distance_open(tmp_path: Path) -> None:
    rows = variant(
        tmp_path,
        ("for k<4, j<4: w[k, j] = s[k, j]", "for j<4: w[j] = s[j]"),
        ('s = "i8 @ pad [lds, 1]" }\nasync = true\ncycles = 4', 's = "i8 @ pad" }\nasync = true\ncycles = 4'),
    )
    there = lies_in(rows, "pad", WEIGHTS)
    assert there is not None
    assert there.strides == ("loops", 1)
