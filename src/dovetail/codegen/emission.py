"""An instruction as an LLVM function: its signature, its definition, and calls of it.

Arguments: operands in order (registers by value, memories by pointer; a register that is only written is the
result instead), named strides as i64, parameters as i32, then a mask for each parameter whose mask the body uses.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from dovetail.base.errors import CodegenError
from dovetail.ir.index import Index
from dovetail.ir.nest_verify import is_result, register_lanes
from dovetail.targets.model import Instruction, MemoryKind, Operand, Target
from dovetail.targets.template import register_type

_MASK = re.compile(r"%mask\.([A-Za-z_][A-Za-z_0-9]*)")


@dataclass(frozen=True)
class Emission:
    """One instruction and the symbol that stands for it in a module."""

    instruction: Instruction
    target: Target
    symbol: str

    @cached_property
    def result(self) -> Operand | None:
        """The register operand the function returns."""
        written = self.instruction.program.statements[-1].out.tensor
        operand = self.instruction.operand(written)
        return operand if self.in_registers(operand) else None

    @cached_property
    def result_type(self) -> str:
        return self.operand_type(self.result) if self.result else "void"

    @cached_property
    def passed(self) -> tuple[Operand, ...]:
        """Operands that are arguments."""
        program = self.instruction.program
        results = (o for o in self.instruction.operands if self.in_registers(o) and is_result(program, o.name))
        returned = next(results, None)
        return tuple(o for o in self.instruction.operands if o is not returned)

    @cached_property
    def arguments(self) -> tuple[tuple[int, Operand], ...]:
        """Operands that are arguments, each with its place among all operands."""
        return tuple((at, o) for at, o in enumerate(self.instruction.operands) if o in self.passed)

    @cached_property
    def returned(self) -> int | None:
        """The place among all operands of the one that the function returns."""
        return None if self.result is None else self.instruction.operands.index(self.result)

    @cached_property
    def strides(self) -> tuple[str, ...]:
        """Names of strides passed at run time."""
        named = (s for o in self.instruction.operands for s in o.strides if isinstance(s, str))
        return tuple(dict.fromkeys(named))

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        return tuple(size.name for size in self.instruction.program.sizes)

    @cached_property
    def masks(self) -> tuple[str, ...]:
        """Parameters whose mask the body mentions."""
        mentioned = set(_MASK.findall(self.instruction.emit))
        return tuple(name for name in self.parameters if name in mentioned)

    def in_registers(self, operand: Operand) -> bool:
        return self.target.memory(operand.memory).kind is MemoryKind.REGISTERS

    def lanes(self, operand: Operand) -> int:
        return self._forms[operand.name][1]

    def operand_type(self, operand: Operand) -> str:
        return self._forms[operand.name][0]

    @cached_property
    def _forms(self) -> dict[str, tuple[str, int]]:
        """LLVM type and lanes by operand."""
        forms: dict[str, tuple[str, int]] = {}
        for operand in self.instruction.operands:
            lanes = register_lanes(self.instruction.program, operand.name)
            held = self.in_registers(operand)
            forms[operand.name] = (register_type(operand.dtype, lanes) if held else "ptr", lanes)
        return forms

    def highest(self, extent: Index) -> int:
        return extent.evaluate({s.name: s.high for s in self.instruction.program.sizes})

    def mask_lanes(self, parameter: str) -> int:
        return next(s.high for s in self.instruction.program.sizes if s.name == parameter)

    def definition(self) -> str:
        """``define internal ...``, or the declaration of an external symbol."""
        arguments = [(self.operand_type(o), o.name) for o in self.passed]
        arguments += [("i64", name) for name in self.strides]
        arguments += [("i32", name) for name in self.parameters]
        arguments += [(f"<{self.mask_lanes(name)} x i1>", f"mask.{name}") for name in self.masks]
        if self.instruction.call:
            return f"declare {self.result_type} @{self.symbol}({', '.join(kind for kind, _ in arguments)})"
        if not self.instruction.emit:
            raise CodegenError(
                f"instruction '{self.instruction.name}' of target '{self.target.name}' has no emission",
                where=self.instruction.source or None,
                why="the target describes what the instruction does, not how to write it",
                hint="run this target in the simulator, or add `emit` or `call` to the instruction",
            )
        listed = ", ".join(f"{kind} %{name}" for kind, name in arguments)
        body = self.instruction.emit.strip("\n")
        return f"define internal {self.result_type} @{self.symbol}({listed}) alwaysinline nounwind {{\n{body}\n}}"


class Emissions:
    """The instructions a module uses, each with a symbol of its own, in order of first use."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.shares = 0
        """Parallel loops with counters so far."""
        self._found: dict[str, Emission] = {}
        self._states: dict[str, str] = {}

    def of(self, name: str) -> Emission:
        found = self._found.get(name)
        if found is None:
            if name not in self.target.by_name:
                raise CodegenError(f"target '{self.target.name}' has no instruction '{name}'")
            instruction = self.target.instruction(name)
            found = Emission(instruction, self.target, instruction.call or f"i{len(self._found)}")
            self._found[name] = found
        return found

    def beside(self) -> tuple[tuple[str, str], ...]:
        """Symbols called that others define, each with the file it is in ("" where none is named)."""
        used = (emission.instruction for emission in self._found.values())
        found = {i.call: i.object.name if i.object is not None else "" for i in used if i.call}
        return tuple(sorted(found.items()))

    def state(self, name: str) -> str:
        """Symbol prefix of a state's ``_enter`` and ``_leave`` functions."""
        return self._states.setdefault(name, f"s{len(self._states)}")

    def text(self) -> str:
        """Definitions and declarations of everything used."""
        parts: dict[str, None] = {}
        if self.target.llvm is not None and self.target.llvm.definitions:
            parts[self.target.llvm.definitions] = None
        for emission in self._found.values():
            parts.update(dict.fromkeys(d.strip() for d in emission.instruction.declares))
            parts[emission.definition()] = None
        for state in self.target.states:
            if state.name in self._states:
                parts.update(dict.fromkeys(d.strip() for d in state.declares))
                for part, body in (("enter", state.enter), ("leave", state.leave)):
                    symbol = f"{self._states[state.name]}_{part}"
                    parts[f"define internal void @{symbol}() alwaysinline nounwind {{\n{body.strip()}\n}}"] = None
        return "\n".join(parts)
