"""Every operation of a plan's leaves is done by an instruction that fits there, and each of these fits is proven.

The search is asked again: for the instructions that the nest calls and no others, with the lanes of each leaf as the
only loop that an instruction may run over. Lanes along a reduction keep partial results; what such a leaf does is

    for i<64, k<100: y[i] += x[i, k]     with lanes k x 8
 -> for i<64, k<13, lane<8: part[i, lane] += x[i, 8*k + lane]     for i<64, lane<8: y[i] += part[i, lane]

A leaf ``by`` an instruction is asked for that instruction over its tile, and for its edges in lanes, if any.

Conditions and moves are the nest's: no part of the question here, and checked by evaluating it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from time import perf_counter

from dovetail.base.limits import Limits
from dovetail.ir.certificate import Check
from dovetail.ir.domain import domain, variables
from dovetail.ir.expr import Apply, Bitcast, Cast, Expr, Position, Read, children, substitute, walk
from dovetail.ir.fit import Fit
from dovetail.ir.index import Access, constant, variable
from dovetail.ir.nest import Nest, calls
from dovetail.ir.plan import Leaf, Plan
from dovetail.ir.program import Combine, Loop, Program, Role, Statement, Tensor
from dovetail.mapping.find import find_mappings
from dovetail.mapping.prove import prove
from dovetail.poly.sets import is_empty, set_text
from dovetail.targets.model import Instruction, Target

CLAIM = "every operation is done by an instruction that fits it"
LANE = "lane"


def fit_checks(program: Program, plan: Plan, nest: Nest, target: Target) -> tuple[Check, ...]:
    """That used instructions fit all operations, and the claims that are proven about each fit."""
    started = perf_counter()
    machine = _only(target, tuple(sorted({call.instruction for call in calls(nest.body)})))
    planned = sorted(plan.leaves(), key=lambda leaf: leaf.statement)
    leaves = tuple(part for leaf in planned for part in _with_edges(leaf))
    done = leaf_program(program, leaves)
    chosen, missing = _search(done, machine)
    if missing:  # where conditions cut lanes apart, the nest takes their points one by one
        done = leaf_program(program, tuple(Leaf(x.statement) if x.statement in missing else x for x in leaves))
        chosen, missing = _search(done, machine)
    wrong = next((text for number, text in missing.items() if not _never_runs(program, number)), "")
    names = ", ".join(dict.fromkeys(fit.instruction for fit in chosen)) or "only moves"
    first = Check(CLAIM, "unification", wrong or names, not wrong, perf_counter() - started)
    return (first,) if wrong else (first, *_proofs(done.program, chosen, machine))


def _with_edges(leaf: Leaf) -> tuple[Leaf, ...]:
    """A leaf done by one instruction, and its edges, which are done in lanes."""
    return (leaf, Leaf(leaf.statement, leaf.lanes, leaf.width)) if leaf.instruction else (leaf,)


def _search(leaves: LeafProgram, machine: Target) -> tuple[tuple[Fit, ...], dict[int, str]]:
    """Fits that do what the leaves do, and the statements for which there are none, each with what has none."""
    found = find_mappings(leaves.program, machine, Limits(mapping_depth=_depth(leaves)), misfits=False).fits
    chosen: dict[Fit, None] = {}
    missing: dict[int, str] = {}
    called: set[int] = set()
    for number, statement in enumerate(leaves.program.statements):
        leaf = leaves.leaves[number]
        search = _Search(statement, [f for f in found if f.statement == number], leaf, machine)
        problem = search.cover(None, statement.value)
        called |= {leaf.statement} if leaf.instruction and not problem else set()
        if problem and not leaf.instruction and leaf.statement not in called:
            missing.setdefault(leaf.statement, problem)
        chosen |= dict.fromkeys(search.chosen)
    return tuple(chosen), missing


def _never_runs(program: Program, number: int) -> bool:
    """Whether a statement has no point at all, so that the nest leaves it out."""
    statement = program.statements[number]
    names = [f"v_{size.name}" for size in program.sizes] + variables(loop.name for loop in statement.all_loops)
    return is_empty(set_text(names, domain(program, statement)))


@lru_cache(maxsize=256)
def _only(target: Target, names: tuple[str, ...]) -> Target:
    """The same machine with these instructions alone."""
    return replace(target, by_name={name: target.instruction(name) for name in names})


def _depth(leaves: LeafProgram) -> int:
    """As many temporaries as the operation with most compound operands (or an ``op=``) needs, and fusings of a tile."""
    nodes = [node for statement in leaves.program.statements for node in walk(statement.value)]
    fused = max((sum(max(0, len(loops) - 1) for _, loops in leaf.bound) for leaf in leaves.leaves), default=0)
    made = (sum(_is_compound(x) or isinstance(x, Position) for x in children(node)) for node in nodes)
    return max(1, max(made, default=0)) + fused


def _proofs(program: Program, chosen: tuple[Fit, ...], machine: Target) -> Iterator[Check]:
    """One check for each claim, over all fits; the first failure is shown."""
    by_claim: dict[str, list[tuple[Fit, Check]]] = {}
    for fit in chosen:
        for check in prove(program, fit, machine.instruction(fit.instruction)):
            by_claim.setdefault(check.claim, []).append((fit, check))
    for claim, rows in by_claim.items():
        failed = next((f"{fit}: {check.detail}" for fit, check in rows if not check.passed), "")
        detail = failed or f"{len(rows)} fit{'s' if len(rows) != 1 else ''}"
        seconds = sum(check.seconds for _, check in rows)
        yield Check(claim, rows[0][1].method, detail, not failed, seconds)


# -- fits that together do all of a statement


@dataclass(slots=True)
class _Search:
    """What ``leaf`` does as ``statement``; ``chosen`` collects the fits."""

    statement: Statement
    fits: list[Fit]
    leaf: Leaf
    machine: Target
    chosen: list[Fit] = field(default_factory=list)

    def cover(self, node: tuple[int, ...] | None, value: Expr) -> str:
        """Choose fits for ``value`` (None: with its ``op=``) and all in it; says what has none."""
        operates = isinstance(value, Apply) or (node is None and self.statement.combine is not Combine.SET)
        fitting = [f for f in self.fits if f.node == node and self._uses_lanes(f)]
        if not fitting:
            if operates:
                whole = f"{self.statement.out} {self.statement.combine.value} {value}"
                return f"nothing that the nest calls does {whole if node is None else value}"
            return next(filter(None, (self.cover(path, part) for path, part in _parts(node, value))), "")
        best = min(fitting, key=self._cost)
        self.chosen.append(best)
        paths = {part: path for path, part in _places((), self.statement.value)}
        for operand in best.operands:
            if not isinstance(operand.value, Access) and _is_compound(operand.value):
                missing = self.cover(paths[operand.value], operand.value)
                if missing:
                    return missing
        return ""

    def _uses_lanes(self, fit: Fit) -> bool:
        """Whether the instruction runs over the leaf's lanes, all at once, or over one point; or is the leaf's own."""
        if self.leaf.instruction:
            same = tuple((loop.needle, loop.loops) for loop in fit.loops) == self.leaf.bound
            return fit.node is None and fit.instruction == self.leaf.instruction and same
        most = _extents(self.machine.instruction(fit.instruction))
        lanes = tuple(loop.name for loop in self.statement.loops)
        bound = [loop for loop in fit.loops if most[loop.needle] > 1]
        return all(loop.loops == lanes and most[loop.needle] == self.leaf.width for loop in bound)

    def _cost(self, fit: Fit) -> tuple[bool, int]:
        """Vectors before scalars, then what leaves least to do."""
        scalar = all(n == 1 for n in _extents(self.machine.instruction(fit.instruction)).values())
        return scalar, sum(isinstance(o.value, Apply) for o in fit.operands)


def _extents(instruction: Instruction) -> dict[str, int]:
    """Largest extent of each of an instruction's loops."""
    high = {size.name: size.high for size in instruction.program.sizes}
    return {loop.name: loop.extent.evaluate(high) for loop in instruction.program.statements[0].loops}


def _is_compound(value: Expr) -> bool:
    return isinstance(value, Apply | Cast | Bitcast)


def _parts(node: tuple[int, ...] | None, value: Expr) -> Iterator[tuple[tuple[int, ...], Expr]]:
    return (((*(node or ()), n), part) for n, part in enumerate(children(value)))


def _places(path: tuple[int, ...], value: Expr) -> Iterator[tuple[tuple[int, ...], Expr]]:
    yield path, value
    for place, part in _parts(path, value):
        yield from _places(place, part)


# -- what the leaves do


@dataclass(frozen=True, slots=True)
class LeafProgram:
    """A statement for each leaf, more where lanes run along a reduction; with the leaf each comes from."""

    program: Program
    leaves: tuple[Leaf, ...]


def leaf_program(program: Program, leaves: tuple[Leaf, ...]) -> LeafProgram:
    """What instructions do in ``leaves``: all loops but the lanes are around them, as ``seq``."""
    work = _Leaves(list(program.tensors))
    for leaf in leaves:
        if leaf.instruction:
            inside = frozenset(loop for _, group in leaf.bound for loop in group)
            work.statements.append(_only_inside(replace(program.statements[leaf.statement], where=()), inside))
            work.leaves.append(leaf)
            continue
        for statement in work.without_conversion(replace(program.statements[leaf.statement], where=()), leaf):
            for part in work.without_partial_results(statement, leaf):
                work.statements.append(part)
                work.leaves.append(leaf)
    whole = Program(tuple(work.tensors), tuple(work.statements), program.sizes)
    return LeafProgram(whole, tuple(work.leaves))


@dataclass(slots=True)
class _Leaves:
    """Statements as they are found, with the leaf each comes from."""

    tensors: list[Tensor]
    statements: list[Statement] = field(default_factory=list)
    leaves: list[Leaf] = field(default_factory=list)

    def without_conversion(self, statement: Statement, leaf: Leaf) -> Iterator[Statement]:
        """``y[i] += f16(x[i, k])`` as ``part[i, k] = f16(x[i, k])`` and ``y[i] += part[i, k]``."""
        value = statement.value
        if statement.combine is Combine.SET or not isinstance(value, Cast | Bitcast):
            yield statement
            return
        shape = tuple(loop.extent for loop in statement.all_loops)
        place = Access(f"converted.{leaf.statement}", tuple(variable(loop.name) for loop in statement.all_loops))
        self.tensors.append(Tensor(Role.TEMP, place.tensor, value.dtype, shape))
        yield replace(statement, out=place, combine=Combine.SET)
        yield replace(statement, value=Read(place))

    def without_partial_results(self, statement: Statement, leaf: Leaf) -> Iterator[Statement]:
        """The two statements a reduction along lanes is: results by lane, and these joined."""
        out = statement.out
        if leaf.width == 1 or leaf.lanes in out.names() or statement.combine is Combine.SET:
            yield _only_inside(statement, frozenset({leaf.lanes}))
            return
        tensor = next(t for t in self.tensors if t.name == out.tensor)
        place = Access(f"partial.{leaf.statement}", (*out.indices, variable(LANE)))
        self.tensors.append(Tensor(Role.TEMP, place.tensor, tensor.dtype, (*tensor.shape, constant(leaf.width))))
        lane = Loop(LANE, constant(leaf.width))
        around = tuple(
            Loop(loop.name, (loop.extent + (leaf.width - 1)) // leaf.width) if loop.name == leaf.lanes else loop
            for loop in statement.all_loops
        )
        value = substitute(statement.value, {leaf.lanes: variable(leaf.lanes) * leaf.width + variable(LANE)})
        yield Statement((lane,), place, statement.combine, value, (), around, statement.line)
        kept = tuple(loop for loop in statement.all_loops if loop.name in out.names())
        yield Statement((lane,), out, statement.combine, Read(place), (), kept, statement.line)


def _only_inside(statement: Statement, names: frozenset[str]) -> Statement:
    inside = tuple(loop for loop in statement.loops if loop.name in names)
    return replace(statement, loops=inside, seq=tuple(loop for loop in statement.all_loops if loop not in inside))
