"""Losses of classes: ``x[n, c, ...]`` are scores, ``target[n, ...]`` says which class is right."""

from __future__ import annotations

from dovetail.base.errors import OperatorError
from dovetail.ir.graph.graph import Type
from dovetail.ir.graph.operator import operators
from dovetail.ops.lookup import need_integers
from dovetail.ops.text import accumulator, count, grid, need_rank, need_shape, text


def nll_loss(
    x: Type, target: Type, weight: Type | None = None, *, reduction: str = "mean", ignore: int | None = None
) -> str:
    """``-weight[t] * x[n, t, ...]`` at the right class t; 0 where t is ``ignore``. The mean is weighted."""
    need_rank("x", x, 2)
    need_integers(target)
    need_shape("target", target, (x.shape[0], *x.shape[2:]))
    if weight is not None:
        need_shape("weight", weight, x.shape[1:2])
    if reduction not in ("none", "sum", "mean"):
        raise OperatorError(f"losses are not joined by '{reduction}'", hint="none, sum or mean")
    g, wide = grid(target.shape), accumulator(x.dtype)
    here, place = f"target[{g.index}]", f"place[{g.index}]"
    kept = "true" if ignore is None else f"{here} != {ignore}"
    own = f"weight[{place}]" if weight is not None else "1.0"
    score = f"x[{', '.join((g.names[0], place, *g.names[1:]))}]"
    lines = [
        f"temp place: i64[{g.shape}]",
        f"for {g.loops}: {place} = select({kept}, i64({here}), 0)",
    ]
    loss = f"select({kept}, -({score}) * {own}, 0.0)"
    if reduction == "none":
        return text(*lines, f"out y: {x.dtype}[{g.shape}]", f"for {g.loops}: y[{g.index}] = {loss}")
    lines += [f"temp total: {wide}[]  out y: {x.dtype}[]", f"for {g.loops}: total[] += {loss}"]
    if reduction == "sum":
        return text(*lines, "y[] = total[]")
    if weight is None and ignore is None:
        return text(*lines, f"y[] = total[] / ({count(g.extents, wide)})")
    counted = f"for {g.loops}: weights[] += select({kept}, {own}, 0.0)"
    return text(f"temp weights: {wide}[]", *lines, counted, "y[] = total[] / weights[]")


OPERATORS = operators(nll_loss)
