"""By evaluation in exact integers: a program and its nest agree in every element of a small instance.

The nest is run instruction by instruction, each as its own program; storage it has not written holds what no correct
result is made of.
"""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter

import numpy as np
import numpy.typing as npt

from dovetail.base.errors import CodegenError, IndexRangeError
from dovetail.certify.calm import calmed
from dovetail.certify.sizes import shown
from dovetail.certify.stepped import allowed_spread
from dovetail.compare import Comparison, compare
from dovetail.ir.bind import extents
from dovetail.ir.certificate import Check
from dovetail.ir.evaluate import evaluate
from dovetail.ir.fill import fill, sums_are_exact
from dovetail.ir.nest import Nest
from dovetail.ir.nest_evaluate import evaluate_nest
from dovetail.ir.plan import Plan
from dovetail.ir.program import Program
from dovetail.runtime.layout import laid_out
from dovetail.targets.model import Target

Array = npt.NDArray[np.generic]
CLAIM = "program and nest agree"
METHOD = "exact evaluation"


def exact_check(
    program: Program, plan: Plan, nest: Nest, target: Target, choices: tuple[dict[str, int], ...], note: str
) -> Check:
    """``nest`` against ``program``, all elements, for each choice of run-time sizes; ``note`` says what they are."""
    started = perf_counter()
    elements = 0
    for sizes in choices:
        try:
            found = _compared(program, plan, nest, target, sizes)
        except (CodegenError, IndexRangeError) as problem:
            return Check(CLAIM, METHOD, f"the nest cannot be run: {problem.what}", False, perf_counter() - started)
        if not found.agrees:
            return Check(CLAIM, METHOD, failure(found, note, sizes), False, perf_counter() - started)
        elements += sum(c.elements for c in found.classes)
    detail = f"{elements} elements of {note}{allowance(found)}"
    return Check(CLAIM, METHOD, detail, True, perf_counter() - started)


def failure(found: Comparison, note: str, sizes: Mapping[str, int]) -> str:
    """The first wrong element, and where it is."""
    wrong = next(c for c in found.classes if c.wrong)
    return f"{wrong.tensor}{wrong.first}, {wrong.name}, in {note}{shown(sizes)}"


def allowance(found: Comparison) -> str:
    """What was allowed where numbers are not whole."""
    return f", within {found.bound:.0e} because of {found.inexact}" if found.inexact else ""


def _compared(program: Program, plan: Plan, nest: Nest, target: Target, sizes: dict[str, int]) -> Comparison:
    arrays = calmed(program, fill(program, 1, sizes), sizes)
    ahead = {hold.tensor: hold.digits for hold in plan.holds if hold.ahead}
    given: dict[str, Array] = {}
    for tensor in (*program.inputs, *program.outputs):
        array = arrays.get(tensor.name)
        if array is None:
            array = np.full(extents(tensor, sizes), 1).astype(tensor.dtype.numpy)
        given[tensor.name] = laid_out(array, ahead[tensor.name], tensor.dtype.name) if tensor.name in ahead else array
    found = evaluate_nest(nest, target.by_name, given, sizes)
    wanted = evaluate(program, arrays, sizes)
    whole = sums_are_exact(program, sizes, 1)
    compared = compare(program, plan, sizes, found, wanted, whole)
    if compared.agrees or not compared.inexact:
        return compared
    allowed = allowed_spread(program, arrays, sizes, wanted)
    return compare(program, plan, sizes, found, wanted, whole, allowed=allowed)
