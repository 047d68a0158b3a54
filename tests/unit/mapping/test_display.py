"""Names, rows and JSON say what a fit is."""

from __future__ import annotations

import json

from dovetail.mapping.display import display_name, fit_json, fit_rows
from dovetail.mapping.find import find_mappings
from tests.unit.mapping import programs
from tests.unit.mapping.needles import FMA, MATRIX, bound, find, instruction, lab_target, machine
from tests.unit.mapping.programs import program

EXP = instruction("exp", "out r: f32[8] in a: f32[8] for l<8: r[l] = exp(a[l])")
LARGEST = instruction("largest", "inout acc: f32[8] in a: f32[8] for l<8: acc[l] max= a[l]")


def test_a_fit_is_named_after_what_it_does() -> None:
    target = machine(FMA, MATRIX)
    source = program(programs.CONV2D)
    result = find_mappings(source, target)
    named = {tuple(bound(fit).values()): display_name(fit, source, target) for fit in result.fits}
    assert named[("q",)] == "f32 contraction, lanes over q"
    assert named[("",)] == "f32 contraction, one lane in use"
    assert named[("p*q", "k", "c")] == "f32 contraction, 16x16x16 tiles over p*q, k, c"
    assert named[("p*q", "k", "")] == "f32 contraction, 16x16x16 tiles over p*q, k, 1"


def test_a_part_of_a_statement_is_named_after_its_operation() -> None:
    source, target = program(programs.SOFTMAX), machine(EXP, LARGEST)
    rows = fit_rows(find_mappings(source, target), source, target)
    names = {(row.statement, row.covers): row.name for row in rows if row.loops in ("l = j", "l = i")}
    assert names[(0, "m[i] max= x[i, j]")] == "f32 maximum, lanes over i"
    assert names[(1, "e[i, j] = exp(x[i, j] - m[i])")] == "f32 exp, lanes over j"


def test_json_holds_every_fit_and_misfit() -> None:
    source, target = program(programs.SEPARABLE, "i8", "i32"), lab_target("toy16")
    result = find_mappings(source, target)
    data = json.loads(json.dumps(fit_json(result, source, target)))
    assert data["target"] == "toy16"
    assert len(data["fits"]) == len(result.fits)
    assert len(data["misfits"]) == len(result.misfits)
    fit = find(result, {"i": "p*q", "j": "k", "k": "c"}, a="z")
    assert fit is not None
    row = data["fits"][result.fits.index(fit)]
    assert row["loops"] == {"i": ["p", "q"], "j": ["k"], "k": ["c"]}
    assert row["name"] == "i32 contraction, 16x16x16 tiles over p*q, k, c"
    assert row["operands"] == ["acc = y[p, q, k]", "a = z[p, q, c]", "w = w[c, k]"]
