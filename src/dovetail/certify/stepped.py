"""How far results may be off where parts cancel inside one value.

The reference computes a whole value exactly and rounds it once; code rounds after every operation. Where large parts
cancel, as in ``1.0 + erf(x)`` for x far below zero, that is all there is in the result. How much it is is measured: the
reference is run once more with a temporary for every operation, and what that changes is allowed, with a margin. Code
computes functions to a unit of rounding or two: they are also taken one unit off.

for i<8: y[i] = x[i] * (1.0 + erf(x[i]))   ->   for i<8: s0[i] = erf(x[i])
                                                for i<8: s1[i] = 1.0 + s0[i]
                                                for i<8: y[i] = x[i] * s1[i]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from dovetail.base.dtypes import DType
from dovetail.certify.rounding import is_linear, rounding_spread, spread_of, widened_spread
from dovetail.compare import INEXACT
from dovetail.ir.evaluate import evaluate
from dovetail.ir.expr import Apply, Expr, Literal, Read, argument_types, statement_type, value_type
from dovetail.ir.index import Access, variable
from dovetail.ir.program import Combine, Program, Role, Statement, Tensor

Array = npt.NDArray[np.generic]
ELEMENTARY = INEXACT - {"div", "sqrt"}
"""Functions that instructions compute with an error of their own; quotients and roots are rounded exactly."""
ULPS = 4
"""More than target files state for any of them."""


def allowed_spread(
    program: Program, arrays: Mapping[str, Array], sizes: Mapping[str, int], wanted: Mapping[str, Array]
) -> float:
    """What may be allowed, in parts of an output's largest value: for sums in another order, or roundings inside.

    A recurrence passes roundings on from step to step, and may enlarge them with each.
    """
    if is_linear(program):
        return rounding_spread(program, arrays, sizes, wanted)
    found = stepped_spread(program, arrays, sizes, wanted)
    carried = any(statement.seq for statement in program.statements)
    return max(found, widened_spread(program, arrays, sizes, wanted)) if carried else found


def stepped_spread(
    program: Program, arrays: Mapping[str, Array], sizes: Mapping[str, int], wanted: Mapping[str, Array]
) -> float:
    """What may be allowed, in parts of an output's largest value, because every operation rounds."""
    floats = [t.name for t in program.outputs if t.dtype.is_float]
    off = ULPS * 2.0 ** (1 - min((t.dtype.exact_bits for t in program.tensors if t.dtype.is_float), default=53))
    runs = [evaluate(stepped(program, part), arrays, sizes) for part in (0.0, off, -off)]
    return max((spread_of(found[name], wanted[name]) for found in runs for name in floats), default=0.0)


def stepped(program: Program, off: float = 0.0) -> Program:
    """``program`` with one operation for each ``=`` of floats; all else as it is.

    Elementary functions inside a value are off by the part ``off``.
    """
    made = _Steps(program, off)
    statements = [new for statement in program.statements for new in made.of(statement)]
    return Program((*program.tensors, *made.temps), tuple(statements), program.sizes)


class _Steps:
    """Temporaries and the statements that fill them."""

    def __init__(self, program: Program, off: float) -> None:
        self.program, self.off = program, off
        self.dtypes = dict(program.dtypes)
        self.temps: list[Tensor] = []
        self.before: list[Statement] = []

    def of(self, statement: Statement) -> list[Statement]:
        own = statement_type(statement.value, self.program.dtypes, self.program.dtypes[statement.out.tensor])
        if statement.combine is not Combine.SET or statement.seq or not own.is_float:
            return [statement]
        self.before = []
        value = self.parts(statement, statement.value)
        return [*self.before, replace(statement, value=value)]

    def parts(self, statement: Statement, e: Expr) -> Expr:
        """``e`` with its arguments stored, where they are operations on floats."""
        if not isinstance(e, Apply):
            return e
        out = self.program.dtypes[statement.out.tensor]
        kinds = argument_types(e, self.dtypes, statement_type(statement.value, self.program.dtypes, out))
        args = []
        for arg, kind in zip(e.args, kinds, strict=True):
            inner = self.parts(statement, arg)
            found = value_type(arg, self.program.dtypes, kind)
            args.append(self.stored(statement, inner, found) if isinstance(inner, Apply) and found.is_float else inner)
        return Apply(e.function, tuple(args))

    def stored(self, statement: Statement, value: Apply, dtype: DType) -> Read:
        if self.off and value.function in ELEMENTARY:
            value = Apply("mul", (value, Literal(1 + self.off)))
        name = f"s{len(self.temps)}"
        while any(t.name == name for t in self.program.tensors):
            name = f"{name}_"
        self.temps.append(Tensor(Role.TEMP, name, dtype, tuple(loop.extent for loop in statement.loops)))
        self.dtypes[name] = dtype
        place = Access(name, tuple(variable(loop.name) for loop in statement.loops))
        self.before.append(replace(statement, out=place, value=value))
        return Read(place)
