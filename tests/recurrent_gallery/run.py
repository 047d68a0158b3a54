"""A model of the gallery, compiled and run: its results beside the reference's, and what became of it."""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from dovetail.frontends.onnx.entries import HostValue
from dovetail.frontends.onnx.file import from_proto
from dovetail.model.onnx_session import Session, reference
from dovetail.model.opened import open_model
from dovetail.model.report import COMPILED, HOST, ModelReport
from dovetail.model.torch_module import compile_module
from tests.recurrent_gallery.onnx_models import BATCH, INPUTS, exported
from tests.recurrent_gallery.spellings import LookAlike, Spelling

Array = npt.NDArray[np.float32]
LOOPS = ("scan", "lstm", "projected_lstm", "gru", "rnn")
"""Operators that are a recurrence."""
_FOUND = re.compile(r"T=(\d+)")


@dataclass(frozen=True, slots=True)
class Ran:
    """``found`` and ``wanted`` are results in order; ``report`` says what was compiled."""

    found: list[Array]
    wanted: list[Array]
    report: ModelReport

    @property
    def loops(self) -> int:
        """Recurrences in compiled regions; both directions of a layer may be one region."""
        return sum(op in LOOPS for row in self.report.rows if row.kind == COMPILED for op in row.operators)

    @property
    def compiled(self) -> int:
        return self.report.count(COMPILED)

    @property
    def on_host(self) -> int:
        return self.report.count(HOST)

    @property
    def rolled(self) -> list[int]:
        """Steps of the recurrences that re-rolling has found."""
        notes = [note.what for note in self.report.notes if note.pass_ == "re-roll"]
        return [int(found[1]) for what in notes if (found := _FOUND.search(what))]


def ran(spelling: Spelling) -> Ran:
    torch.manual_seed(0)
    model = spelling.model()
    inputs = spelling.inputs(spelling.steps)
    if isinstance(model, onnx.ModelProto):
        (x, *_) = inputs
        wanted = Session(from_proto(model), reference).run({"x": x.numpy()})
        return _ran_onnx(model, inputs, [np.asarray(value, np.float32) for value in wanted.values()])
    return _ran_module(model.eval(), inputs, spelling.by_onnx)


def ran_look_alike(look_alike: LookAlike) -> Ran:
    torch.manual_seed(0)
    return _ran_module(look_alike.model().eval(), (torch.randn(look_alike.steps, BATCH, INPUTS),), True)


def _ran_module(module: nn.Module, inputs: tuple[Tensor, ...], by_onnx: bool) -> Ran:
    with torch.no_grad():
        wanted = [tensor.numpy() for tensor in tree_leaves(module(*inputs))]
        if by_onnx:
            return _ran_onnx(exported(module, *inputs), inputs, wanted)
        run = compile_module(module, inputs, strict=True, threads=2, jobs=1)
        found = [tensor.numpy() for tensor in tree_leaves(run(*inputs))]
    (report,) = run.report.parts
    return Ran(found, wanted, report)


def _ran_onnx(model: onnx.ModelProto, inputs: tuple[Tensor, ...], wanted: list[Array]) -> Ran:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        onnx.save(model, path)
        opened = open_model(path, threads=2, jobs=1)
        names = [given.name for given in opened.inputs]
        feeds: dict[str, HostValue] = {n: x.numpy() for n, x in zip(names, inputs, strict=True)}
        found = [np.asarray(value, np.float32) for value in opened.run(feeds).values()]
        return Ran(found, wanted, opened.compiled(feeds).report)


def agree(found: Ran) -> None:
    """Results against the reference. States are between -4 and 4, and a rounding of a sum of some twenty products
    grows little in a hundred steps."""
    assert len(found.found) == len(found.wanted)
    for mine, theirs in zip(found.found, found.wanted, strict=True):
        assert np.abs(theirs).max() > 1e-3
        np.testing.assert_allclose(mine, theirs, rtol=2e-5, atol=2e-6)
