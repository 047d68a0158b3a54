"""LLVM module -> object code, assembly, optimised IR; same input, same bytes.

The nest says what is a loop, what is unrolled and what stays in registers; LLVM is asked to keep it that way. So the
passes are few: instructions are inlined, stack slots become registers, and what is then constant is folded. Loops
are neither unrolled nor vectorised. Address arithmetic is strength-reduced by the code generator behind them. On
register tiles of a matmul this gives the inner loops of LLVM's -O2, in a fifth of its time before code generation.
"""

from __future__ import annotations

from functools import cache

import llvmlite.binding as llvm

from dovetail.base.errors import CodegenError
from dovetail.codegen.lower import LlvmModule
from dovetail.targets.model import Target

BRIEF, USUAL = 1, 2
"""How much the code generator does, in LLVM's own numbers."""


def emit_object(module: LlvmModule, target: Target, brief: bool = False) -> bytes:
    """Position-independent object code; ``brief``: instructions are not put in a better order, which takes a while."""
    machine = _machine_of(target, BRIEF if brief else USUAL)
    return bytes(machine.emit_object(_optimised(module.text, machine)))


def emit_assembly(module: LlvmModule, target: Target) -> str:
    machine = _machine_of(target)
    return str(machine.emit_assembly(_optimised(module.text, machine)))


def emit_ir(module: LlvmModule, target: Target) -> str:
    """LLVM IR after optimisation."""
    return str(_optimised(module.text, _machine_of(target)))


def _optimised(text: str, machine: llvm.TargetMachine) -> llvm.ModuleRef:
    try:
        parsed = llvm.parse_assembly(_header(machine) + text)
        parsed.verify()
    except RuntimeError as error:
        raise CodegenError(
            "LLVM does not accept the generated text",
            why=str(error),
            hint="check the emissions of the target file: dovetail targets check FILE",
        ) from error
    passes, builder = _passes(machine)
    passes.run(parsed, builder)
    return parsed


@cache
def _header(machine: llvm.TargetMachine) -> str:
    """What every module for the machine begins with."""
    return f'target datalayout = "{machine.target_data}"\ntarget triple = "{machine.triple}"\n'


@cache
def _passes(machine: llvm.TargetMachine) -> tuple[llvm.ModulePassManager, llvm.PassBuilder]:
    """Made once: every call of LLVM gives the interpreter away, and waits until it comes back."""
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.add_global_dead_code_eliminate_pass()
    return passes, llvm.create_pass_builder(machine, _tuning())


def _tuning() -> llvm.PipelineTuningOptions:
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_unrolling = False
    options.loop_vectorization = False
    options.loop_interleaving = False
    options.slp_vectorization = False
    return options


def _machine_of(target: Target, effort: int = USUAL) -> llvm.TargetMachine:
    if target.llvm is None:
        raise CodegenError(
            f"target '{target.name}' has no [llvm] table",
            why="it describes a machine for the simulator",
            hint="run it in the simulator",
        )
    return _machine(target.llvm.triple, target.llvm.cpu, ",".join(target.llvm.features), effort)


@cache
def _machine(triple: str, cpu: str, features: str, effort: int) -> llvm.TargetMachine:
    _initialise()
    found = llvm.Target.from_triple(triple or llvm.get_default_triple())
    return found.create_target_machine(cpu=cpu, features=features, opt=effort, reloc="pic", codemodel="small")


@cache
def _initialise() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
