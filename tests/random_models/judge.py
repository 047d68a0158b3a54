"""Whether what a compiled model gives is what it should.

Exact values must be equal, bit by bit but for the sign of zero. Others may differ by as much as the reference itself
moves when every inexact value in it is disturbed by a few units in the last place: a model that magnifies errors is
allowed larger ones, and no tolerance is written down by hand. A result that is mostly zeros or NaN proves little:
it is mistrusted, and counted apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
import numpy.typing as npt

from dovetail.base.errors import DovetailError
from dovetail.certify.stepped import stepped
from dovetail.ir.evaluate import evaluate
from dovetail.ir.graph.bound import BoundGraph
from dovetail.ir.graph.evaluate import run_node
from dovetail.ir.graph.graph import Node
from dovetail.ops.region import node_program
from dovetail.ops.table import OPERATORS
from tests.random_models.grow import Array, Grown
from tests.random_models.makers import MAKERS

Compiled = Callable[[BoundGraph], Callable[..., Sequence[Array]]]
ULPS = 8
"""How much an inexact value is disturbed: elementary functions are good to four."""
TRIALS = 3
MARGIN = 8.0
MOSTLY = 0.95
_MISTAKES = (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""Of ours: reported with the model, like any wrong result."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """``problem`` is empty when all is well; ``mistrusted`` outputs were too empty to prove anything."""

    seed: int
    text: str
    problem: str = ""
    outputs: int = 0
    mistrusted: int = 0
    exact: int = 0


def random_model(seed: int) -> tuple[Grown, BoundGraph]:
    """The model with this number: three to nine nodes."""
    rng = Random(seed)
    grown = Grown(rng)
    wanted, names = rng.randint(3, 9), list(MAKERS)
    for _ in range(100):
        if len(grown.nodes) >= wanted:
            break
        made = MAKERS[rng.choice(names)](grown)
        if made is not None:
            grown.add(made)
    return grown, grown.model()


def judged(seed: int, compiled: Compiled) -> Verdict:
    """What became of model ``seed``."""
    grown, model = random_model(seed)
    text = str(model.graph)
    try:
        results = compiled(model)(*grown.arguments(model))
    except (DovetailError, *_MISTAKES) as error:
        return Verdict(seed, text, f"{type(error).__name__}: {error}")
    spread = _spread(grown, seed)
    mistrusted = exact = 0
    for name, array in zip(model.graph.outputs, results, strict=True):
        wanted = grown.facts[name]
        exact += wanted.exact
        mistrusted += _is_empty(wanted.array)
        problem = _difference(wanted.array, array, 0.0 if wanted.exact else spread[name])
        if problem:
            return Verdict(seed, text, f"output {name}: {problem}")
    return Verdict(seed, text, "", len(results), mistrusted, exact)


def _difference(wanted: Array, found: Array, allowed: float) -> str:
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return f"{found.dtype}{list(found.shape)} instead of {wanted.dtype}{list(wanted.shape)}"
    a, b = wanted.astype(np.float64), found.astype(np.float64)
    off = np.abs(a - b)
    if np.isnan(b).any() or off.max(initial=0.0) > allowed:
        place = tuple(int(n) for n in np.unravel_index(int(np.nanargmax(off)), off.shape))
        return f"{b[place]!r} instead of {a[place]!r} at {place}, {allowed:.3g} allowed"
    return ""


def _is_empty(array: Array) -> bool:
    if array.dtype == np.bool_ or array.size < 8:
        return False
    numbers = array.astype(np.float64)
    return float((np.isnan(numbers) | (numbers == 0)).mean()) > MOSTLY


def _spread(grown: Grown, seed: int) -> dict[str, float]:
    """By how much each value may be off: what disturbances make of it, with a margin, and its own rounding."""
    largest = dict.fromkeys(grown.facts, 0.0)
    inside = {node.results[0]: _inside(grown, node) for node in grown.nodes}
    for trial in range(TRIALS):
        noise = np.random.default_rng([seed, trial])
        values: dict[str, Array] = dict(grown.data)
        for node in grown.nodes:
            arrays = run_node(node, grown.types, OPERATORS, {n: values[n] for n in node.operands}, {}, {})
            for place, (name, array) in enumerate(zip(node.results, arrays, strict=True)):
                fact = grown.facts[name]
                values[name] = array if fact.exact else _disturbed(array, noise, inside[node.results[0]][place])
                moved = np.abs(values[name].astype(np.float64) - fact.array.astype(np.float64)).max(initial=0.0)
                largest[name] = max(largest[name], float(moved))
    return {name: MARGIN * moved for name, moved in largest.items()}


def _inside(grown: Grown, node: Node) -> list[float]:
    """By how much each result of a node is off where every operation in it rounds, and functions are not exact."""
    program = node_program(node, grown.types, OPERATORS, {})
    wanted = [grown.facts[name].array.astype(np.float64) for name in node.results]
    given = {t.name: grown.facts[name].array for t, name in zip(program.inputs, node.operands, strict=True)}
    off = ULPS * float(np.finfo(np.float32).eps)
    runs = [list(evaluate(stepped(program, part), given).values()) for part in (0.0, off, -off)]
    return [
        max(float(np.abs(r[k].astype(np.float64) - w).max(initial=0.0)) for r in runs) for k, w in enumerate(wanted)
    ]


def _largest(found: Array, wanted: npt.NDArray[np.float64]) -> float:
    return float(np.abs(found.astype(np.float64) - wanted).max(initial=0.0))


def _disturbed(array: Array, noise: np.random.Generator, inside: float) -> Array:
    """Every element moved by some units in its own last place, by one in that of the largest, and by ``inside``."""
    if array.dtype != np.float32:
        return array
    epsilon, numbers = float(np.finfo(np.float32).eps), array.astype(np.float64)
    own = ULPS * epsilon * numbers * noise.uniform(-1, 1, array.shape)
    of_largest = np.abs(numbers).max(initial=0.0) * epsilon * noise.uniform(-1, 1, array.shape)
    moved: Array = (numbers + own + of_largest + inside * noise.uniform(-1, 1, array.shape)).astype(np.float32)
    return moved
