"""SCALE-Sim's compute cycles: as stored in ``shapes/scalesim.json``, or run again where it is installed.

It wants a venv of its own (``scalesim==3.0.0``, ``numpy<2``, ``pandas<3``); ``--scalesim PYTHON`` names the interpreter
of that, and ``python -m benchmarks.accelerators.scale_sim PYTHON`` writes the stored file anew. Convolutions are given
without padding: the image is the padded one.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.shapes import SHAPES, Conv, Gemm, read_shapes

STORED = SHAPES / "scalesim.json"
LAYOUT_COLUMNS = 20
CONFIG = """\
[general]
run_name = run

[architecture_presets]
ArrayHeight = 16
ArrayWidth = 16
IfmapSramSzkB = 256
FilterSramSzkB = 256
OfmapSramSzkB = 256
IfmapOffset = 0
FilterOffset = 10000000
OfmapOffset = 20000000
Dataflow = ws
Bandwidth = 16
ReadRequestBuffer = 64
WriteRequestBuffer = 64

[layout]
IfmapCustomLayout = False
IfmapSRAMBankBandwidth = 10
IfmapSRAMBankNum = 10
IfmapSRAMBankPort = 2
FilterCustomLayout = False
FilterSRAMBankBandwidth = 10
FilterSRAMBankNum = 10
FilterSRAMBankPort = 2

[sparsity]
SparsitySupport = false

[run_presets]
InterfaceBandwidth = CALC
UseRamulatorTrace = False
"""


@dataclass(frozen=True, slots=True)
class Counted:
    """A shape and the compute cycles SCALE-Sim reports for it."""

    shape: Gemm | Conv
    cycles: int


def stored() -> list[Counted]:
    """What the file says."""
    document = json.loads(STORED.read_text())
    return _together([entry["cycles"] for name in ("gemm", "convs") for entry in document[name]])


def run_again(python: Path) -> list[Counted]:
    """The same shapes counted by SCALE-Sim now, with the interpreter of the venv it is installed in."""
    shapes = read_shapes(STORED)
    gemms = [f"g{i},{s.m},{s.n},{s.k}," for i, s in enumerate(shapes.gemms)]
    convs = [
        f"c{i},{s.spatial[0]},{s.spatial[1]},{s.kernel[0]},{s.kernel[1]},{s.c},{s.k},{s.stride[0]},"
        for i, s in enumerate(shapes.convs)
    ]
    return _together([*_count(python, "gemm", gemms), *_count(python, "conv", convs)])


def write_again(python: Path) -> None:
    """Put what SCALE-Sim counts now, and its configuration, into the stored file."""
    document, counted = json.loads(STORED.read_text()), run_again(python)
    entries = [entry for name in ("gemm", "convs") for entry in document[name]]
    for entry, found in zip(entries, counted, strict=True):
        entry["cycles"] = found.cycles
    document["config"] = CONFIG.splitlines()
    lists = {name: ",\n    ".join(map(json.dumps, document[name])) for name in ("gemm", "convs")}
    head = "".join(f"  {json.dumps(k)}: {json.dumps(v)},\n" for k, v in document.items() if k not in lists)
    body = ",\n".join(f'  "{name}": [\n    {text}\n  ]' for name, text in lists.items())
    STORED.write_text(f"{{\n{head}{body}\n}}\n", encoding="utf-8")


def _together(counts: Sequence[int]) -> list[Counted]:
    """Counts of all products, then of all convolutions of the file."""
    shapes = read_shapes(STORED)
    found: list[Gemm | Conv] = [*shapes.gemms, *shapes.convs]
    return [Counted(shape, count) for shape, count in zip(found, counts, strict=True)]


def _count(python: Path, kind: str, layers: Sequence[str]) -> list[int]:
    """Compute cycles of each layer."""
    with tempfile.TemporaryDirectory() as folder:
        config, topology, layout = (Path(folder) / name for name in ("run.cfg", "layers.csv", "layout.csv"))
        config.write_text(CONFIG)
        topology.write_text("\n".join(["Layer,", *layers, ""]))
        rows = [f"{line.split(',')[0]},{'1,' * LAYOUT_COLUMNS}" for line in layers]
        layout.write_text("\n".join(["Layer,", *rows, ""]))
        files = ("-c", config, "-t", topology, "-l", layout, "-p", folder, "-i", kind, "-s", "N")
        subprocess.run([python, "-m", "scalesim.scale", *files], check=True, capture_output=True, cwd=folder)
        with (Path(folder) / "run" / "COMPUTE_REPORT.csv").open(newline="") as report:
            return [int(float(row[" Total Cycles"])) for row in csv.DictReader(report)]


if __name__ == "__main__":
    write_again(Path(sys.argv[1]))
