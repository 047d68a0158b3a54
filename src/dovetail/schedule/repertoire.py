"""What a target's instructions can do for a leaf, looked up by the shape of the work.

Every instruction is classified once by its own program; nothing here knows an instruction by name.
"""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.ir.expr import Apply, Bitcast, Cast, Expr, Literal, Position, Read
from dovetail.ir.index import Access, variable
from dovetail.ir.program import Combine, Statement
from dovetail.targets.model import Instruction, MemoryKind, Target

Key = tuple[str | int | bool, ...]
MOST_ROWS = 8
"""Registers that one instruction may store."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An instruction and where its operands come from: "out", or the number of the argument as text."""

    instruction: Instruction
    sources: tuple[str, ...]
    param: str = ""
    """The parameter that counts live lanes, for masked forms."""
    stride: str = ""
    """The named stride, for strided forms."""


class Repertoire:
    """Entries by key; the keys are listed at ``classify``. Instructions are built when a key first needs them."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.entries: dict[Key, Entry] = {}
        self.built: set[tuple[frozenset[str], frozenset[str]]] = set()
        self.asked: dict[Key, Entry | None] = {}
        self.counted: dict[str, tuple[int, ...]] = {}
        self.rows: dict[tuple[str, int], tuple[int, ...]] = {}

    def find(self, *key: str | int | bool) -> Entry | None:
        if key not in self.asked:
            self._build(*_needed(key))
            self.asked[key] = self.entries.get(key)
        return self.asked[key]

    def widths(self, dtype: str) -> tuple[int, ...]:
        """Lane counts the target can load, widest first."""
        if dtype not in self.counted:
            self._build(frozenset(), frozenset({dtype}))
            found = {int(k[2]) for k in self.entries if k[0] == "load" and k[1] == dtype}
            self.counted[dtype] = tuple(sorted(found, reverse=True))
        return self.counted[dtype]

    def rows_at_once(self, dtype: str, lanes: int) -> tuple[int, ...]:
        """How many registers whose lanes are rows of memory are stored together, most first; the last is one."""
        if (dtype, lanes) not in self.rows:
            several = (n for n in range(MOST_ROWS, 1, -1) if self.find("store_rows", dtype, lanes, n) is not None)
            self.rows[dtype, lanes] = (*several, 1)
        return self.rows[dtype, lanes]

    def row_parts(self, dtype: str, lanes: int, rows: int) -> tuple[int, ...]:
        """So many of them as the parts that are stored together."""
        parts: list[int] = []
        for count in self.rows_at_once(dtype, lanes):
            parts += [count] * (rows // count)
            rows %= count
        return tuple(parts)

    def _build(self, functions: frozenset[str], dtypes: frozenset[str]) -> None:
        if (functions, dtypes) in self.built:
            return
        self.built.add((functions, dtypes))
        for instruction in self.target.instructions_for(functions, dtypes):
            found = classify(instruction, self.target)
            if found is not None:
                self.entries.setdefault(*found)


def _needed(key: Key) -> tuple[frozenset[str], frozenset[str]]:
    """Primitives and dtypes of the instructions that can have a key."""
    kind, rest = key[0], [str(k) for k in key[1:] if isinstance(k, str)]
    if kind == "apply":
        return frozenset(rest[:1]), frozenset({rest[1], "bool"})
    if kind in ("cast", "bitcast"):
        return frozenset({str(kind)}), frozenset(rest)
    if kind == "accumulate":
        return frozenset({rest[1], *_JOINS}), frozenset(rest[2:])
    if kind == "reduce":
        return frozenset(_JOINS), frozenset(rest[1:])
    if kind in ("keep", "store_rows"):
        return frozenset({"select", "lt"}), frozenset(rest)
    return frozenset(), frozenset(rest) - {"memory", "registers"}


_JOINS = ("add", "mul", "max", "min")


_KNOWN: dict[str, Repertoire] = {}


def repertoire(target: Target) -> Repertoire:
    """The repertoire of ``target``, built once per process."""
    if target.digest not in _KNOWN:
        _KNOWN[target.digest] = Repertoire(target)
    return _KNOWN[target.digest]


def classify(instruction: Instruction, target: Target) -> tuple[Key, Entry] | None:
    """The key of an instruction that works on one vector (or scalar), None for any other.

    ("load" | "store", dtype, lanes, masked, strided)   memory <-> registers
    ("broadcast", "memory" | "registers", dtype, lanes) one element to all lanes
    ("move", dtype, lanes)                              register to register
    ("apply", primitive, argument dtype, lanes)         elementwise
    ("cast" | "bitcast", from, to, lanes)
    ("accumulate", op, primitive, dtype, lanes)         acc[l] op= primitive(a[l], b[l])
    ("reduce", op, dtype, lanes)                        acc op= v[l]
    ("keep", dtype, lanes)                              select(l < n, a[l], b[l])
    ("count", dtype, lanes)                             l
    ("store_rows", dtype, lanes, rows)                  registers whose lanes are rows of memory, side by side there
    """
    statement = instruction.program.statements[0]
    if len(instruction.program.statements) != 1 or len(statement.loops) > 2 or statement.where:
        return None
    if len(statement.loops) == 2:
        return _store_rows(instruction, target, statement)
    lane = statement.loops[0].name if statement.loops else ""
    param = ""
    lanes = 1
    if lane:
        extent = statement.loops[0].extent
        if extent.is_constant:
            lanes = extent.const
        else:
            param = next(iter(extent.names()))
            lanes = next(s.high for s in instruction.program.sizes if s.name == param)
    shape = _Shape(instruction, target, statement, lane, lanes, param)
    return shape.move() if isinstance(statement.value, Read) else shape.compute()


@dataclass(frozen=True, slots=True)
class _Shape:
    instruction: Instruction
    target: Target
    statement: Statement
    lane: str
    lanes: int
    param: str

    def in_registers(self, name: str) -> bool:
        return self.target.memory(self.instruction.operand(name).memory).kind is MemoryKind.REGISTERS

    def by_lane(self, access: Access) -> bool:
        """Indexed by the lane loop alone (or a scalar in a scalar instruction)."""
        if not self.lane:
            return not access.indices
        return access.indices == (variable(self.lane),)

    def entry(self, arguments: tuple[str, ...], stride: str = "") -> Entry:
        names = {self.statement.out.tensor: "out"}
        names |= {name: str(number) for number, name in reversed(list(enumerate(arguments)))}
        return Entry(self.instruction, tuple(names[o.name] for o in self.instruction.operands), self.param, stride)

    def move(self) -> tuple[Key, Entry] | None:
        statement = self.statement
        assert isinstance(statement.value, Read)
        source, out = statement.value.access, statement.out
        from_registers, to_registers = self.in_registers(source.tensor), self.in_registers(out.tensor)
        dtype = self.instruction.operand(out.tensor).dtype.name
        if self.instruction.operand(source.tensor).dtype.name != dtype or self.instruction.is_async:
            return None
        if statement.combine is not Combine.SET:
            joins = from_registers and to_registers and bool(self.lane) and not out.indices
            if joins and self.by_lane(source):
                return ("reduce", statement.combine.value, dtype, self.lanes), self.entry((source.tensor,))
            return None
        if to_registers and not source.indices and self.by_lane(out):
            kind = "registers" if from_registers else "memory"
            return ("broadcast", kind, dtype, self.lanes), self.entry((source.tensor,))
        if not (self.by_lane(source) and self.by_lane(out)) or not (from_registers or to_registers):
            return None
        if from_registers and to_registers:
            return ("move", dtype, self.lanes), self.entry((source.tensor,))
        held = self.instruction.operand(out.tensor if from_registers else source.tensor)
        stride = next((s for s in held.strides if isinstance(s, str)), "")
        name = "store" if from_registers else "load"
        return (name, dtype, self.lanes, bool(self.param), bool(stride)), self.entry((source.tensor,), stride)

    def compute(self) -> tuple[Key, Entry] | None:
        statement = self.statement
        if not all(self.in_registers(o.name) for o in self.instruction.operands) or not self.by_lane(statement.out):
            return None
        kept = self.keep()
        if kept is not None:
            return kept
        value = statement.value
        if isinstance(value, Position):
            return self.count(value)
        args = value.args if isinstance(value, Apply) else (value.arg,) if isinstance(value, Cast | Bitcast) else ()
        names = tuple(a.access.tensor for a in args if isinstance(a, Read) and self.by_lane(a.access))
        if not args or len(names) != len(args) or self.param:
            return None
        dtypes = [self.instruction.operand(n).dtype.name for n in names]
        out = self.instruction.operand(statement.out.tensor).dtype.name
        if isinstance(value, Apply) and statement.combine is not Combine.SET:
            if set(dtypes) != {out}:
                return None
            return ("accumulate", statement.combine.value, value.function, out, self.lanes), self.entry(names)
        if statement.combine is not Combine.SET:
            return None
        if isinstance(value, Apply):
            return ("apply", value.function, dtypes[-1], self.lanes), self.entry(names)
        kind = "cast" if isinstance(value, Cast) else "bitcast"
        return (kind, dtypes[0], out, self.lanes), self.entry(names)

    def count(self, value: Position) -> tuple[Key, Entry] | None:
        """The lane's own number."""
        if (
            not self.lane
            or self.param
            or value.index != variable(self.lane)
            or self.statement.combine is not Combine.SET
        ):
            return None
        return ("count", self.instruction.operand(self.statement.out.tensor).dtype.name, self.lanes), self.entry(())

    def keep(self) -> tuple[Key, Entry] | None:
        """select(l < n, a[l], b[l])"""
        value = self.statement.value
        if not (isinstance(value, Apply) and value.function == "select" and _is_lane_count(value.args[0], self.lane)):
            return None
        names = tuple(a.access.tensor for a in value.args[1:] if isinstance(a, Read) and self.by_lane(a.access))
        if len(names) != 2 or self.statement.combine is not Combine.SET:
            return None
        dtype = self.instruction.operand(names[0]).dtype.name
        param = self.instruction.program.sizes[0].name
        entry = self.entry(names)
        return ("keep", dtype, self.lanes), Entry(entry.instruction, entry.sources, param)


def _store_rows(instruction: Instruction, target: Target, statement: Statement) -> tuple[Key, Entry] | None:
    """for r<R, l<L: m[l, r] = select(r < 1, a[l], select(r < 2, b[l], ...))"""
    row, lane = statement.loops
    out, value = statement.out, statement.value
    if statement.combine is not Combine.SET or out.indices != (variable(lane.name), variable(row.name)):
        return None
    memory = instruction.operand(out.tensor)
    in_memory = target.memory(memory.memory).kind is not MemoryKind.REGISTERS
    if not in_memory or len(memory.strides) != 2 or not isinstance(memory.strides[0], str) or memory.strides[1] != 1:
        return None
    names: list[str] = []
    while (
        isinstance(value, Apply) and value.function == "select" and _is_below(value.args[0], row.name, len(names) + 1)
    ):
        names += _lane_operand(value.args[1], lane.name)
        value = value.args[2]
    names += _lane_operand(value, lane.name)
    numbers = [loop.extent.const for loop in (row, lane) if loop.extent.is_constant]
    if len(numbers) != 2 or len(set(names)) != numbers[0] or len(instruction.operands) != numbers[0] + 1:
        return None
    sources = tuple("out" if o is memory else str(names.index(o.name)) for o in instruction.operands)
    return ("store_rows", memory.dtype.name, numbers[1], numbers[0]), Entry(
        instruction, sources, stride=memory.strides[0]
    )


def _lane_operand(value: Expr, lane: str) -> list[str]:
    """The register that ``value`` reads lane by lane."""
    plain = isinstance(value, Read) and value.access.indices == (variable(lane),)
    return [value.access.tensor] if plain and isinstance(value, Read) else []


def _is_below(condition: Expr, loop: str, bound: int) -> bool:
    """``loop < bound``"""
    if not (isinstance(condition, Apply) and condition.function == "lt"):
        return False
    left, right = condition.args
    number = right.value if isinstance(right, Literal) else right.index.const if isinstance(right, Position) else None
    return isinstance(left, Position) and left.index == variable(loop) and number == bound


def _is_lane_count(condition: Expr, lane: str) -> bool:
    return (
        isinstance(condition, Apply)
        and condition.function == "lt"
        and all(isinstance(a, Position) for a in condition.args)
        and isinstance(condition.args[0], Position)
        and condition.args[0].index == variable(lane)
    )
