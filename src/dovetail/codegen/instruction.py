"""Single instructions as functions of their own, so that what a target file emits can be run alone.

    void c0(ptr words)

takes one word per operand, the address of its storage (registers too: they are loaded and stored around the
emission), then named strides, then parameters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dovetail.codegen.arena import Arena
from dovetail.codegen.emission import Emission, Emissions
from dovetail.codegen.lower import LlvmModule
from dovetail.targets.model import Instruction, Target


def instructions_module(instructions: Sequence[Instruction], target: Target) -> tuple[LlvmModule, tuple[str, ...]]:
    """A module with one function per instruction, and their symbols."""
    emissions = Emissions(target)
    wrappers = [_wrapper(f"c{number}", emissions.of(i.name), emissions) for number, i in enumerate(instructions)]
    symbols = tuple(f"c{number}" for number in range(len(wrappers)))
    text = "\n".join([emissions.text(), *wrappers]) + "\n"
    return LlvmModule(text, symbols[0] if symbols else "", Arena(()), Arena(()), ()), symbols


def _wrapper(symbol: str, emission: Emission, emissions: Emissions) -> str:
    instruction = emission.instruction
    kinds = ["ptr"] * len(instruction.operands) + ["i64"] * (len(emission.strides) + len(emission.parameters))
    lines: list[str] = []
    for number, kind in enumerate(kinds):
        lines.append(f"  %a{number} = getelementptr i64, ptr %words, i64 {number}")
        lines.append(f"  %w{number} = load {kind}, ptr %a{number}")
    pointers = {operand.name: f"%w{number}" for number, operand in enumerate(instruction.operands)}
    arguments = _arguments(lines, emission, pointers)
    state = emissions.state(instruction.state) if instruction.state else None
    lines += [f"  call void @{state}_enter()"] if state else []
    call = f"call {emission.result_type} @{emission.symbol}({', '.join(arguments)})"
    if emission.result is None:
        lines.append(f"  {call}")
    else:
        kind, pointer = emission.result_type, pointers[emission.result.name]
        lines.append(f"  %result = {call}")
        lines.append(f"  store {kind} %result, ptr {pointer}, align {emission.result.dtype.bytes}")
    lines += [f"  call void @{state}_leave()"] if state else []
    body = "\n".join(lines)
    return f"define void @{symbol}(ptr %words) nounwind {{\n{body}\n  ret void\n}}"


def _arguments(lines: list[str], emission: Emission, pointers: Mapping[str, str]) -> list[str]:
    """Registers loaded, words converted; operations are added to ``lines``."""
    arguments: list[str] = []
    for number, operand in enumerate(emission.passed):
        kind, pointer = emission.operand_type(operand), pointers[operand.name]
        if emission.in_registers(operand):
            lines.append(f"  %r{number} = load {kind}, ptr {pointer}, align {operand.dtype.bytes}")
            arguments.append(f"{kind} %r{number}")
        else:
            arguments.append(f"ptr {pointer}")
    first = len(pointers)
    arguments += [f"i64 %w{first + number}" for number in range(len(emission.strides))]
    first += len(emission.strides)
    for number, name in enumerate(emission.parameters):
        lines.append(f"  %p.{name} = trunc i64 %w{first + number} to i32")
        arguments.append(f"i32 %p.{name}")
    return arguments + [_mask(lines, name, emission.mask_lanes(name)) for name in emission.masks]


def _mask(lines: list[str], name: str, lanes: int) -> str:
    wide = f"<{lanes} x i32>"
    numbers = ", ".join(f"i32 {lane}" for lane in range(lanes))
    lines.append(f"  %one.{name} = insertelement {wide} poison, i32 %p.{name}, i64 0")
    lines.append(f"  %all.{name} = shufflevector {wide} %one.{name}, {wide} poison, {wide} zeroinitializer")
    lines.append(f"  %on.{name} = icmp sgt {wide} %all.{name}, <{numbers}>")
    return f"<{lanes} x i1> %on.{name}"
