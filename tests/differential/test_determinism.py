"""The same program, plan and target give the same bytes; the same plan gives the same bits on 1 and on 2 threads."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import numpy as np
import pytest

from dovetail.codegen.compile import emit_object
from dovetail.codegen.lower import lower
from dovetail.ir.program import Role
from dovetail.pipeline import program
from dovetail.schedule.collapse import collapse
from dovetail.schedule.default import default_plan
from dovetail.schedule.lower.build import build_nest
from dovetail.targets.load import load_target
from tests.differential.kernels import uncertified
from tests.differential.test_fusion import BIAS_RELU, CONV_BIAS_RELU, LAYER_NORM, SEPARABLE, SOFTMAX

LARGE = """
in a: f32[70,900]  in b: f32[900,65]  out c: f32[70,65]
for i<70, j<65, k<900: c[i,j] += a[i,k] * b[k,j]
"""
DOT = """
in a: f32[5000]  in b: f32[5000]  out c: f32[]
for k<5000: c[] += a[k] * b[k]
"""
PROGRAMS = (BIAS_RELU, CONV_BIAS_RELU, LAYER_NORM, SEPARABLE, SOFTMAX, LARGE, DOT)


@pytest.mark.parametrize("text", PROGRAMS)
@pytest.mark.parametrize("planned_for", (1, 2))
def test_one_plan_gives_the_same_bits_on_one_and_on_two_threads(text: str, planned_for: int) -> None:
    rows = program(text)
    plan = default_plan(collapse(rows), load_target("x86-64-v3"), planned_for)
    rng = np.random.default_rng(5)
    arrays = [rng.standard_normal([e.const for e in t.shape]).astype(np.float32) for t in rows.inputs]
    assert all(t.role is not Role.INOUT for t in rows.inputs)
    one, two = (uncertified(rows, plan, "x86-64-v3", threads)(*arrays) for threads in (1, 2))
    assert isinstance(one, np.ndarray)
    assert isinstance(two, np.ndarray)
    assert one.tobytes() == two.tobytes()


def digest(text: str) -> str:
    """Of the object code of ``text``, planned and compiled from scratch."""
    target, flat = load_target("x86-64-v3"), collapse(program(text))
    nest = build_nest(flat, default_plan(flat, target, 2), target)
    return hashlib.sha256(emit_object(lower(nest, target), target)).hexdigest()


def test_two_processes_make_the_same_object_code() -> None:
    """With different hash seeds, so that no set or dictionary order can matter."""
    wanted = [digest(text) for text in PROGRAMS]
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-m", "tests.differential.test_determinism"],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(["src", *sys.path[1:]])},
        )
        assert done.stdout.split() == wanted


if __name__ == "__main__":
    print("\n".join(map(digest, PROGRAMS)))
