"""Plans: how a program runs, as plain data. A tree of loops with statements as leaves, and where tensors are held.

    plan   = ("when" size "<=" int ":" plan)* hold* node*
    node   = tile | leaf
    tile   = "tile" name "of" (statement "." loop), ... "by" step ["on" unit] ["unrolled"] ["downward"] ["alternating"]
             ":" hold* node*
    leaf   = "do" statement ["by" instruction "with" loop "=" loop*..., ... ["on" operand "=" tensor, ...]]
             ["lanes" loop "x" width] ["fetching" tensor int, ...]
    hold   = "hold" tensor "in" memory ["as" digit, ...] ["ahead" | "shared" | "fetched" | "twice"] ["for" statement]
    digit  = dimension ["/" divisor] ["%" modulus]

A tile runs over the rest of one loop of each statement it covers, ``step`` iterations at a time; what is left of
every loop when a leaf is reached is unrolled there (lanes first). A leaf "by" an instruction is one call of it for the
tile that is left; what does not fill the instruction (an edge) is done in lanes. A statement placed under another's
tile is fused with it. A held tensor lives in another memory or layout inside the tile: filled where its readers need
it, drained when its writers are done. Program + plan + target decide the code; there is no other input.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from dovetail.base.errors import PlanError


@dataclass(frozen=True, slots=True)
class Digit:
    """One dimension of a layout: ``index[dimension] // divisor % modulus`` (0: no modulus)."""

    dimension: int
    divisor: int = 1
    modulus: int = 0

    def __str__(self) -> str:
        text = f"d{self.dimension}"
        text += f"/{self.divisor}" if self.divisor != 1 else ""
        return text + (f"%{self.modulus}" if self.modulus else "")


@dataclass(frozen=True, slots=True)
class Hold:
    """``tensor`` kept in ``memory``, there with the layout ``digits`` (empty: as it is).

    In registers the written tensor is an accumulator. ``ahead``: a constant laid out once, before any call.
    ``shared``: filled by all units together. ``fetched``, in registers: what it will be drained to is brought near
    while it accumulates, and earlier rounds are added at the end; in memory: what is read is asked for ahead.
    ``twice``: two buffers in turn, the next region on its way while this one is used. ``statement``: whose it is,
    where several statements under a tile each have their own (-1: all of them share it).
    """

    tensor: str
    memory: str
    digits: tuple[Digit, ...] = ()
    ahead: bool = False
    shared: bool = False
    fetched: bool = False
    twice: bool = False
    statement: int = -1

    def __str__(self) -> str:
        text = f"hold {self.tensor} in {self.memory}"
        text += f" as {', '.join(map(str, self.digits))}" if self.digits else ""
        text += (" ahead" if self.ahead else "") + (" shared" if self.shared else "")
        text += (" fetched" if self.fetched else "") + (" twice" if self.twice else "")
        return text + (f" for {self.statement}" if self.statement >= 0 else "")


@dataclass(frozen=True, slots=True)
class Leaf:
    """Statement ``statement``, ``width`` points of loop ``lanes`` in one instruction.

    With ``instruction``, one call of it does a whole tile in memory: ``bound`` pairs each of its loops with the loops
    of the statement it runs over (several: fused, outermost first; none: it runs once). Lanes are for edges then.
    ``operands`` pairs each of its operands with the tensor it stands for; empty where the value itself tells.
    ``fetched``: tensors whose next lines are asked for, and how many rounds of the leaf ahead of their use.
    """

    statement: int
    lanes: str = ""
    width: int = 1
    instruction: str = ""
    bound: tuple[tuple[str, tuple[str, ...]], ...] = ()
    operands: tuple[tuple[str, str], ...] = ()
    fetched: tuple[tuple[str, int], ...] = ()

    def __str__(self) -> str:
        by = f" by {self.instruction}" if self.instruction else ""
        by += f" with {', '.join(f'{n} = {_fused(loops)}' for n, loops in self.bound)}" if self.bound else ""
        by += f" on {', '.join(f'{o} = {tensor}' for o, tensor in self.operands)}" if self.operands else ""
        by += f" lanes {self.lanes} x {self.width}" if self.lanes else ""
        return f"do {self.statement}{by}" + (
            f" fetching {', '.join(f'{t} {n}' for t, n in self.fetched)}" if self.fetched else ""
        )


@dataclass(frozen=True, slots=True)
class Tile:
    """A loop of the plan over (the rest of) ``loops``, pairs of statement number and loop name."""

    name: str
    loops: tuple[tuple[int, str], ...]
    step: int
    body: tuple[Tile | Leaf, ...]
    unit: str = ""
    unrolled: bool = False
    downward: bool = False
    holds: tuple[Hold, ...] = ()
    alternating: bool = False
    """Inside steps: rounds are taken forwards in even steps and backwards in odd ones, so that what a cache has kept
    of the step before is met first."""

    def __str__(self) -> str:
        covered = ", ".join(f"{s}.{loop}" for s, loop in self.loops)
        text = f"tile {self.name} of {covered} by {self.step}"
        text += f" on {self.unit}" if self.unit else ""
        text += (" unrolled" if self.unrolled else "") + (" downward" if self.downward else "")
        return text + (" alternating" if self.alternating else "")


PlanNode = Tile | Leaf


@dataclass(frozen=True, slots=True)
class Plan:
    """A whole plan; ``note`` says in a line where it came from and is not part of its meaning."""

    body: tuple[PlanNode, ...]
    holds: tuple[Hold, ...] = ()
    note: str = field(default="", compare=False)
    cases: tuple[Case, ...] = ()
    """Other plans for small run-time sizes; the first that applies counts."""
    form: str = field(default="", compare=False)
    """The rule that gave the form of the program which the plan is of; empty where it is of the program as it is."""

    def __str__(self) -> str:
        return "\n".join([*map(str, self.cases), *map(str, self.holds), *_lines(self.body, 0)])

    def leaves(self) -> Iterator[Leaf]:
        return _leaves(self.body)

    @property
    def is_parallel(self) -> bool:
        """Some tile is spread over units."""
        return _spread(self.body) or any(case.plan.is_parallel for case in self.cases)

    def all_holds(self) -> Iterator[Hold]:
        yield from self.holds
        yield from _holds(self.body)

    def to_json(self) -> str:
        return json.dumps(_pack_plan(self))


@dataclass(frozen=True, slots=True)
class Case:
    """``plan`` is used where the run-time size is at most ``most``."""

    size: str
    most: int
    plan: Plan

    def __str__(self) -> str:
        return "\n".join([f"when {self.size} <= {self.most}:", *(f"  {line}" for line in str(self.plan).splitlines())])


def plan_from_json(text: str) -> Plan:
    """The plan ``to_json`` wrote. Raises PlanError on anything else."""
    try:
        return _unpack_plan(json.loads(text))
    except (KeyError, TypeError, ValueError) as error:
        raise PlanError("this is not a plan", why=str(error), hint="write one with plan.to_json()") from error


def _pack_plan(plan: Plan) -> dict[str, object]:
    packed: dict[str, object] = {
        "body": [_pack(n) for n in plan.body],
        "holds": [_pack_hold(h) for h in plan.holds],
    }
    if plan.cases:
        packed["cases"] = [{"size": c.size, "most": c.most, "plan": _pack_plan(c.plan)} for c in plan.cases]
    if plan.form:
        packed["form"] = plan.form
    return packed


def _unpack_plan(data: Mapping[str, object]) -> Plan:
    body, holds, cases = data["body"], data["holds"], data.get("cases", [])
    if not (isinstance(body, list) and isinstance(holds, list) and isinstance(cases, list)):
        raise TypeError("body, holds and cases must be lists")
    return Plan(
        tuple(_unpack(n) for n in body),
        tuple(_unpack_hold(h) for h in holds),
        cases=tuple(Case(str(c["size"]), _int(c["most"]), _unpack_plan(c["plan"])) for c in cases),
        form=str(data.get("form", "")),
    )


def _pack(node: PlanNode) -> dict[str, object]:
    if isinstance(node, Leaf):
        leaf: dict[str, object] = {"do": node.statement, "lanes": node.lanes, "width": node.width}
        if node.instruction:
            leaf |= {"instruction": node.instruction, "bound": [[n, list(loops)] for n, loops in node.bound]}
        if node.operands:
            leaf["operands"] = [list(pair) for pair in node.operands]
        if node.fetched:
            leaf["fetched"] = [list(pair) for pair in node.fetched]
        return leaf
    tile: dict[str, object] = {
        "tile": node.name,
        "loops": [list(pair) for pair in node.loops],
        "step": node.step,
        "unit": node.unit,
        "unrolled": node.unrolled,
        "downward": node.downward,
        "holds": [_pack_hold(h) for h in node.holds],
        "body": [_pack(n) for n in node.body],
    }
    return {**tile, "alternating": True} if node.alternating else tile


def _unpack(data: Mapping[str, object]) -> PlanNode:
    if "do" in data:
        return _unpack_leaf(data)
    body, holds, loops = data["body"], data["holds"], data["loops"]
    if not (isinstance(body, list) and isinstance(holds, list) and isinstance(loops, list)):
        raise TypeError("body, holds and loops must be lists")
    return Tile(
        str(data["tile"]),
        tuple((_int(s), str(loop)) for s, loop in loops),
        _int(data["step"]),
        tuple(_unpack(n) for n in body),
        str(data["unit"]),
        bool(data["unrolled"]),
        bool(data["downward"]),
        tuple(_unpack_hold(h) for h in holds),
        bool(data.get("alternating", False)),
    )


def _unpack_leaf(data: Mapping[str, object]) -> Leaf:
    bound, operands, asked = (data.get(key, []) for key in ("bound", "operands", "fetched"))
    if not (isinstance(bound, list) and isinstance(operands, list) and isinstance(asked, list)):
        raise TypeError("bound, operands and fetched must be lists")
    pairs = tuple((str(needle), tuple(str(loop) for loop in loops)) for needle, loops in bound)
    instruction = str(data.get("instruction", ""))
    taken = tuple((str(operand), str(tensor)) for operand, tensor in operands)
    fetched = tuple((str(tensor), _int(rounds)) for tensor, rounds in asked)
    return Leaf(_int(data["do"]), str(data["lanes"]), _int(data["width"]), instruction, pairs, taken, fetched)


def _pack_hold(hold: Hold) -> dict[str, object]:
    digits = [[d.dimension, d.divisor, d.modulus] for d in hold.digits]
    return {
        "hold": hold.tensor,
        "memory": hold.memory,
        "digits": digits,
        "ahead": hold.ahead,
        "shared": hold.shared,
        "fetched": hold.fetched,
        "twice": hold.twice,
        "statement": hold.statement,
    }


def _unpack_hold(data: Mapping[str, object]) -> Hold:
    digits = data["digits"]
    if not isinstance(digits, list):
        raise TypeError("digits must be a list")
    laid_out = tuple(Digit(_int(d[0]), _int(d[1]), _int(d[2])) for d in digits)
    flags = (bool(data["ahead"]), bool(data["shared"]), bool(data.get("fetched", False)))
    return Hold(
        str(data["hold"]),
        str(data["memory"]),
        laid_out,
        *flags,
        bool(data.get("twice", False)),
        _int(data.get("statement", -1)),
    )


def _fused(loops: tuple[str, ...]) -> str:
    return "*".join(loops) or "1"


def _int(value: object) -> int:
    if not isinstance(value, int):
        raise TypeError(f"expected a whole number, found {value!r}")
    return value


def _leaves(nodes: tuple[PlanNode, ...]) -> Iterator[Leaf]:
    for node in nodes:
        if isinstance(node, Leaf):
            yield node
        else:
            yield from _leaves(node.body)


def _spread(nodes: tuple[PlanNode, ...]) -> bool:
    return any(isinstance(n, Tile) and (bool(n.unit) or _spread(n.body)) for n in nodes)


def _holds(nodes: tuple[PlanNode, ...]) -> Iterator[Hold]:
    for node in nodes:
        if isinstance(node, Tile):
            yield from node.holds
            yield from _holds(node.body)


def _lines(nodes: tuple[PlanNode, ...], depth: int) -> Iterator[str]:
    pad = "  " * depth
    for node in nodes:
        yield pad + str(node) + (":" if isinstance(node, Tile) else "")
        if isinstance(node, Tile):
            yield from (f"{pad}  {h}" for h in node.holds)
            yield from _lines(node.body, depth + 1)
