"""Losses against loops in Python."""

from __future__ import annotations

import numpy as np
import pytest

from dovetail.base.errors import CallError, OperatorError
from dovetail.ir.graph.graph import Attribute
from tests.unit.ops.single import apply, whole


@pytest.mark.parametrize("ignore", [None, 2, -1])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(), (3,), (2, 2)])
def test_a_loss_is_minus_the_score_of_the_right_class(
    shape: tuple[int, ...], weighted: bool, ignore: int | None
) -> None:
    x, target = whole(6, 5, *shape), whole(6, *shape, dtype="int64", low=0, high=5)
    if ignore == -1:
        target.reshape(-1)[0] = -1
    weight = np.array([1, 2, 4, 8, 1], np.float32) if weighted else np.ones(5, np.float32)
    losses, weights = np.zeros(target.shape), np.zeros(target.shape)
    for place in np.ndindex(*target.shape):
        t = target[place]
        if t != ignore:
            losses[place] = -x[(place[0], t, *place[1:])] * weight[t]
            weights[place] = weight[t]
    settings: dict[str, Attribute] = {} if ignore is None else {"ignore": ignore}
    given = (x, target, weight) if weighted else (x, target)
    np.testing.assert_array_equal(apply("nll_loss", *given, reduction="none", **settings), losses)
    np.testing.assert_array_equal(apply("nll_loss", *given, reduction="sum", **settings), losses.sum())
    np.testing.assert_allclose(apply("nll_loss", *given, **settings), losses.sum() / weights.sum(), rtol=1e-6)


def test_a_class_that_is_not_there_is_an_error() -> None:
    with pytest.raises(CallError):
        apply("nll_loss", whole(2, 3), np.array([0, 3]))
    with pytest.raises(OperatorError, match="not joined"):
        apply("nll_loss", whole(2, 3), np.array([0, 2]), reduction="max")
