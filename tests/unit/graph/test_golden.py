"""Whole graphs: what passes say, the regions, and their programs, as golden text.

A file has a graph, a line of dashes, and what becomes of it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from dovetail.graph.grouping import regions
from dovetail.graph.optimise import optimise
from dovetail.ir.compact import compact
from dovetail.ir.graph.verify import verify
from dovetail.ops.region import region_program
from dovetail.ops.table import OPERATORS
from tests.unit.graph.models import bound

GOLDEN = Path(__file__).parents[2] / "golden" / "optimise"
DASHES = "\n" + "-" * 40 + "\n"


@pytest.mark.parametrize("name", sorted(path.stem for path in GOLDEN.glob("*.txt")))
def test_a_graph_becomes_the_golden_regions(name: str, update_golden: bool) -> None:
    path = GOLDEN / f"{name}.txt"
    before, _, expected = path.read_text(encoding="utf-8").partition(DASHES)
    found = shown(before)
    if update_golden:
        path.write_text(f"{before.rstrip()}\n{DASHES}{found}", encoding="utf-8")
        return
    assert found == expected


def shown(text: str) -> str:
    after, records = optimise(bound(text), OPERATORS)
    types = verify(after.graph, OPERATORS)
    parts = ["\n".join(map(str, records))]
    for region in regions(after.graph, OPERATORS, types):
        lines = [str(region)]
        if region.kind == "compiled":
            lines += str(compact(region_program(after.graph, region.nodes, OPERATORS, types))).splitlines()
        parts.append("\n  ".join(lines))
    return "\n\n".join(parts) + "\n"
