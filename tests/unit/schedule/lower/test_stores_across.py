"""Results whose lanes are rows of memory: what lies side by side is written one after the other."""

from __future__ import annotations

from itertools import pairwise

from dovetail.ir.nest import Call, Place, walk
from dovetail.pipeline import program
from dovetail.schedule.collapse import collapse
from dovetail.schedule.default import default_plan
from dovetail.schedule.lower.build import build_nest
from dovetail.targets.load import load_target


def test_a_tile_across_memory_is_written_row_by_row() -> None:
    text = """in x: f32[3,64,64]  const w: f32[64,3,7,7]  out y: f32[64,29,29]
for k<64, p<29, q<29, c<3, r<7, s<7: y[k,p,q] += x[c,2*p+r,2*q+s] * w[k,c,r,s]"""
    machine, flat = load_target("x86-64-v4"), collapse(program(text))
    nest = build_nest(flat, default_plan(flat, machine, 1), machine)
    stores = [n for n in walk(nest.body) if isinstance(n, Call) and n.instruction.startswith("store_strided")]
    places = [p for n in stores for p in n.operands if isinstance(p, Place) and p.buffer == "y"]
    assert places
    steps = list(pairwise(places))
    rows, columns = (sum(one.indices[d] != other.indices[d] for one, other in steps) for d in (0, 2))
    assert rows < columns / 2
