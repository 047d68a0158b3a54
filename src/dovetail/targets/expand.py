"""[[instruction]] tables -> ``Instruction``s. A table with ``dtypes`` or ``lanes`` is a family: one per choice of them.

    name = "fma", dtypes = ["f32", "f64"], lanes = "vector"   ->   fma.f32x1, fma.f32x8, fma.f64x1, fma.f64x4, ...

``lanes = "vector"`` is 1 and, for each vector width of the target, as many lanes as fit for this dtype and for wider
ones (an i8 beside an f32 is needed 8 at a time); ``"wide"`` is the same without 1. A family's ``computes`` is parsed
once with L as a size; everything an instruction shares with its siblings is shared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from dovetail.base.dtypes import DTYPES, DType
from dovetail.base.errors import ParseError, TargetError, VerifyError
from dovetail.ir.expr import check_types, statement_type
from dovetail.ir.index import Condition, Index, constant
from dovetail.ir.parse import parse_conditions, parse_statement
from dovetail.ir.program import Loop, Program, Role, Size, Statement, Tensor
from dovetail.targets.cost import cost_names
from dovetail.targets.model import Instruction, Operand
from dovetail.targets.operands import (
    OperandText,
    Roles,
    check_ranges,
    infer_shapes,
    parse_operands,
    parse_params,
    roles_of,
)
from dovetail.targets.tables import Entry, unknown
from dovetail.targets.template import Scope, Template, compile_template, known_placeholders

_LANES = Size("L", 1, 1 << 20)
_ELEMENT_BYTES = (1, 2, 4, 8)


@dataclass(slots=True)
class Machine:
    """What instructions may refer to, and what they share."""

    memories: frozenset[str]
    units: frozenset[str]
    states: frozenset[str]
    layouts: dict[str, int]
    """Rank of each layout."""
    widths: tuple[int, ...]
    scopes: dict[tuple[tuple[DType, ...], int], Scope] = field(default_factory=dict)
    tensors: dict[tuple[Role, str, DType, tuple[Index, ...]], Tensor] = field(default_factory=dict)
    operands: dict[tuple[str, DType, OperandText], Operand] = field(default_factory=dict)

    def scope(self, kinds: tuple[DType, ...], lanes: int) -> Scope:
        found = self.scopes.get((kinds, lanes))
        if found is None:
            found = self.scopes[kinds, lanes] = Scope(kinds, lanes)
        return found

    def tensor(self, role: Role, name: str, kind: DType, shape: tuple[Index, ...]) -> Tensor:
        key = (role, name, kind, shape)
        found = self.tensors.get(key)
        if found is None:
            found = self.tensors[key] = Tensor(role, name, kind, shape)
        return found

    def operand(self, name: str, kind: DType, text: OperandText) -> Operand:
        key = (name, kind, text)
        found = self.operands.get(key)
        if found is None:
            found = self.operands[key] = Operand(name, kind, text.memory, text.layout, text.strides)
        return found


def expand(entry: Entry, machine: Machine, folder: Path | None) -> Iterator[Instruction]:
    """Every instruction an [[instruction]] table stands for."""
    family = _Family(entry, machine, folder)
    for kinds in family.kinds:
        for lanes in family.lanes_of(kinds):
            yield family.member(kinds, lanes)


@dataclass(frozen=True, slots=True)
class _Meaning:
    """A parsed ``computes``: its statement over loops that may mention L, and who writes what."""

    statement: Statement
    shapes: dict[str, tuple[Index, ...]]
    roles: Roles
    mentions_lanes: bool


class _Family:
    """One table, parsed as far as it can be before dtypes and lanes are chosen."""

    def __init__(self, entry: Entry, machine: Machine, folder: Path | None) -> None:
        self.entry, self.machine = entry, machine
        self.name = entry.text("name")
        self.is_family = "dtypes" in entry.values or "lanes" in entry.values
        self.kinds = _dtype_choices(entry)
        self.operands = parse_operands(entry, machine.memories, machine.layouts)
        self.params = parse_params(entry)
        self.meanings: dict[str, _Meaning] = {}
        self.checked: set[tuple[DType, ...]] = set()
        self.by_lanes: dict[tuple[int, str], tuple[Statement, dict[str, tuple[Index, ...]]]] = {}
        self.constraints: dict[int, tuple[tuple[Size, ...], tuple[Condition, ...]]] = {}
        self.templates = {key: self._template(key) for key in ("computes", "cycles", "latency", "emit")}
        self.declares = tuple(self._compile("declares", text) for text in entry.texts("declares"))
        self.object = _object_path(entry, folder)
        self._check_names()

    def lanes_of(self, kinds: tuple[DType, ...]) -> list[int]:
        choice = self.entry.values.get("lanes", [1])
        if isinstance(choice, list):
            return [int(lanes) for lanes in choice]
        widest = max((kind.bytes for kind in kinds), default=1)
        found = {width // size for width in self.machine.widths for size in _ELEMENT_BYTES if size >= widest}
        return sorted({*found, 1} - ({1} if choice == "wide" else set()))

    def member(self, kinds: tuple[DType, ...], lanes: int) -> Instruction:
        """The instruction for one choice of dtypes and lanes."""
        scope = self.machine.scope(kinds, lanes)
        text = self.render("computes", scope)
        meaning = self.meanings.get(text) or self._parse(text, kinds)
        sizes, constraints = self._constraints(lanes)
        statement, shapes = self._with_lanes(meaning, text, lanes)
        dtypes = {name: scope.dtypes.get(o.dtype) or DTYPES[o.dtype] for name, o in self.operands.items()}
        if kinds not in self.checked:
            self._check_types(meaning, dtypes, kinds)
        machine, entry = self.machine, self.entry
        tensors = tuple([machine.tensor(meaning.roles[n], n, k, shapes[n]) for n, k in dtypes.items()])
        operands = tuple([machine.operand(n, k, self.operands[n]) for n, k in dtypes.items()])
        costs = [self.render(key, scope) for key in ("cycles", "latency")]
        for key, cost in zip(("cycles", "latency"), costs, strict=True):
            self._check_cost(key, cost)
        suffix = "".join([f".{kind.name}" for kind in kinds]) + f"x{lanes}" if self.is_family else ""
        return Instruction(
            self.name + suffix,
            Program(tensors, (statement,), sizes),
            operands,
            constraints,
            costs[0],
            costs[1],
            entry.text("unit"),
            entry.texts("features"),
            self.render("emit", scope),
            tuple([self._render(template, scope, "declares") for template in self.declares]),
            entry.text("call"),
            self.object,
            entry.text("state"),
            bool(entry.values.get("async", False)),
            entry.text("broadcast"),
            str(entry.place),
            self.name,
            lanes,
            entry.number("ulps"),
        )

    def render(self, key: str, scope: Scope) -> str:
        template = self.templates[key]
        return template if isinstance(template, str) else self._render(template, scope, key)

    def _render(self, template: Template | str, scope: Scope, key: str) -> str:
        if isinstance(template, str):
            return template
        try:
            return template.render(scope)
        except KeyError as problem:
            raise unknown("placeholder", str(problem.args[0]), known_placeholders(scope), self.entry.where(key)) from None
        except ValueError as problem:
            raise TargetError(f"a constant that cannot be read: {problem}", where=self.entry.where(key)) from None

    def _template(self, key: str) -> Template | str:
        default = "1" if key in ("cycles", "latency") else ""
        return self._compile(key, self.entry.text(key, default))

    def _compile(self, key: str, text: str) -> Template | str:
        if not self.is_family or "{" not in text:
            return text
        try:
            return compile_template(text)
        except ValueError as problem:
            raise TargetError(str(problem), where=self.entry.where(key)) from None

    def _parse(self, text: str, kinds: tuple[DType, ...]) -> _Meaning:
        sizes = [Size(name, 0, 0) for name in self.params]
        if self.is_family:
            sizes.append(_LANES)
        named = dict(zip("TU", kinds, strict=False))
        dtypes = {name: named.get(o.dtype) or DTYPES[o.dtype] for name, o in self.operands.items()}
        try:
            statement = parse_statement(text, dtypes, sizes, "computes")
        except ParseError as problem:
            where = f"{self.entry.where('computes')}\n{problem.where}"
            raise TargetError(problem.what, where=where, why=problem.why, hint=problem.hint) from None
        roles = roles_of(statement, self.operands, self.entry)
        shapes = infer_shapes(statement, self.operands, self.entry)
        used = statement.names().union(*(loop.extent.names() for loop in statement.all_loops))
        for name in self.params:
            if name not in used:
                raise TargetError(f"parameter '{name}' does not occur in computes", where=self.entry.where("params"))
        meaning = _Meaning(statement, shapes, roles, "L" in used)
        self.meanings[text] = meaning
        return meaning

    def _with_lanes(
        self, meaning: _Meaning, text: str, lanes: int
    ) -> tuple[Statement, dict[str, tuple[Index, ...]]]:
        if not meaning.mentions_lanes:
            return meaning.statement, meaning.shapes
        key = (lanes, text)
        found = self.by_lanes.get(key)
        if found is None:
            value = {"L": constant(lanes)}
            old = meaning.statement
            loops = tuple(Loop(loop.name, loop.extent.substitute(value)) for loop in old.loops)
            if "L" in old.names():
                new = old.substitute(value, loops)
            else:
                new = Statement(loops, old.out, old.combine, old.value, old.where, old.seq, old.line)
            shapes = {n: tuple(i.substitute(value) for i in shape) for n, shape in meaning.shapes.items()}
            found = self.by_lanes[key] = (new, shapes)
        return found

    def _constraints(self, lanes: int) -> tuple[tuple[Size, ...], tuple[Condition, ...]]:
        if not self.params and "where" not in self.entry.values:
            return (), ()
        found = self.constraints.get(lanes)
        if found is None:
            sizes = tuple(range_.at(name, lanes) for name, range_ in self.params.items())
            conditions: list[Condition] = []
            for text in self.entry.texts("where"):
                try:
                    conditions += parse_conditions(text, sizes, "where")
                except ParseError as problem:
                    where = f"{self.entry.where('where')}\n{problem.where}"
                    raise TargetError(problem.what, where=where, hint=problem.hint) from None
            check_ranges(sizes, tuple(conditions), self.entry)
            found = self.constraints[lanes] = (sizes, tuple(conditions))
        return found

    def _check_types(self, meaning: _Meaning, dtypes: dict[str, DType], kinds: tuple[DType, ...]) -> None:
        self.checked.add(kinds)
        statement = meaning.statement
        try:
            own = statement_type(statement.value, dtypes, dtypes[statement.out.tensor])
            check_types(statement.value, dtypes, own)
        except VerifyError as problem:
            raise TargetError(problem.what, where=self.entry.where("computes"), hint=problem.hint) from None

    def _check_cost(self, key: str, cost: str) -> None:
        try:
            names = cost_names(cost)
        except TargetError as problem:
            raise TargetError(problem.what, where=self.entry.where(key), hint=problem.hint) from None
        for name in names:
            if name not in self.params:
                raise unknown("parameter", name, self.params, self.entry.where(key))

    def _check_names(self) -> None:
        for key, known in (("unit", self.machine.units), ("broadcast", self.machine.units), ("state", self.machine.states)):
            name = self.entry.text(key)
            if name and name not in known:
                raise unknown(key if key != "broadcast" else "unit", name, known, self.entry.where(key))
        if self.entry.text("emit") and self.entry.text("call"):
            raise TargetError("both 'emit' and 'call' are given", where=str(self.entry.place), hint="keep one of them")


def _dtype_choices(entry: Entry) -> list[tuple[DType, ...]]:
    found: list[tuple[DType, ...]] = []
    for item in entry.items("dtypes"):
        if isinstance(item, str) and "->" in item:
            left, right = (side.split() for side in item.split("->", 1))
            names = [(a, b) for a in left for b in right if a != b]
        else:
            names = [(item,)] if isinstance(item, str) else [tuple(str(name) for name in item)]  # type: ignore[list-item, attr-defined]
        for choice in names:
            for name in choice:
                if name not in DTYPES:
                    raise unknown("dtype", name, DTYPES, entry.where("dtypes"))
            found.append(tuple(DTYPES[name] for name in choice))
    return found or [()]


def _object_path(entry: Entry, folder: Path | None) -> Path | None:
    """The object file beside the target file."""
    name = entry.text("object")
    if not name:
        return None
    if "call" not in entry.values:
        raise TargetError("'object' without 'call'", where=entry.where("object"), hint="name the symbol to call")
    path = (folder or Path()) / name
    if folder is None or not path.is_file():
        raise TargetError(f"no object file '{name}' beside the target file", where=entry.where("object"))
    return path
