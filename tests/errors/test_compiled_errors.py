"""Every message that a compiled model can give, in a call, from its file, or when it is exported, word for word.

``compiled/<case>.txt`` is the message of the case of that name. Run with ``--update-golden`` to rewrite them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dovetail.base.errors import DovetailError
from dovetail.ir.graph.bound import BoundGraph
from dovetail.ir.graph.build import Builder
from dovetail.model.artefact import load
from dovetail.model.build import compile_graph
from dovetail.model.compiled import CompiledModel
from dovetail.model.export import export
from dovetail.ops.table import OPERATORS
from dovetail.runtime.model_image import HostStep, Machine
from tests.unit.model.graphs import kind, whole_numbers

FOLDER = Path(__file__).parent / "compiled"
ROWS, TABLE = np.zeros(3, np.int64), np.zeros((3, 4), np.float32)


@pytest.fixture(scope="module")
def model() -> CompiledModel:
    """Rows of a table, and the sum of another tensor with them."""
    b = Builder("lookup", OPERATORS)
    table, rows, x = (
        b.constant("c0", kind("f32", 10, 4)),
        b.input("x0", kind("i64", 3)),
        b.input("x1", kind("f32", 3, 4)),
    )
    graph = b.graph(b.add("add", b.add("gather", table, rows), x))
    names = {"c0": "embedding\n", "x0": "tokens", "x1": "\x1b[31mmask"}
    return compile_graph(BoundGraph(graph, {"c0": whole_numbers(1, 10, 4)}, names), threads=1, cache=False)


def changed(model: CompiledModel, **fields: object) -> CompiledModel:
    other = object.__new__(CompiledModel)
    other.finished = replace(model.finished, image=replace(model.finished.image, **fields))  # type: ignore[arg-type]
    return other


def damaged(model: CompiledModel, path: Path, place: int) -> None:
    model.save(path)
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
    load(path)


def saved(model: CompiledModel, path: Path) -> None:
    model.save(path)
    load(path)


Case = Callable[[CompiledModel, Path], object]
CASES: dict[str, Case] = {
    "call-without-an-input": lambda model, path: model(ROWS),
    "call-with-another-dtype": lambda model, path: model(ROWS, TABLE.astype(np.float64)),
    "call-with-another-shape": lambda model, path: model(ROWS, TABLE.T),
    "call-with-a-list": lambda model, path: model([1, 2, 3], TABLE),
    "call-with-an-index-out-of-range": lambda model, path: model(ROWS + 10, TABLE),
    "call-into-an-input": lambda model, path: model(ROWS, TABLE, out=(TABLE,)),
    "call-into-too-many": lambda model, path: model(ROWS, TABLE, out=(TABLE, TABLE)),
    "file-missing": lambda model, path: load("nothing.dovetail"),
    "file-of-something-else": lambda model, path: damaged(model, path, 0),
    "file-of-another-format": lambda model, path: damaged(model, path, 14),
    "file-of-another-length": lambda model, path: damaged(model, path, 57),
    "file-damaged": lambda model, path: damaged(model, path, 100),
    "file-for-another-machine": lambda model, path: saved(changed(model, machine=Machine("z80-none", (), "")), path),
    "file-for-a-better-machine": lambda model, path: saved(changed(model, machine=Machine("", ("flying",), "")), path),
    "export-of-steps-on-the-host": lambda model, path: export(
        changed(model, steps=(HostStep("unique", "", (), ()),)), path.with_suffix(".o")
    ),
    "export-to-another-ending": lambda model, path: export(model, path.with_suffix(".dll")),
}


@pytest.mark.parametrize("case", CASES)
def test_what_goes_wrong_is_said_word_for_word(
    case: str, model: CompiledModel, tmp_path: Path, update_golden: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DovetailError) as caught:
        CASES[case](model, Path("model.dovetail"))
    said = f"{type(caught.value).__name__}: {caught.value}\n"
    golden = FOLDER / f"{case}.txt"
    if update_golden:
        golden.write_text(said, encoding="utf-8")
    assert said == golden.read_text(encoding="utf-8")


def test_every_message_kept_is_one_that_can_be_met() -> None:
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(CASES)
