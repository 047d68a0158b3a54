"""[[instruction]] tables -> instructions. A table with ``dtypes`` or ``lanes`` is a family: one per choice of them.

    name = "fma", dtypes = ["f32", "f64"], lanes = "vector"   ->   fma.f32x1, fma.f32x8, fma.f64x1, fma.f64x4, ...

Without ``lanes`` the name ends with the dtypes. ``lanes = "vector"`` is 1 and, for each vector width of the target, as
many lanes as fit for this dtype and for wider ones (an i8 beside an f32 is needed 8 at a time); ``"wide"`` is the same
without 1. A choice is built when it is asked for, and everything it shares with its siblings is shared.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from dovetail.base.dtypes import DTYPES, DType
from dovetail.base.errors import ParseError, TargetError
from dovetail.ir.index import Condition, Index
from dovetail.ir.parse import parse_conditions
from dovetail.ir.program import Program, Role, Size, Tensor
from dovetail.targets.cost import cost_names
from dovetail.targets.meaning import Meaning, check_dtypes, parse_meaning
from dovetail.targets.model import Instruction, Operand
from dovetail.targets.operands import parse_operands, parse_params
from dovetail.targets.parameters import check_constraints, check_cost
from dovetail.targets.tables import Entry, unknown
from dovetail.targets.template import Scope, Template, compile_template, known_placeholders

_ELEMENT_BYTES = (1, 2, 4, 8)
GROUPS = {
    "signed": ("i8", "i16", "i32", "i64"),
    "unsigned": ("u8", "u16", "u32", "u64"),
    "integers": ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"),
    "floats": ("f32", "f64"),
    "small_floats": ("f16", "bf16"),
}
"""Names that stand for several dtypes in ``dtypes``; "floats" are those arithmetic is done in."""
_TEMPLATES = {"computes": "", "cycles": "1", "latency": "1", "emit": ""}


@dataclass(slots=True)
class Machine:
    """What instructions may refer to, and what they share."""

    memories: frozenset[str]
    units: dict[str, int]
    """Dimensions of each unit's grid."""
    states: frozenset[str]
    layouts: dict[str, int]
    """Rank of each layout."""
    widths: tuple[int, ...]
    scopes: dict[tuple[str, int], Scope] = field(default_factory=dict)

    def scope(self, kinds: tuple[DType, ...], lanes: int) -> Scope:
        key = (" ".join([kind.name for kind in kinds]), lanes)
        found = self.scopes.get(key)
        if found is None:
            found = self.scopes[key] = Scope(kinds, lanes)
        return found


class Member(NamedTuple):
    """One choice of dtypes and lanes of a family (a ``model.Choice``); a target has thousands, hence a tuple."""

    family: Family
    kinds: tuple[DType, ...]
    lanes: int
    name: str
    dtypes: frozenset[str]

    @property
    def features(self) -> tuple[str, ...]:
        return self.family.features

    @property
    def functions(self) -> frozenset[str]:
        return self.family.functions()

    @property
    def most_loops(self) -> int:
        return self.family.most_loops

    @property
    def is_external(self) -> bool:
        return bool(self.family.entry.text("call"))

    def build(self) -> Instruction:
        return self.family.build(self)


class Family:
    """One table: its choices at once, its meaning and emission when the first choice is built."""

    def __init__(self, entry: Entry, machine: Machine, folder: Path | None) -> None:
        self.entry, self.machine = entry, machine
        self.is_family = "dtypes" in entry.values or "lanes" in entry.values
        self.features = entry.texts("features")
        self.operands = parse_operands(entry, machine.memories, machine.layouts)
        self.params = parse_params(entry)
        self.most_loops = entry.text("computes").partition(":")[0].count("<")  # for i<4, j<8: ...
        self.object = _object_path(entry, folder)
        self.kinds = _dtype_choices(entry)
        self.meanings: dict[str, Meaning] = {}
        self.templates: dict[str, tuple[Template | str, ...]] = {}
        self.checked: set[str] = set()
        self._check_names()

    def members(self) -> list[Member]:
        """Every choice of dtypes and lanes."""
        name = self.entry.text("name")
        found = []
        for kinds in self.kinds:
            dtypes = frozenset(kind.name for kind in self._dtypes(kinds).values())
            start = name + "".join([f".{kind.name}" for kind in kinds])
            for lanes in self._lanes(kinds):
                full = f"{start}x{lanes}" if "lanes" in self.entry.values else start
                found.append(Member(self, kinds, lanes, full, dtypes))
        return found

    def functions(self) -> frozenset[str]:
        """Primitives the family applies."""
        kinds = self.kinds[0]
        return self._meaning(self.machine.scope(kinds, 1), kinds).functions

    def build(self, member: Member) -> Instruction:
        """The instruction for one choice, checked."""
        scope = self.machine.scope(member.kinds, member.lanes)
        meaning = self._meaning(scope, member.kinds)
        dtypes = self._dtypes(member.kinds)
        self._check_dtypes(meaning, dtypes)
        statement, shapes = meaning.with_lanes(member.lanes)
        sizes, constraints = self._constraints(member.lanes)
        entry = self.entry
        return Instruction(
            name=member.name,
            program=Program(_tensors(meaning.roles, dtypes, shapes), (statement,), sizes),
            operands=tuple([Operand(n, dtypes[n], o.memory, o.layout, o.strides) for n, o in self.operands.items()]),
            constraints=constraints,
            cycles=self._cost("cycles", scope, sizes, constraints),
            latency=self._cost("latency", scope, sizes, constraints),
            unit=entry.text("unit"),
            features=self.features,
            emit=self._render("emit", scope)[0],
            declares=tuple([line for text in self._render("declares", scope) for line in text.splitlines()]),
            call=entry.text("call"),
            object=self.object,
            state=entry.text("state"),
            is_async=bool(entry.values.get("async", False)),
            broadcast=entry.text("broadcast"),
            along=int(entry.number("along")) if "along" in entry.values else None,
            source=str(entry.place),
            family=entry.text("name"),
            lanes=member.lanes,
            ulps=entry.number("ulps"),
        )

    def _lanes(self, kinds: tuple[DType, ...]) -> list[int]:
        choice = self.entry.values.get("lanes", [1])
        if isinstance(choice, list):
            return choice
        widest = max((kind.bytes for kind in kinds), default=1)
        found = {width // size for width in self.machine.widths for size in _ELEMENT_BYTES if size >= widest}
        return sorted((found | {1}) - ({1} if choice == "wide" else set()))

    def _dtypes(self, kinds: tuple[DType, ...]) -> dict[str, DType]:
        named = dict(zip("TU", kinds, strict=False))
        return {name: named.get(o.dtype) or DTYPES[o.dtype] for name, o in self.operands.items()}

    def _meaning(self, scope: Scope, kinds: tuple[DType, ...]) -> Meaning:
        text = self._render("computes", scope)[0]
        found = self.meanings.get(text)
        if found is None:
            found = parse_meaning(text, self.operands, self._dtypes(kinds), tuple(self.params), self.entry)
            self._check_layouts(found)
            self.meanings[text] = found
        return found

    def _check_layouts(self, meaning: Meaning) -> None:
        for name, operand in self.operands.items():
            rank = len(meaning.shapes[name])
            if operand.layout and self.machine.layouts[operand.layout] != rank:
                places = self.machine.layouts[operand.layout]
                what = f"operand '{name}' has {rank} dimensions, the layout '{operand.layout}' takes {places}"
                raise TargetError(what, where=self.entry.where("operands"))

    def _check_dtypes(self, meaning: Meaning, dtypes: dict[str, DType]) -> None:
        key = " ".join([kind.name for kind in dtypes.values()])
        if key not in self.checked:
            check_dtypes(meaning, dtypes, self.entry)
            self.checked.add(key)

    def _constraints(self, lanes: int) -> tuple[tuple[Size, ...], tuple[Condition, ...]]:
        sizes = tuple(limits.at(name, lanes) for name, limits in self.params.items())
        conditions: list[Condition] = []
        for text in self.entry.texts("where"):
            try:
                conditions += parse_conditions(text, sizes, "where")
            except ParseError as problem:
                where = f"{self.entry.where('where')}\n{problem.where}"
                raise TargetError(problem.what, where=where, hint=problem.hint) from None
        if conditions:
            check_constraints(sizes, tuple(conditions), self.entry)
        return sizes, tuple(conditions)

    def _cost(self, key: str, scope: Scope, sizes: tuple[Size, ...], constraints: tuple[Condition, ...]) -> str:
        cost = self._render(key, scope)[0]
        try:
            names = cost_names(cost)
        except TargetError as problem:
            raise TargetError(problem.what, where=self.entry.where(key), hint=problem.hint) from None
        for name in names:
            if name not in self.params:
                raise unknown("parameter", name, self.params, self.entry.where(key))
        check_cost(key, cost, sizes, constraints, self.entry)
        return cost

    def _render(self, key: str, scope: Scope) -> tuple[str, ...]:
        """The texts under a key with placeholders filled in."""
        if key not in self.templates:
            texts = self.entry.texts(key) if key == "declares" else (self.entry.text(key, _TEMPLATES[key]),)
            self.templates[key] = tuple(self._compiled(key, text) for text in texts)
        try:
            return tuple([t if isinstance(t, str) else t.render(scope) for t in self.templates[key]])
        except KeyError as problem:
            known = known_placeholders(scope)
            raise unknown("placeholder", str(problem.args[0]), known, self.entry.where(key)) from None
        except ValueError as problem:
            raise TargetError(f"a constant that cannot be read: {problem}", where=self.entry.where(key)) from None

    def _compiled(self, key: str, text: str) -> Template | str:
        if not self.is_family or "{" not in text:
            return text
        try:
            return compile_template(text)
        except ValueError as problem:
            raise TargetError(str(problem), where=self.entry.where(key)) from None

    def _check_names(self) -> None:
        machine, entry = self.machine, self.entry
        for key, known in (("unit", machine.units), ("broadcast", machine.units), ("state", machine.states)):
            name = entry.text(key)
            if name and name not in known:
                raise unknown("state" if key == "state" else "unit", name, known, entry.where(key))
        if "along" in entry.values:
            self._check_along(machine.units.get(entry.text("broadcast"), 0))
        if entry.text("emit") and entry.text("call"):
            raise TargetError("both 'emit' and 'call' are given", where=str(entry.place), hint="keep one of them")

    def _check_along(self, rank: int) -> None:
        """``along`` is a dimension of the grid, of ``rank`` dimensions, that a broadcast runs over."""
        if rank == 0:
            hint = "name the unit: broadcast = ..."
            raise TargetError("'along' without 'broadcast'", where=self.entry.where("along"), hint=hint)
        if self.entry.number("along") >= rank:
            what = f"the unit '{self.entry.text('broadcast')}' has no dimension {self.entry.text('along')}"
            hint = f"its grid has {rank}, counted from 0"
            raise TargetError(what, where=self.entry.where("along"), hint=hint)


def _tensors(
    roles: dict[str, Role], dtypes: dict[str, DType], shapes: dict[str, tuple[Index, ...]]
) -> tuple[Tensor, ...]:
    return tuple([Tensor(roles[name], name, kind, shapes[name]) for name, kind in dtypes.items()])


def _dtype_choices(entry: Entry) -> list[tuple[DType, ...]]:
    """["floats"], [["f16", "f32"]] or ["i8 i16 -> floats"] as tuples of dtypes; [()] where there are none."""
    found: list[tuple[str, ...]] = []
    for item in entry.items("dtypes"):
        if isinstance(item, list):
            found.append(tuple(item))
        elif "->" in str(item):
            left, right = (_ungrouped(side) for side in str(item).split("->", 1))
            found += [(a, b) for a in left for b in right if a != b]
        else:
            found += [(name,) for name in _ungrouped(str(item))]
    for name in (name for choice in found for name in choice):
        if name not in DTYPES:
            raise unknown("dtype", name, {*DTYPES, *GROUPS}, entry.where("dtypes"))
    return [tuple([DTYPES[name] for name in choice]) for choice in found] or [()]


def _ungrouped(text: str) -> list[str]:
    return [name for word in text.split() for name in GROUPS.get(word, (word,))]


def _object_path(entry: Entry, folder: Path | None) -> Path | None:
    """The object file beside the target file."""
    name = entry.text("object")
    if not name:
        return None
    if "call" not in entry.values:
        raise TargetError("'object' without 'call'", where=entry.where("object"), hint="name the symbol to call")
    if folder is None or not (folder / name).is_file():
        raise TargetError(f"no object file '{name}' beside the target file", where=entry.where("object"))
    return folder / name
