"""Machines that nobody thought of run small programs exactly, with no line of code for any of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dovetail
from dovetail.ir.evaluate import evaluate
from dovetail.ir.fill import fill
from dovetail.simulated.kernel import SimulatedKernel
from tests.differential.random_machines import machine
from tests.differential.small_programs import PROGRAMS, text_for

MACHINES = (8, 25, 30)
"""Seeds: 4x8x4 products of i16; f16 by way of a buffer; f8 with ranges, transposed and aligned."""


@pytest.mark.parametrize("seed", MACHINES)
def test_a_random_machine_runs_twenty_programs_exactly(seed: int, tmp_path: Path) -> None:
    made = machine(seed)
    file = tmp_path / f"{made.name}.toml"
    file.write_text(made.text)
    on_host = 0
    for name in PROGRAMS:
        program = dovetail.program(text_for(name, made.operand, made.total))
        kernel = dovetail.compile(program, target=str(file))
        assert isinstance(kernel, SimulatedKernel)
        arrays = fill(program, seed)
        found = kernel(*(arrays[tensor.name] for tensor in program.inputs))
        wanted = evaluate(program, arrays)[program.outputs[0].name]
        assert isinstance(found, np.ndarray)
        np.testing.assert_array_equal(found, wanted, err_msg=f"{name} on {made.name}")
        assert kernel.cycles > 0
        assert all(statement.reason for statement in kernel.on_host)
        on_host += any("*" in statement.text for statement in kernel.on_host)
    assert len(PROGRAMS) == 20
    assert on_host <= 3, "contractions run on the machine, not beside it"


def test_a_seed_always_draws_the_same_machine() -> None:
    assert machine(5) == machine(5)
    assert len({machine(seed).text for seed in range(20)}) == 20
