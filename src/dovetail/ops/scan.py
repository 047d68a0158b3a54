"""``scan`` as a program: the body's statements under ``seq``, with an axis of steps on everything it makes.

last, all = scan(h, x) {carried = 1, scanned = 1}          for d0<8: state0[0, d0] = in0[d0]
  of graph f(h: f32[8], x: f32[8]) -> (n, n)          ->   seq step<T: for d0<8: state0[step + 1, d0] =
       n = add(h, x)                                         state0[step, d0] + in1[step, d0]
                                                           seq step<T: for d0<8: out1[step, d0] = state0[step + 1, d0]
                                                           for d0<8: out0[d0] = state0[T, d0]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dovetail.base.errors import GraphError
from dovetail.ir.expr import Expr, Position, Read, rebuild
from dovetail.ir.graph.graph import Node, Type
from dovetail.ir.graph.scan import Repetition, repetition
from dovetail.ir.index import ZERO, Access, Atom, Condition, Index, affine, variable
from dovetail.ir.program import Combine, Loop, Program, Role, Statement, Tensor
from dovetail.ops.copies import copied, whole_copy

_STEP = variable("step")
Places = Mapping[str, tuple[str, Index | None]]
"""For a tensor of the body: what it is outside, and where along the axis of steps (None: it has no such axis)."""


def scan_program(node: Node, operands: tuple[Type, ...], body: Program) -> Program:
    """The program of a ``scan`` of operands of these types, whose body has the program ``body``."""
    how = repetition(node, operands)
    if any(statement.seq for statement in body.statements):
        raise GraphError(f"{node.bodies[0].name} repeats something itself", where=node.place, why="one seq at a time")
    inputs = [Tensor(Role.IN, f"in{k}", t.dtype, t.shape) for k, t in enumerate(operands)]
    states = [_stacked(f"state{k}", Role.TEMP, t, how.steps + 1) for k, t in enumerate(body.outputs[: how.carried])]
    results = [replace(t, name=f"out{k}") for k, t in enumerate(body.outputs[: how.carried])]
    results += [_stacked(f"out{k}", Role.OUT, t, how.steps) for k, t in enumerate(body.outputs)][how.carried :]
    sums = _carried_sums(body, how)
    kept = [_stacked(f"body_{t.name}", Role.TEMP, t, how.steps) for t in (*body.temps, *sums.values())]
    tensors = (*inputs, *results, *states, *kept)
    body = _apart(body, {tensor.name for tensor in tensors})
    steps = [_moved(s, _places(body, how, sums)) for s in body.statements]
    for k, total in sums.items():
        copy = whole_copy("to", "from", total.shape)
        steps.append(_moved(copy, {"to": (f"state{k}", _STEP + 1), "from": (f"body_{total.name}", _STEP)}))
    seq = (Loop("step", how.steps),)
    statements = [
        *(_between(states[k], inputs[k].name, states[k].name, ZERO) for k in range(how.carried)),
        *(replace(statement, seq=seq) for statement in steps),
        *(_between(states[k], states[k].name, f"out{k}", how.steps) for k in range(how.carried)),
    ]
    return Program(tensors, tuple(statements), body.sizes)


def _carried_sums(body: Program, how: Repetition) -> dict[int, Tensor]:
    """Carried outputs that a sum makes: a state is written with ``=``, so the sum is a temporary of its own."""
    sums = {s.out.tensor for s in body.statements if s.combine is not Combine.SET}
    return {k: t for k, t in enumerate(body.outputs[: how.carried]) if t.name in sums}


def _places(body: Program, how: Repetition, sums: Mapping[int, Tensor]) -> Places:
    element = how.steps - 1 - _STEP if how.reverse else _STEP
    found: dict[str, tuple[str, Index | None]] = {t.name: (f"body_{t.name}", _STEP) for t in body.temps}
    for k, tensor in enumerate(body.inputs):
        if k < how.carried:
            found[tensor.name] = (f"state{k}", _STEP)
        else:
            found[tensor.name] = (f"in{k}", element if k < how.carried + how.scanned else None)
    for k, tensor in enumerate(body.outputs):
        if k >= how.carried:
            found[tensor.name] = (f"out{k}", element)
        else:
            found[tensor.name] = (f"body_{tensor.name}", _STEP) if k in sums else (f"state{k}", _STEP + 1)
    return found


def _between(state: Tensor, source: str, target: str, step: Index) -> Statement:
    """A copy into or out of ``state`` at ``step``."""
    copy = whole_copy("to", "from", state.shape[1:])
    places = {"to": (target, step if target == state.name else None)}
    return _moved(copy, {**places, "from": (source, step if source == state.name else None)})


def _stacked(name: str, role: Role, tensor: Tensor, steps: Index) -> Tensor:
    return Tensor(role, name, tensor.dtype, (steps, *tensor.shape))


def _apart(body: Program, taken: set[str]) -> Program:
    """No loop called as a tensor or as the loop over steps."""
    loops = {loop.name for s in body.statements for loop in s.loops} & (taken | {"step"})
    return copied(body, {}, {name: variable(f"{name}_of_body") for name in loops}) if loops else body


def _moved(statement: Statement, places: Places) -> Statement:
    """Every access at its place outside."""

    def access(old: Access) -> Access:
        name, step = places[old.tensor]
        indices = tuple(index.map_atoms(atom) for index in old.indices)
        return Access(name, indices if step is None else (step, *indices))

    def atom(old: Atom) -> Index | None:
        return affine(((access(old), 1),)) if isinstance(old, Access) else None

    def value(e: Expr) -> Expr:
        if isinstance(e, Read):
            return Read(access(e.access))
        return Position(e.index.map_atoms(atom)) if isinstance(e, Position) else e

    where = tuple(Condition(c.index.map_atoms(atom), c.equal) for c in statement.where)
    return replace(statement, out=access(statement.out), value=rebuild(statement.value, value), where=where)
