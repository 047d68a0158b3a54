"""Steps of a sequence on one tile: bits as the program says, for cells that have no name."""

from __future__ import annotations

import numpy as np
import pytest

from dovetail.ir.evaluate import evaluate
from dovetail.ir.fill import fill
from dovetail.ir.nest import Barrier, Loop, walk
from dovetail.ir.parse import parse
from dovetail.ir.plan import Tile, plan_from_json
from dovetail.ir.program import Program
from dovetail.pipeline import compile
from dovetail.runtime.kernel import Kernel
from dovetail.schedule import recurrent
from dovetail.schedule.collapse import collapse
from dovetail.schedule.default import default_plan
from dovetail.schedule.lower.build import build_nest
from dovetail.targets.load import load_target

GATED = """in a: f32[{T}, {B}, {M}]  {role} r: f32[{M}, {n}]  in h0: f32[{B}, {n}]
temp u: f32[{T}, {B}, {M}]  temp h: f32[{T1}, {B}, {n}]  temp c: f32[{T1}, {B}, {n}]
out y: f32[{T}, {B}, {n}]  out last: f32[{B}, {n}]
for b<{B}, j<{n}: h[0, b, j] = h0[b, j]
for b<{B}, j<{n}: c[0, b, j] = 0.0
seq t<{T}: for b<{B}, m<{M}, k<{n}: u[t, b, m] += h[t, b, k] * r[m, k]
seq t<{T}: for b<{B}, j<{n}: c[t + 1, b, j] = max(min(c[t, b, j] + {gate0} - {gate1}, 8.0), -8.0)
seq t<{T}: for b<{B}, j<{n}: h[t + 1, b, j] = max(min({gate2} + c[t + 1, b, j], 4.0), -4.0)
for t<{T}, b<{B}, j<{n}: y[t, b, j] = h[t + 1, b, j]
for b<{B}, j<{n}: last[b, j] = h[{T}, b, j]
"""
TWO_SUMS = """in h0: f32[{B}, {n}]  const r: f32[{M}, {n}]  temp h: f32[{T1}, {B}, {n}]
temp u: f32[{T}, {B}, {M}]  temp kept: f32[{T}, {B}, {n}]  temp v: f32[{T}, {B}, {n}]  out y: f32[{T}, {B}, {n}]
for b<{B}, j<{n}: h[0, b, j] = h0[b, j]
seq t<{T}: for b<{B}, m<{M}, k<{n}: u[t, b, m] += h[t, b, k] * r[m, k]
seq t<{T}: for b<{B}, j<{n}: kept[t, b, j] = max(min(u[t, b, j + {n}], 1.0), 0.0) * h[t, b, j]
seq t<{T}: for b<{B}, j<{n}, k<{n}: v[t, b, j] += kept[t, b, k] * r[j + {n2}, k]
seq t<{T}: for b<{B}, j<{n}: h[t + 1, b, j] = max(min(v[t, b, j] + u[t, b, j], 3.0), -3.0)
for t<{T}, b<{B}, j<{n}: y[{back} - t, b, j] = h[t + 1, b, j]
"""
MATRICES = """in h0: f32[{B}, {n}]  const r: f32[{n}, {n}]  const s: f32[{n}, {n}]  temp h: f32[{T1}, {B}, {n}]
temp u: f32[{T}, {B}, {n}]  temp v: f32[{T}, {B}, {n}]  temp f: f32[{T}, {B}, {n}]  out last: f32[{B}, {n}]
for b<{B}, j<{n}: h[0, b, j] = h0[b, j]
seq t<{T}: for b<{B}, j<{n}, k<{n}: u[t, b, j] += h[t, b, k] * r[k, j]
seq t<{T}: for b<{B}, j<{n}, k<{n}: v[t, b, j] += h[t, b, k] * s[j, k]
seq t<{T}: for b<{B}, j<{n}: f[t, b, j] = max(min(u[t, b, j], 2.0), -2.0)
seq t<{T}: for b<{B}, j<{n}: h[t + 1, b, j] = max(min(f[t, b, j] - v[t, b, j], 3.0), -3.0)
for b<{B}, j<{n}: last[b, j] = h[{T}, b, j]
"""
NORMED = """in h0: f32[{B}, {n}]  const r: f32[{n}, {n}]  temp h: f32[{T1}, {B}, {n}]
temp u: f32[{T}, {B}, {n}]  temp most: f32[{T}, {B}]  out last: f32[{B}, {n}]
for b<{B}, j<{n}: h[0, b, j] = h0[b, j]
seq t<{T}: for b<{B}, j<{n}, k<{n}: u[t, b, j] += h[t, b, k] * r[j, k]
seq t<{T}: for b<{B}, j<{n}: most[t, b] max= u[t, b, j]
seq t<{T}: for b<{B}, j<{n}: h[t + 1, b, j] = max(u[t, b, j] - most[t, b] + 3.0, -2.0)
for b<{B}, j<{n}: last[b, j] = h[{T}, b, j]
"""

IMAGES = """in x: f32[3,{n},196]  in w: f32[{M},{n}]  in v: f32[{n},{M}]  out y: f32[3,{n},196]
temp t: f32[3,{n},196]  temp u: f32[3,{M},196]  temp r: f32[3,{n},196]  temp h: f32[4,{n},196]
for c<{n}, p<196: h[0,c,p] = 0.0
seq s<3: for c<{n}, p<196: t[s,c,p] = max(x[s,c,p] + h[s,c,p], 0.0)
seq s<3: for k<{M}, p<196, c<{n}: u[s,k,p] += w[k,c] * t[s,c,p]
seq s<3: for c<{n}, p<196, k<{M}: r[s,c,p] += v[c,k] * u[s,k,p]
seq s<3: for c<{n}, p<196: h[s+1,c,p] = max(min(r[s,c,p], 3.0), -3.0)
for s<3, c<{n}, p<196: y[s,c,p] = h[s+1,c,p]
"""
"""The blocks of a network with the same weights in each are steps: what is laid out is made by the step itself."""

TWO_WAYS = """in h0: f32[{B}, {n}]  const r: f32[{n}, {n}]  const s: f32[{n}, {n}]  in x: f32[{T}, {B}, {n}]
temp h: f32[{T1}, {B}, {n}]  temp u: f32[{T}, {B}, {n}]  temp g: f32[{T1}, {B}, {n}]  temp v: f32[{T}, {B}, {n}]
out y: f32[{T}, {B}, {n}]
for b<{B}, j<{n}: h[0, b, j] = h0[b, j]
seq t<{T}: for b<{B}, j<{n}, k<{n}: u[t, b, j] += h[t, b, k] * r[j, k]
seq t<{T}: for b<{B}, j<{n}: h[t + 1, b, j] = max(min(u[t, b, j] + x[t, b, j], 2.0), -2.0)
for b<{B}, j<{n}: g[0, b, j] = h0[b, j] + 1.0
seq t<{T}: for b<{B}, j<{n}, k<{n}: v[t, b, j] += g[t, b, k] * s[j, k]
seq t<{T}: for b<{B}, j<{n}: g[t + 1, b, j] = max(min(v[t, b, j] - x[{back} - t, b, j], 3.0), -3.0)
for t<{T}, b<{B}, j<{n}: y[t, b, j] = h[t + 1, b, j] + g[{T} - t, b, j]
"""
"""Both directions of a layer."""


def program(text: str, steps: int, batch: int, units: int, gates: int = 3, role: str = "const") -> Program:
    names = {"T": steps, "T1": steps + 1, "B": batch, "n": units, "n2": 2 * units, "M": gates * units, "role": role}
    names |= {"back": steps - 1}
    numbered = {f"gate{k}": f"(a[t, b, j + {k * units}] + u[t, b, j + {k * units}])" for k in range(gates)}
    return parse(text.format(**names, **numbered))


def check(source: Program, threads: int) -> Kernel:
    kernel = compile(source, threads=threads)
    assert isinstance(kernel, Kernel)
    arrays = fill(source, 5)
    found = kernel(*(arrays[t.name] for t in source.inputs))
    several = found if isinstance(found, tuple) else (found,)
    wanted = evaluate(source, arrays)
    for tensor, array in zip(source.outputs, several, strict=True):
        assert np.count_nonzero(wanted[tensor.name])
        np.testing.assert_array_equal(array, wanted[tensor.name])
    return kernel


def spread(kernel: Kernel) -> list[int]:
    """How many tiles of each step the units share."""
    return [sum(isinstance(n, Tile) and bool(n.unit) for n in step.body) for step in steps_of(kernel)]


def steps_of(kernel: Kernel) -> list[Tile]:
    return [n for n in kernel.plan.body if isinstance(n, Tile) and n.name.startswith("step")]


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize(("batch", "units"), [(1, 7), (3, 33), (1, 128), (5, 40), (17, 64)])
@pytest.mark.parametrize("role", ["const", "in"])
def test_a_cell_of_three_gates_is_one_tile_and_one_meeting(batch: int, units: int, threads: int, role: str) -> None:
    kernel = check(program(GATED, 5, batch, units, role=role), threads)
    (step,) = steps_of(kernel)
    assert len(step.body) == 1, "a single segment"
    assert max(spread(kernel)) <= 1


@pytest.mark.parametrize(("batch", "units"), [(1, 7), (3, 33), (2, 96)])
def test_a_second_product_of_what_a_step_made_meets_twice(batch: int, units: int) -> None:
    kernel = check(program(TWO_SUMS, 4, batch, units), 2)
    (step,) = steps_of(kernel)
    assert len(step.body) == 2


@pytest.mark.parametrize(("batch", "units"), [(1, 7), (3, 33), (2, 96)])
def test_separate_matrices_share_a_tile(batch: int, units: int) -> None:
    kernel = check(program(MATRICES, 4, batch, units), 2)
    (step,) = steps_of(kernel)
    assert len(step.body) == 1


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize(("batch", "units"), [(1, 7), (3, 33), (2, 96), (1, 256)])
def test_both_directions_of_a_layer_meet_once_in_a_step(
    monkeypatch: pytest.MonkeyPatch, batch: int, units: int, threads: int
) -> None:
    monkeypatch.setenv("DOVETAIL_CACHE", "off")
    monkeypatch.setattr(recurrent, "MEETING_CYCLES", 1.0)
    kernel = check(program(TWO_WAYS, 4, batch, units), threads)
    (step,) = steps_of(kernel)
    assert len(step.body) == 2, "a segment for each direction"
    nest = build_nest(collapse(kernel.program), kernel.plan, load_target("host"))
    steps = [node for node in walk(nest.body) if isinstance(node, Loop) and Barrier in map(type, node.body)]
    assert [sum(isinstance(node, Barrier) for node in walk((loop,))) for loop in steps] == [1]


def test_a_reduction_of_a_row_divides_a_step() -> None:
    check(program(NORMED, 4, 3, 33), 2)


def test_steps_may_be_known_at_run_time_only() -> None:
    text = str(program(GATED, 6, 2, 24)).replace("[6,", "[T,").replace("<6:", "<T:").replace("<6,", "<T,")
    text = text.replace("[7,", "[T + 1,").replace("h[6,", "h[T,")
    source = parse("size T in 1..40\n" + text)
    kernel = compile(source, threads=2)
    for steps in (1, 2, 9, 40):
        arrays = fill(source, 3, {"T": steps})
        found = kernel(*(arrays[t.name] for t in source.inputs))
        wanted = evaluate(source, arrays, {"T": steps})
        for tensor, array in zip(source.outputs, found, strict=True):
            np.testing.assert_array_equal(array, wanted[tensor.name])


@pytest.mark.parametrize(("batch", "units"), [(1, 72), (3, 100)])
def test_weights_beyond_the_caches_are_swept_back_and_forth_with_the_same_bits(
    monkeypatch: pytest.MonkeyPatch, batch: int, units: int
) -> None:
    monkeypatch.setenv("DOVETAIL_CACHE", "off")
    monkeypatch.setattr(recurrent, "MEETING_CYCLES", 1.0)
    forwards = check(program(GATED, 5, batch, units), 2)
    monkeypatch.setattr(recurrent.RecurrentPlanner, "is_beyond_caches", lambda *_: True)
    alternating = check(program(GATED, 5, batch, units), 2)
    assert " alternating" in str(alternating.plan) and " alternating" not in str(forwards.plan)
    assert plan_from_json(alternating.plan.to_json()) == alternating.plan


@pytest.mark.parametrize(("units", "turns"), [(64, False), (1024, True)])
def test_sweeps_turn_where_weights_are_more_than_the_units_caches_keep(units: int, turns: bool) -> None:
    plan = default_plan(collapse(program(GATED, 3, 1, units)), load_target("x86-64-v4"), 2)
    assert (" alternating" in str(plan)) is turns


@pytest.mark.parametrize("text", [GATED, MATRICES])
def test_a_batch_may_be_known_at_run_time_only(text: str) -> None:
    fixed = str(program(text, 4, 77, 24))
    source = parse("size B in 1..20\n" + fixed.replace("77", "B"))
    kernel = compile(source, threads=2)
    assert isinstance(kernel, Kernel)
    assert len(steps_of(kernel)[0].body) == 1
    for batch in (1, 2, 3, 4, 7, 20):
        arrays = fill(source, 3, {"B": batch})
        found = kernel(*(arrays[t.name] for t in source.inputs), sizes={"B": batch})
        wanted = evaluate(source, arrays, {"B": batch})
        for tensor, array in zip(source.outputs, found if isinstance(found, tuple) else (found,), strict=True):
            np.testing.assert_array_equal(array, wanted[tensor.name])


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("units", "gates"), [(64, 4), (16, 2)])
def test_what_a_step_makes_is_laid_out_in_that_step(units: int, gates: int, threads: int) -> None:
    check(program(IMAGES, 3, 1, units, gates), threads)
