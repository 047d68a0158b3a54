"""What attention needs besides products and softmax: scores that are left out, and positions as rotations."""

from __future__ import annotations

from dovetail.base.errors import OperatorError
from dovetail.ir.graph.graph import Type
from dovetail.ir.graph.operator import operators
from dovetail.ops.lookup import need_integers
from dovetail.ops.text import grid, need_rank, need_shape, same_dtype, text


def mask_causal(x: Type, *, past: int = 0) -> str:
    """Scores ``x[..., q, k]`` where ``k <= q + past``, -inf elsewhere: no query sees a later key."""
    need_rank("x", x, 2)
    _need_floats(x)
    g = grid(x.shape)
    row, column = g.names[-2:]
    seen = f"{column} - {row} <= {past}"
    return text(f"out y: {x.dtype}[{g.shape}]", f"for {g.loops}: y[{g.index}] = select({seen}, x[{g.index}], -inf)")


def mask_lengths(x: Type, lengths: Type) -> str:
    """Scores ``x[b, ..., k]`` where ``k < lengths[b]``, -inf elsewhere."""
    need_rank("x", x, 2)
    _need_floats(x)
    need_integers(lengths)
    need_shape("lengths", lengths, x.shape[:1])
    g = grid(x.shape)
    seen = f"{g.names[-1]} < i64(lengths[{g.names[0]}])"
    return text(f"out y: {x.dtype}[{g.shape}]", f"for {g.loops}: y[{g.index}] = select({seen}, x[{g.index}], -inf)")


def rotary(x: Type, cosines: Type, sines: Type, *, steps_axis: int = 1, interleaved: int = 0) -> str:
    """Pairs of the last axis of ``x[b, step, head, i]`` (or ``x[b, head, step, i]``), turned.

    The angles are ``[b, step, k]``. A pair is (k, k + half), or (2k, 2k + 1) where they are interleaved; what has no
    angle stays as it is.
    """
    need_rank("x", x, 4, 4)
    if steps_axis not in (1, 2):
        raise OperatorError(f"steps are axis 1 or 2, not {steps_axis}")
    same_dtype(x, cosines, sines)
    need_rank("cosines", cosines, 3, 3)
    need_shape("cosines", cosines, (x.shape[0], x.shape[steps_axis], cosines.shape[2]))
    need_shape("sines", sines, cosines.shape)
    half, size = cosines.shape[2], x.shape[3]
    if not (half.is_constant and size.is_constant and 2 * half.const <= size.const):
        raise OperatorError(f"{half} angles for {size} elements")
    g = grid(x.shape[:3])
    one, other = ("2 * k", "2 * k + 1") if interleaved else ("k", f"k + {half}")
    c, s = (f"{name}[d0, d{steps_axis}, k]" for name in ("cosines", "sines"))
    a, b = (f"x[{g.index}, {place}]" for place in (one, other))
    rest = size.const - 2 * half.const
    kept = f"{g.index}, k + {2 * half.const}"
    return text(
        f"out y: {x.dtype}[{g.shape}, {size}]",
        f"for {g.loops}, k<{half}: y[{g.index}, {one}] = {c} * {a} - {s} * {b}",
        f"for {g.loops}, k<{half}: y[{g.index}, {other}] = {s} * {a} + {c} * {b}",
        f"for {g.loops}, k<{rest}: y[{kept}] = x[{kept}]" if rest else "",
    )


def _need_floats(x: Type) -> None:
    if not x.dtype.is_float:
        raise OperatorError(f"scores are {x}, not floats")


OPERATORS = operators(mask_causal, mask_lengths, rotary)
