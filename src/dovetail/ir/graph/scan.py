"""``scan``: how a node repeats its body, and whether the body fits."""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.base.errors import GraphError
from dovetail.ir.graph.graph import Node, Type
from dovetail.ir.graph.operator import operator
from dovetail.ir.index import Index, constant


@dataclass(frozen=True, slots=True)
class Repetition:
    """``steps`` times the body; the first ``carried`` operands go from step to step, the next ``scanned`` are cut."""

    node: Node
    carried: int
    scanned: int
    steps: Index
    reverse: bool

    def results(self, outputs: tuple[Type, ...]) -> tuple[Type, ...]:
        """The types of what comes out, from those of the body's outputs."""
        body = self.node.bodies[0]
        for number, (value, found) in enumerate(zip(body.inputs[: self.carried], outputs, strict=False)):
            if value.type != found:
                raise GraphError(
                    f"'{value.name}' is carried as {value.type}, but output {number} of the body is {found}",
                    where=self.node.place,
                )
        if len(outputs) < self.carried or len(outputs) != len(self.node.results):
            what = f"results of scan: {len(self.node.results)}, outputs of its body: {len(outputs)}"
            raise GraphError(what, where=self.node.place)
        stacked = tuple(Type(t.dtype, (self.steps, *t.shape)) for t in outputs[self.carried :])
        return (*outputs[: self.carried], *stacked)


def repetition(node: Node, operands: tuple[Type, ...]) -> Repetition:
    """How ``node``, a ``scan`` of operands of these types, repeats; raises where the body's inputs do not fit."""
    settings = SCANNING.settings(node)
    carried, scanned, steps = settings["carried"], settings["scanned"], settings["steps"]
    assert isinstance(carried, int) and isinstance(scanned, int)
    if len(node.bodies) != 1:
        raise GraphError(
            "scan repeats one body" if node.bodies else "scan has no body", where=node.place, hint="do graph ... end"
        )
    if carried < 0 or scanned < 0 or carried + scanned > len(operands):
        what = f"carried = {carried} and scanned = {scanned} are not among the operands of scan: {len(operands)}"
        raise GraphError(what, where=node.place)
    count = constant(steps) if isinstance(steps, int) and steps >= 0 else None
    for name, t in zip(node.operands[carried:], operands[carried : carried + scanned], strict=False):
        if not t.shape or (count is not None and t.shape[0] != count):
            why = f"the others have {count} steps" if count is not None else "it has no axis"
            raise GraphError(f"'{name}', {t}, cannot be scanned", where=node.place, why=why)
        count = t.shape[0]
    if count is None:
        raise GraphError("nothing says how often scan repeats", where=node.place, hint="scanned = 1, or steps = 10")
    _check_inputs(node, operands, carried, scanned)
    return Repetition(node, carried, scanned, count, bool(settings["reverse"]))


def _check_inputs(node: Node, operands: tuple[Type, ...], carried: int, scanned: int) -> None:
    body = node.bodies[0]
    if len(body.inputs) != len(operands):
        what = f"operands of scan: {len(operands)}, inputs of its body: {len(body.inputs)}"
        raise GraphError(what, where=node.place)
    for number, (value, t) in enumerate(zip(body.inputs, operands, strict=True)):
        wanted = Type(t.dtype, t.shape[1:]) if carried <= number < carried + scanned else t
        if value.type != wanted:
            raise GraphError(f"the body takes {value}, scan gives it {wanted}", where=node.place)


def _scan(*x: Type, carried: int = 0, scanned: int = 0, steps: int = -1, reverse: int = 0) -> str:
    raise AssertionError("scan means what its body means, repeated")


SCANNING = operator(_scan, "scan")
"""Only the schema of its attributes."""
