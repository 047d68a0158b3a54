"""The search finds exactly what brute force finds, within the same bounds."""

from __future__ import annotations

import pytest

from dovetail.base.limits import Limits
from dovetail.ir.fit import Fit
from dovetail.ir.program import Program
from dovetail.mapping.find import find_mappings
from dovetail.mapping.prove import prove
from dovetail.targets.model import Instruction, Operand, Target
from tests.property.brute_mapping import Found, brute_fits
from tests.property.mapping_pairs import random_pair

PAIRS = 300
BATCH = 20
LIMITS = Limits(mapping_depth=2)


@pytest.mark.parametrize("batch", range(PAIRS // BATCH))
def test_the_search_finds_exactly_what_brute_force_finds(batch: int) -> None:
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        program, instruction = random_pair(seed)
        result = find_mappings(program, _target(instruction), LIMITS, misfits=False)
        assert result.stopped_by == ""
        found = [_described(fit) for fit in result.fits]
        assert len(found) == len(set(found)), f"pair {seed}: a fit was found twice"
        expected = brute_fits(program, instruction, LIMITS.mapping_depth)
        assert set(found) == expected, f"pair {seed}:\n{program}\n--\n{instruction}"


def test_the_random_pairs_fit_often_enough_to_mean_something() -> None:
    counts = [len(_fits(seed)) for seed in range(0, PAIRS, 3)]
    assert sum(count > 0 for count in counts) > len(counts) // 3
    assert sum(count > 10 for count in counts) > len(counts) // 10


def test_every_fit_of_random_pairs_is_proven() -> None:
    for seed in range(0, PAIRS, 10):
        program, instruction = random_pair(seed)
        target = _target(instruction)
        for fit in find_mappings(program, target, LIMITS, misfits=False).fits:
            checks = prove(program, fit, target.instruction(fit.instruction))
            assert all(check.passed for check in checks), f"pair {seed}: {fit}\n" + "\n".join(map(str, checks))


def _fits(seed: int) -> tuple[Fit, ...]:
    program, instruction = random_pair(seed)
    return find_mappings(program, _target(instruction), LIMITS, misfits=False).fits


def _target(program: Program) -> Target:
    operands = tuple(Operand(t.name, t.dtype, "memory") for t in program.tensors)
    return Target("needle", "", (), (), {"needle": Instruction("needle", program, operands)})


def _described(fit: Fit) -> Found:
    loops = tuple((bound.needle, bound.loops) for bound in fit.loops)
    operands = tuple(sorted(map(str, fit.operands)))
    return fit.statement, fit.node, loops, operands, frozenset(f"{a.kind} {a.operand}" for a in fit.adapters)
