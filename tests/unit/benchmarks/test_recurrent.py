"""Cases of the recurrent benchmark: their names, what they cost, what the machine allows, and which bars count."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from benchmarks.harness.rounds import Outcome, Row
from benchmarks.recurrent import SUBJECT, TORCH, Measured, _verdicts
from benchmarks.recurrent_cases import CELLS, GRU, LSTM, Case, case_of, deepbench_cases, is_case, make
from benchmarks.shapes import ShapeFileError
from benchmarks.zoo import Model, ModelProblem
from dovetail.model.opened import open_model

CASE = Case(GRU, 50, 4, 1024)


def test_a_case_is_its_name() -> None:
    assert CASE.name == "gru-t50-b4-h1024"
    assert case_of(CASE.name) == CASE
    assert is_case(Case(CELLS, 100, 1, 128).name) and not is_case("resnet-50")


def test_the_floor_is_the_slower_of_multiply_adds_and_weights() -> None:
    assert CASE.floor(1e30, 1e9) == pytest.approx(51 * CASE.weight_bytes / 1e9)
    assert CASE.floor(1e9, 1e30) == pytest.approx(CASE.flops / 1e9)


def test_layers_that_differ_beyond_the_longest_sequence_are_one(tmp_path: Path) -> None:
    path = tmp_path / "shapes.json"
    entries = [{"type": "gru", "timesteps": t, "batch": 1, "hidden": 8} for t in (1500, 750, 20)]
    path.write_text(json.dumps({"rnn": [*entries, {"type": "vanilla", "timesteps": 9, "batch": 1, "hidden": 8}]}))
    assert deepbench_cases(path, 50) == [Case(GRU, 50, 1, 8), Case(GRU, 20, 1, 8)]
    path.write_text("{}")
    with pytest.raises(ShapeFileError, match="rnn"):
        deepbench_cases(path, 50)


def measured(ours: float, best: float, floor: float) -> Measured:
    seconds = {SUBJECT: ours, TORCH: 10.0, "model/openvino": best}
    outcomes = {name: Outcome("close", "", (time,) * 3) for name, time in seconds.items()}
    problem = ModelProblem(Model(CASE.name, "", 1, 1))
    row = Row(problem, outcomes, ((1.0, 1.0),) * 3, SUBJECT, "model/openvino", best / ours, 0.0)
    return Measured(CASE, row, floor, 1.0)


def test_where_the_machine_allows_less_the_bar_is_a_part_of_that() -> None:
    limited = measured(1.0, 1.0, 0.98)
    assert limited.ceiling == pytest.approx(1 / 0.98)
    assert limited.bar(1.15) == pytest.approx(0.95 / 0.98)
    assert all(met for _, met in _verdicts("deepbench", [limited]))
    assert not all(met for _, met in _verdicts("deepbench", [measured(1.0, 1.0, 0.5)]))


def test_eager_pytorch_has_bars_of_its_own() -> None:
    texts = dict(_verdicts("unrolled", [measured(1.0, 2.0, 0.5), measured(5.0, 10.0, 0.5)]))
    eager = [met for text, met in texts.items() if "eager" in text]
    assert eager == [False, False], texts


@pytest.mark.parametrize("kind", [CELLS, LSTM, GRU])
def test_the_files_of_a_case_compute_what_the_module_does(kind: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    model = make(tmp_path, Case(kind, 4, 2, 8))
    made = open_model(model.onnx, threads=1, jobs=1).run(dict(model.inputs()))
    for found, wanted in zip(made.values(), model.reference(), strict=True):
        np.testing.assert_allclose(np.asarray(found, np.float64), wanted, rtol=1e-5, atol=1e-6)
    assert math.isfinite(model.flops)
