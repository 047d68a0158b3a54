"""The machine of the how-to page: one file is all it takes to compile for it, simulate it and be exact."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import dovetail
from dovetail.ir.evaluate import evaluate
from dovetail.ir.fill import fill
from dovetail.simulated.kernel import SimulatedKernel

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/how_to/add_a_target.md").read_text(encoding="utf-8")
FILES = {
    m[2]: m[3] for m in re.finditer(r"^```(toml|dovetail)\n# (\w+\.\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
}
PROGRAMS = {name: text for name, text in FILES.items() if name.endswith(".dt")}


@pytest.fixture
def rank1(tmp_path: Path) -> str:
    file = tmp_path / "rank1.toml"
    file.write_text(FILES["rank1.toml"])
    return str(file)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_page_s_machine_computes_its_programs_exactly(name: str, rank1: str) -> None:
    program = dovetail.program(PROGRAMS[name])
    kernel = dovetail.compile(program, target=rank1)
    assert isinstance(kernel, SimulatedKernel)
    arrays = fill(program, 5)
    found = kernel(*(arrays[tensor.name] for tensor in program.inputs))
    np.testing.assert_array_equal(found, evaluate(program, arrays)[program.outputs[0].name])
    assert kernel.on_host == ()
    assert kernel.predicted_cycles == pytest.approx(kernel.cycles, rel=0.1)


def test_the_page_has_a_product_a_convolution_and_a_sum() -> None:
    assert sorted(PROGRAMS) == ["convolution.dt", "product.dt", "sum.dt"]


def test_no_code_knows_the_machine() -> None:
    for file in (ROOT / "src").rglob("*"):
        if file.suffix in (".py", ".toml"):
            assert "rank1" not in file.read_text(encoding="utf-8"), file
