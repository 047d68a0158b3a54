"""Random definitions as chains of single operations, and on machines: nothing changes but who computes what."""

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from dovetail.ir.functional.evaluate import evaluate
from dovetail.ir.functional.infer import check
from dovetail.ir.functional.term import Definition
from dovetail.ir.functional.types import Scalar, shape
from dovetail.rewrite.calls import without_calls
from dovetail.rewrite.mapped import map_definition
from dovetail.rewrite.operations import to_operations
from dovetail.rewrite.run import Run
from dovetail.targets.load import load_target
from tests.property.terms import definitions

RANDOM = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
)
"""Without making a failure smaller: mapping one definition takes a tenth of a second."""


def values(definition: Definition, seed: int = 3) -> list[np.ndarray[tuple[int, ...], np.dtype[np.float64]]]:
    """What a definition computes from small whole numbers."""
    random = np.random.default_rng(seed)
    data = {}
    for param in definition.params:
        extents, element = shape(param.type)
        assert isinstance(element, Scalar)
        drawn = random.integers(-3, 4, [size.const for size in extents])
        data[param.name] = np.asarray(drawn, element.dtype.numpy)
    return [np.asarray(found, np.float64) for found in evaluate(definition, data).values()]


def same(one: Definition, other: Definition) -> bool:
    assert check(one) == check(other)
    return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(values(one), values(other), strict=True))


@RANDOM
@given(definitions())
def test_a_chain_of_operations_computes_the_same(definition: Definition) -> None:
    run = Run(definition)
    to_operations(run)
    assert same(definition, run.definition)


@pytest.mark.parametrize("machine", ["npu-mv", "sw26010", "systolic16"])
def test_a_mapped_definition_computes_the_same(machine: str) -> None:
    target = load_target(machine)

    @RANDOM
    @given(definitions())
    def prove(definition: Definition) -> None:
        found = map_definition(definition, target)
        assert same(definition, without_calls(found.definition))
        assert same(definition, found.plain)

    prove()
