"""Judging of whole models: errors against the reference, and which bars a model misses."""

import math

import numpy as np
import pytest

from benchmarks.harness.rounds import Outcome, Row
from benchmarks.model_costs import Cost, Costs
from benchmarks.model_systems import worst_error
from benchmarks.models import PREFIX, _faster_than_torch, _missed
from benchmarks.problems import Floats
from benchmarks.zoo import Model, ModelProblem, model_from_json

MODEL = Model("bert-base", "folder", 10, 20)


def test_the_error_is_the_worst_of_all_outputs_in_parts_of_each_ones_largest_value() -> None:
    wanted = [np.array([1.0, -4.0]), np.array([100.0, 0.0])]
    results = [np.array([1.0, -4.0], np.float32), np.array([100.0, 1.0], np.float32)]
    assert worst_error(results, wanted) == pytest.approx(0.01)


@pytest.mark.parametrize("results", [[], [np.zeros(3, np.float32)], [np.array([np.nan, 1], np.float32)]])
def test_missing_outputs_other_shapes_and_nans_are_no_result(results: list[Floats]) -> None:
    assert worst_error(results, [np.array([1.0, 2.0])]) == math.inf


def test_memory_is_counted_from_a_bare_interpreter_on() -> None:
    steps = {"bare": Cost(0, 50), "artefact": Cost(0.1, 170), "onnxruntime": Cost(0.2, 150)}
    assert Costs(steps, {}).memory_ratio == pytest.approx(1.2)
    assert Costs({"bare": Cost(0, 50)}, {}).memory_ratio is None


def test_the_bars_of_a_model_that_are_missed_are_named() -> None:
    steps = {"bare": Cost(0, 0), "cold": Cost(10.1, 1), "cached": Cost(0.4, 1), "artefact": Cost(0.6, 13)}
    assert _missed(MODEL, Costs({**steps, "onnxruntime": Cost(1, 10)}, {})) == "cold, artefact, memory"


def test_a_model_comes_back_from_json() -> None:
    assert model_from_json(ModelProblem(MODEL).to_json()) == MODEL


def test_pytorch_is_compared_round_by_round_and_rivals_are_not() -> None:
    def row(torch: tuple[float, ...]) -> Row:
        seconds = {"dovetail": (1.0, 2.0, 3.0), "openvino": (0.5, 0.5, 0.5), "torch": torch}
        outcomes = {PREFIX + name: Outcome("close", "", times) for name, times in seconds.items()}
        return Row(ModelProblem(MODEL), outcomes, ((1.0, 1.0),), PREFIX + "dovetail", None, None, math.nan)

    assert _faster_than_torch(row((1.1, 2.1, 0.1)))
    assert not _faster_than_torch(row((0.9, 1.9, 30.0)))
