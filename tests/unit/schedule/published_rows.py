"""The published PolyScientist rows as nests: 19 convolution layers, each in 4 loop orders, measured."""

import json
from dataclasses import dataclass
from pathlib import Path

from dovetail.poly.reuse import Access, Index
from dovetail.schedule.traffic import TiledAccess, TiledLoop

CAPACITIES = (32768, 1048576, 40370176)
WEIGHTS = (4, 14, 60, 84)
BLOCK = 64  # channels per block, from the header of the file
ROWS_FILE = Path(__file__).parents[3] / "benchmarks" / "shapes" / "polyscientist_golden.json"

SUBSCRIPTS = {
    "output": (("KT",), ("oj",), ("oi",), ("k",)),
    "input": (("CT",), ("oj", "kj"), ("oi", "ki"), ("c",)),
    "weights": (("KT",), ("CT",), ("kj",), ("ki",), ("c",), ("k",)),
}


@dataclass(frozen=True, slots=True)
class Row:
    """One layer in one loop order."""

    layer: int
    taps: int
    order: tuple[str, ...]
    extents: tuple[int, ...]
    counts: tuple[int, ...]
    level_bytes: tuple[int, ...]
    cost: int
    gflops: float

    def accesses(self, element_bytes: int = 4) -> tuple[Access, ...]:
        return accesses_in(self.order, element_bytes)

    def tiled(self) -> tuple[tuple[TiledLoop, ...], tuple[TiledAccess, ...]]:
        loops = tuple((name, extent, 1) for name, extent in zip(self.order, self.extents, strict=True))
        return loops, tuple(
            TiledAccess(tuple(tuple((loop, 1) for loop in dim) for dim in dims), 4, 2 if array == "output" else 1)
            for array, dims in SUBSCRIPTS.items()
        )


def accesses_in(order: tuple[str, ...], element_bytes: int) -> tuple[Access, ...]:
    return tuple(
        Access(array, tuple(Index(tuple(int(loop in dim) for loop in order)) for dim in dims), element_bytes)
        for array, dims in SUBSCRIPTS.items()
    )


def load_rows() -> tuple[Row, ...]:
    rows = []
    for number, layer in enumerate(json.loads(ROWS_FILE.read_text())["layers"]):
        assert layer["stride"] == 1
        extents = {"oj": layer["ofh"], "oi": layer["ofw"], "kj": layer["kh"], "ki": layer["kw"]}
        extents |= {"KT": layer["K"] // BLOCK, "CT": layer["C"] // BLOCK, "k": BLOCK, "c": BLOCK}
        for variant in layer["variants"]:
            order = tuple(variant["order"].split())
            sizes = tuple(extents[loop] for loop in order)
            level_bytes, cost = tuple(variant["bytes"]), int(variant["cost"])
            counts, gflops = tuple(variant["counts"]), variant["gflops"]
            rows.append(Row(number, layer["kw"], order, sizes, counts, level_bytes, cost, gflops))
    return tuple(rows)
