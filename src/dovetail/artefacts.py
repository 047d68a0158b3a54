"""What a compilation leaves to look at or to ship: LLVM text, assembly, object code with its C header, plan, nest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from dovetail.base.errors import DovetailError
from dovetail.codegen.compile import emit_assembly, emit_ir, emit_object
from dovetail.codegen.header import header_text
from dovetail.codegen.lower import LlvmModule, lower
from dovetail.ir.nest import Nest
from dovetail.ir.plan import Plan
from dovetail.ir.program import Program
from dovetail.mapping.tiles import tile_fits
from dovetail.schedule.ahead import planned_part, split_ahead
from dovetail.schedule.default import default_plan
from dovetail.schedule.estimate import fastest_flat
from dovetail.schedule.flats import flat_of, flats
from dovetail.schedule.lower.build import build_nest
from dovetail.targets.model import Target

_Maker = Callable[[Plan, Nest, LlvmModule, Target], str | bytes]
_MAKERS: Mapping[str, _Maker] = {
    "ll": lambda plan, nest, module, target: emit_ir(module, target),
    "s": lambda plan, nest, module, target: emit_assembly(module, target),
    "o": lambda plan, nest, module, target: emit_object(module, target),
    "h": lambda plan, nest, module, target: header_text(module, nest),
    "plan": lambda plan, nest, module, target: plan.to_json() + "\n",
    "nest": lambda plan, nest, module, target: f"{nest}\n",
}
KINDS = tuple(_MAKERS)


def artefacts(program: Program, plan: Plan, target: Target, kinds: Iterable[str]) -> dict[str, bytes]:
    """The files of each kind in ``kinds``, by kind; the same input gives the same bytes.

    "ahead.o" and its like compute constants of the rest from the program's, once, before the first call.
    """
    wanted = tuple(kinds)
    for kind in wanted:
        if kind not in _MAKERS:
            raise DovetailError(f"there is no artefact '{kind}'", hint=", ".join(KINDS))
    main = planned_part(program, plan)
    made = _made(main, plan, target, wanted)
    ahead = split_ahead(program).ahead if main is not program else None
    if ahead is not None:
        files = _made(ahead, planned(ahead, target, 1), target, wanted)
        made |= {f"ahead.{kind}": data for kind, data in files.items()}
    return made


def planned(program: Program, target: Target, threads: int) -> Plan:
    """The default plan, also for a target whose code this machine cannot run."""
    flat = fastest_flat(flats(split_ahead(program).main), target, threads, tile_fits)
    return default_plan(flat, target, threads, tile_fits(flat, target))


def _made(program: Program, plan: Plan, target: Target, kinds: tuple[str, ...]) -> dict[str, bytes]:
    nest = build_nest(flat_of(flats(program), plan), plan, target)
    module = lower(nest, target)
    made = {kind: _MAKERS[kind](plan, nest, module, target) for kind in kinds}
    return {kind: data.encode() if isinstance(data, str) else data for kind, data in made.items()}
