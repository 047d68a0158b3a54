"""Results are compared by kind, dtype, shape and value: what differs is said, what is within tolerance is not."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from benchmarks.conformance.compare import difference
from dovetail.frontends.onnx.entries import HostValue

ONE = np.ones(2, np.float32)


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (ONE, np.ones(2)),
        (ONE, np.ones((2, 1), np.float32)),
        (ONE, ONE * np.float32(1.01)),
        (np.array([np.nan, 1], np.float32), ONE),
        ([ONE], ONE),
        (ONE, [ONE]),
        ([ONE], [ONE, ONE]),
        ([ONE], [ONE * 2]),
        (None, ONE),
        (ONE, None),
        (np.array(["a"], object), np.array(["b"], object)),
        (np.array([True]), np.array([False])),
        (np.array([10001]), np.array([10000])),
        ({1: ONE}, {2: ONE}),
        (ONE.astype(ml_dtypes.bfloat16), ONE.astype(ml_dtypes.bfloat16) * 2),
    ],
)
def test_what_differs_is_said(found: HostValue, wanted: HostValue) -> None:
    assert difference(found, wanted, 1e-3, 1e-7) is not None


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (ONE, ONE * np.float32(1.0001)),
        (np.array([np.nan, np.inf]), np.array([np.nan, np.inf])),
        ([ONE, ONE], [ONE, ONE]),
        ([], []),
        (None, None),
        (np.array(["a"], object), np.array(["a"], object)),
        ({1: ONE}, {1: ONE}),
        (np.zeros((0, 3)), np.zeros((0, 3))),
    ],
)
def test_what_is_the_same_is_not(found: HostValue, wanted: HostValue) -> None:
    assert difference(found, wanted, 1e-3, 1e-7) is None
