"""A target as text for a person: its parts, and its instructions by family or one in full."""

from __future__ import annotations

from collections.abc import Iterator

from dovetail.targets.files import shipped_tables, shipped_targets
from dovetail.targets.model import Instruction, Memory, MemoryKind, Target

_UNITS = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def list_targets() -> tuple[tuple[str, str], ...]:
    """Name and one line about each target that comes with the package; "host" is the machine we run on."""
    shipped = tuple((name, str(shipped_tables(name).get("doc", ""))) for name in shipped_targets())
    return (("host", "The machine we run on, detected."), *shipped)


def show_target(target: Target, family: str = "") -> str:
    """All about a target; with ``family``, the instructions of that family (or the one of that name) in full."""
    if family:
        found = [i for i in target.instructions if family in (i.family, i.name)]
        return "\n\n".join(map(show_instruction, found))
    return "\n".join([*_head(target), "", *_places(target), "", *_families(target)])


def show_instruction(instruction: Instruction) -> str:
    """One instruction: its program, where its operands live, what it costs, what it emits."""
    lines = [f"{instruction.name}  {instruction.source}"]
    lines += [f"  {line}" for line in str(instruction.program).splitlines()]
    for operand in instruction.operands:
        strides = f" [{', '.join(map(str, operand.strides))}]" if operand.strides else ""
        layout = f" : {operand.layout}" if operand.layout else ""
        lines.append(f"  {operand.name} = {operand.dtype} @ {operand.memory}{strides}{layout}")
    if instruction.constraints:
        lines.append(f"  where {', '.join(map(str, instruction.constraints))}")
    lines.append(f"  {', '.join(_facts(instruction))}")
    lines += [f"    {line}" for line in instruction.emit.strip().splitlines()]
    return "\n".join(lines)


def _facts(instruction: Instruction) -> Iterator[str]:
    yield f"cycles {instruction.cycles}"
    yield f"latency {instruction.latency}"
    if instruction.ulps:
        yield f"within {instruction.ulps:g} ulp"
    if instruction.is_async:
        yield "asynchronous"
    for key in ("unit", "state", "broadcast", "call"):
        if getattr(instruction, key):
            yield f"{key} {getattr(instruction, key)}"
    if instruction.along is not None:
        yield f"along dimension {instruction.along}"
    if instruction.features:
        yield f"needs {', '.join(instruction.features)}"
    if not instruction.emit and not instruction.call:
        yield "simulated only"


def _head(target: Target) -> Iterator[str]:
    yield f"{target.name}  {target.doc}".rstrip()
    if target.reason and target.reason != target.doc:
        yield f"  chosen    {target.reason}"
    if target.parents:
        yield f"  inherits  {', '.join(target.parents)}"
    if target.frequency_hz:
        yield f"  clock     {target.frequency_hz / 1e9:g} GHz"
    if target.vector_bytes:
        yield f"  vectors   {', '.join(map(str, target.vector_bytes))} bytes"
    if target.llvm is not None:
        wanted = [name.removeprefix("+") for name in target.llvm.features if not name.startswith("-")]
        machine = " ".join(filter(None, (target.llvm.triple, target.llvm.cpu))) or "as LLVM's default"
        yield f"  code      {machine}"
        if wanted:
            yield f"  needs     {', '.join(wanted)}"
    else:
        yield "  code      none: a simulated machine"


def _places(target: Target) -> Iterator[str]:
    for unit in target.units:
        runs = f", runs the scalar instructions of {unit.runs}" if unit.runs else ""
        yield f"  unit      {unit.name:12} {' x '.join(map(str, unit.count))}{runs}"
    for memory in target.memories:
        yield f"  memory    {memory.name:12} {_memory(memory)}"
    for layout in target.layouts:
        places = ", ".join(map(str, layout.places))
        swizzle = "".join(f", dimension {d} ^= {index}" for d, index in layout.xors)
        units = f" on unit {', '.join(map(str, layout.units))}" if layout.units else ""
        yield f"  layout    {layout.name:12} [{', '.join(layout.elements)}] -> [{places}]{swizzle}{units}"
    for state in target.states:
        yield f"  state     {state.name}"


def _memory(memory: Memory) -> str:
    parts = [memory.kind.value, byte_count(memory.bytes) + (f" per {memory.per}" if memory.per else "")]
    if memory.kind is MemoryKind.REGISTERS:
        parts.append(f"{memory.count} of {memory.bytes // memory.count} bytes")
    if memory.bytes_per_cycle:
        parts.append(f"{memory.bytes_per_cycle:g} bytes a cycle")
    if memory.latency_cycles:
        parts.append(f"latency {memory.latency_cycles:g}")
    if memory.startup_cycles:
        parts.append(f"start-up {memory.startup_cycles:g}")
    if memory.ahead_cycles:
        parts.append(f"rows asked for {memory.ahead_cycles:g} cycles ahead")
    return ", ".join(parts)


def _families(target: Target) -> Iterator[str]:
    """One line per family: what it computes, over which dtypes and lanes."""
    grouped: dict[str, list[Instruction]] = {}
    for instruction in target.instructions:
        grouped.setdefault(instruction.family, []).append(instruction)
    yield f"  {len(target.by_name)} instructions in {len(grouped)} families"
    for name, members in grouped.items():
        widest = max(members, key=lambda i: i.lanes)
        lanes = sorted({i.lanes for i in members})
        dtypes = list(dict.fromkeys(_dtypes(i) for i in members if _dtypes(i)))
        shown = " ".join(dtypes[:13]) + (f" and {len(dtypes) - 13} more" if len(dtypes) > 13 else "")
        width = f" x{','.join(map(str, lanes))}" if lanes != [1] else ""
        yield f"  {name:24} {widest.program.statements[0]}"
        if dtypes:
            yield f"  {'':24} {shown}{width}"


def _dtypes(instruction: Instruction) -> str:
    """``f32`` of ``fma.f32x8``, ``f16->f32`` of a cast; empty for an instruction without siblings."""
    rest = instruction.name.removeprefix(instruction.family).removeprefix(".")
    return rest.removesuffix(f"x{instruction.lanes}").replace(".", "->")


def byte_count(count: int) -> str:
    """32768 -> 32 KiB."""
    for size, unit in _UNITS:
        if count >= size and count % size == 0:
            return f"{count // size} {unit}"
    return f"{count} bytes"
