"""What is timed on each machine, and what it is compared with."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.accelerators.conv_forms import forms
from benchmarks.accelerators.hand_conv import can_run, hand_conv_nest
from benchmarks.accelerators.hand_npu import hand_gemm, hand_gru
from benchmarks.accelerators.programs import F16, F64, I8, Cell, batch_last_conv, cell, channels_last_conv, gemm
from benchmarks.accelerators.scale_sim import Counted
from benchmarks.shapes import SHAPES, Conv, Gemm, read_shapes
from dovetail.sim.timed import simulate_time
from dovetail.targets.load import load_target

NETWORKS = ("vgg16", "resnet50_convs", "yolov2")
SERIAL = Path(__file__).parent / "systolic16-serial-calc.toml"
LARGE = (
    Gemm(1024, 1024, 1024),
    Gemm(512, 512, 512),
    Gemm(2048, 512, 512),
    Gemm(512, 2048, 512),
    Gemm(512, 512, 2048),
    Gemm(768, 1536, 640),
    Gemm(528, 544, 560),
    Gemm(1040, 720, 1360),
    Gemm(2048, 2048, 2048),
)
"""All dimensions at least 512 and multiples of 16."""


@dataclass(frozen=True, slots=True)
class Case:
    """A program on a machine; ``hand`` gives the cycles of the hand plan, or of another simulator, if there are any."""

    label: str
    machine: str
    text: str
    macs: int
    hand: Callable[[], float] | None = None
    file: Path | None = None
    """Of a machine that is no part of the package."""

    @property
    def target(self) -> str | Path:
        return self.file or self.machine


def convolutions(batch: int) -> Iterator[Case]:
    """Of all networks: with the batch innermost where it fills the machine, with channels innermost otherwise."""
    for label, conv in layers(batch):
        hand = _hand_conv(conv) if can_run(conv) else None
        yield Case(label, "sw26010", _implicit(conv), conv.flops // 2, hand)


def forms_of(label: str, conv: Conv) -> tuple[tuple[str, Case], ...]:
    """A layer in all its forms: name of the form and case."""
    return tuple(
        (form.name, Case(f"{label} {form.name} {form.variant}".rstrip(), "sw26010", form.text, conv.flops // 2))
        for form in forms(_implicit(conv))
    )


def layers(batch: int) -> Iterator[tuple[str, Conv]]:
    """Of all networks."""
    for network in NETWORKS:
        for shape in read_shapes(SHAPES / f"{network}.json").convs:
            conv = replace(shape, n=batch)
            yield f"{network.removesuffix('_convs')} {conv.label}", conv


def _implicit(conv: Conv) -> str:
    return batch_last_conv(conv, F64) if conv.n % 128 == 0 else channels_last_conv(conv, F64)


def fully_connected(batch: int) -> Iterator[Case]:
    """Outputs by batch where the batch fills the machine, batch by outputs otherwise."""
    for shape in read_shapes(SHAPES / "fully_connected.json").gemms:
        whole = Gemm(shape.m, batch, shape.k) if batch % 128 == 0 else Gemm(batch, shape.m, shape.k)
        yield Case(f"fc {whole.label}", "sw26010", gemm(whole, F64), whole.flops // 2)


def npu_products() -> Iterator[Case]:
    """DeepBench's products."""
    for shape in read_shapes(SHAPES / "deepbench.json").gemms:
        yield Case(shape.label, "npu-mv", gemm(shape, F16), shape.flops // 2, _hand_gemm(shape))


def npu_cells() -> Iterator[Case]:
    """DeepBench's GRUs."""
    for shape in deepbench_cells():
        if shape.kind == "gru":
            yield Case(shape.label, "npu-mv", cell(shape, F16), shape.macs, _hand_gru(shape))


def array_products() -> Iterator[Case]:
    """Products that fill the array."""
    for shape in LARGE:
        yield Case(shape.label, "systolic16", gemm(shape, I8), shape.flops // 2)


def counted(one: Counted) -> Case:
    """A shape that SCALE-Sim has counted, on the array without overlap and without waiting for memory."""
    text = gemm(one.shape, I8) if isinstance(one.shape, Gemm) else channels_last_conv(one.shape, I8)
    return Case(one.shape.label, SERIAL.stem, text, one.shape.flops // 2, lambda: one.cycles, SERIAL)


def deepbench_cells() -> Iterator[Cell]:
    """GRUs and LSTMs."""
    for entry in json.loads((SHAPES / "deepbench.json").read_text())["rnn"]:
        if entry["type"] in ("gru", "lstm"):
            yield Cell(entry["type"], entry["hidden"], entry["batch"], entry["timesteps"])


def _hand_conv(conv: Conv) -> Callable[[], float]:
    return lambda: simulate_time(hand_conv_nest(conv), load_target("sw26010")).cycles


def _hand_gemm(shape: Gemm) -> Callable[[], float]:
    return lambda: hand_gemm(shape, load_target("npu-mv"), F16).cycles


def _hand_gru(shape: Cell) -> Callable[[], float]:
    return lambda: hand_gru(shape, load_target("npu-mv"), F16)
