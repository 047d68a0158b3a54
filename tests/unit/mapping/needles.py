"""Instructions written as text, and the fits a test asks about."""

from __future__ import annotations

from pathlib import Path

from dovetail.ir.fit import Fit, MappingResult
from dovetail.ir.parse import parse
from dovetail.targets.load import load_target
from dovetail.targets.model import Instruction, Operand, Target

TARGETS = Path(__file__).parents[2] / "targets"


def instruction(name: str, text: str) -> Instruction:
    """An instruction whose program is ``text``."""
    program = parse(text)
    operands = tuple(Operand(t.name, t.dtype, "memory") for t in program.tensors)
    return Instruction(name, program, operands, source=f"test.toml: [[instruction]] '{name}'")


def machine(*instructions: Instruction) -> Target:
    """A target that has these instructions."""
    return Target("test", "", (), (), {i.name: i for i in instructions})


def lab_target(name: str) -> Target:
    """A machine of tests/targets."""
    return load_target(str(TARGETS / f"{name}.toml"))


FMA = instruction("fma", "inout acc: f32[8] in a: f32[8] in b: f32[8] for l<8: acc[l] += a[l] * b[l]")
DOT = instruction("dot", "inout acc: f32[] in a: f32[8] in b: f32[8] for l<8: acc[] += a[l] * b[l]")
MATRIX = instruction(
    "matrix",
    "inout acc: f32[16,16] in a: f32[16,16] in w: f32[16,16] for i<16, j<16, k<16: acc[i,j] += a[i,k] * w[k,j]",
)


def bound(fit: Fit) -> dict[str, str]:
    """Instruction loop -> "p*q"."""
    return {loop.needle: "*".join(loop.loops) for loop in fit.loops}


def holds(fit: Fit) -> dict[str, str]:
    """Operand -> what it holds, the last where one is bound twice."""
    return {operand.needle: str(operand.value) for operand in fit.operands}


def adapters(fit: Fit) -> set[str]:
    """ "kind operand" of each adapter but padding."""
    return {f"{a.kind} {a.operand}" for a in fit.adapters if a.kind != "pad"}


def find(result: MappingResult, loops: dict[str, str], **operands: str) -> Fit | None:
    """The fit with these loops and, where given, tensors in these operands."""
    for fit in result.fits:
        held = holds(fit)
        if bound(fit) == loops and all(held[name].split("[")[0] == tensor for name, tensor in operands.items()):
            return fit
    return None
