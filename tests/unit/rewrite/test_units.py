"""Maps on units: exactly the assignments in which every instance finds what it reads and writes."""

import itertools
import random
from math import prod
from pathlib import Path

import pytest

from dovetail.base.errors import RewriteError
from dovetail.rewrite.units import (
    Assignment,
    Problem,
    Site,
    Value,
    broken,
    cheapest,
    count,
    draw,
    is_legal,
    problem,
    solutions,
    steps,
    stretch_text,
    unit_chain,
)
from dovetail.targets.load import load_target
from dovetail.targets.model import Target

TARGETS = Path(__file__).parents[2] / "targets"
MACHINES = ("hopper", "four-cores", "engine", "sme", "amx", "sw26010", "npu-mv", "systolic16")


def machine(name: str) -> Target:
    path = TARGETS / f"{name}.toml"
    return load_target(path if path.exists() else name)


def stretches(length: int) -> list[tuple[int, int]]:
    return [(0, 0), *((a, b) for a in range(length) for b in range(a + 1, length + 1))]


def everything(posed: Problem) -> list[Assignment]:
    return list(itertools.product(stretches(len(posed.chain)), repeat=len(posed.sites)))


def fits_by_instances(posed: Problem, assignment: Assignment) -> bool:
    """The oracle: go through all instances and see whether each finds its memory to be that of the others."""
    chain, target = posed.chain, posed.target
    depth = {unit.name: n for n, unit in enumerate(target.units)}
    for number, site in enumerate(posed.sites):
        path = [assignment[number]]
        while site.parent >= 0:
            path.insert(0, assignment[site.parent])
            site = posed.sites[site.parent]
        taken = [level for stretch in path for level in range(*stretch)]
        if taken != list(range(len(taken))):
            return False
    for value in posed.values:
        memory = target.memory(value.memory)
        owned = [n for n, level in enumerate(chain) if memory.per and level.depth <= depth[memory.per]]
        for kind, ends in (("write", value.writes), ("read", value.reads)):
            for end in ends:
                varies: list[int] = []
                while end not in (value.scope, -1):
                    varies += range(*assignment[end])
                    end = posed.sites[end].parent
                copied = kind == "read" and not value.writes
                sent = [n for n in owned if copied and sends(target, value.memory, chain[n].unit)]
                counts = [range(min(2, chain[n].count)) if n in varies and n not in sent else (0,) for n in owned]
                if len(set(itertools.product(*counts))) > 1:
                    return False
    return True


def sends(target: Target, memory: str, unit: str) -> bool:
    """Whether a copy fills that memory of all of a unit."""
    return any(i.broadcast == unit and i.along is None and i.operands[0].memory == memory for i in target.instructions)


def posed_at_random(target: Target, seed: int) -> Problem:
    draw = random.Random(seed)
    sites = tuple(Site(f"map {n}", draw.randrange(-1, n), draw.choice((3, 64, 500))) for n in range(draw.randint(1, 4)))
    memories = [m.name for m in target.memories if m.kind.value != "cache"]
    values = []
    for n in range(draw.randint(0, 3)):
        scope = draw.randrange(-1, len(sites))
        inside = [s for s in range(len(sites)) if scope in (-1, *around(sites, s))]
        reads = tuple(draw.sample(inside, min(len(inside), draw.randint(0, 2))))
        writes = tuple(draw.sample(inside, min(len(inside), draw.randint(0, 1))))
        values.append(Value(f"v{n}", draw.choice(memories), scope, writes, reads))
    return problem(sites, tuple(values), target)


def around(sites: tuple[Site, ...], site: int) -> tuple[int, ...]:
    return () if site < 0 else (site, *around(sites, sites[site].parent))


@pytest.mark.parametrize("name", ["hopper", "four-cores", "engine", "npu-mv"])
def test_solutions_are_those_of_going_through_all_instances(name: str) -> None:
    target = machine(name)
    for seed in range(25):
        posed = posed_at_random(target, seed)
        legal = [a for a in everything(posed) if fits_by_instances(posed, a)]
        assert [a for a in everything(posed) if is_legal(posed, a)] == legal
        found = list(solutions(posed))
        assert len(found) == len(set(found)) == count(posed) == len(legal)
        assert set(found) == set(legal)


def test_a_row_broadcast_reaches_one_dimension_of_a_grid() -> None:
    target = machine("sw26010")
    sites = (Site("rows", -1), Site("columns", 0))
    shared = problem(sites, (Value("x", "ldm", -1, (), (1,)),), target)
    assert [shared.text(s) for s in stretches(2)] == ["", "cpe.0", "cpe", "cpe.1"]
    legal = {tuple(map(shared.text, a)) for a in solutions(shared)}
    assert legal == {("", ""), ("cpe.0", ""), ("", "cpe.0"), ("cpe", ""), ("", "cpe"), ("cpe.0", "cpe.1")}
    written = problem(sites, (Value("y", "ldm", -1, (1,), ()),), target)
    assert list(solutions(written)) == [((0, 0), (0, 0))]


def test_chains_hold_what_there_are_several_of() -> None:
    chains = {name: [level.name for level in unit_chain(machine(name))] for name in MACHINES}
    assert chains["hopper"] == ["sm", "warpgroup", "lane"]
    assert chains["four-cores"] == ["core"]
    assert chains["engine"] == ["cluster.0", "cluster.1"]
    assert chains["sw26010"] == ["cpe.0", "cpe.1"]
    assert chains["npu-mv"] == chains["systolic16"] == []


def test_every_broken_rule_is_named() -> None:
    target = machine("hopper")
    sites = (Site("map 0", -1), Site("map 1", 0))
    posed = problem(sites, (Value("tile", "shared", -1, (0,), (1,)), Value("row", "shared", 0, (1,), (1,))), target)
    assert broken(posed, ((0, 0), (0, 0))) == ()
    assert broken(posed, ((0, 1), (0, 2))) == (
        "map 0 on sm: 'tile' lies in 'shared', one for each sm, and all of them write it",
        "map 1 on sm*warpgroup: a map around it is on sm already",
        "map 1 on sm: 'tile' lies in 'shared', one for each sm, and all of them read it",
    )
    assert broken(posed, ((0, 0), (1, 2))) == ("map 1 on warpgroup: it is not inside a map on sm",)


def test_a_value_in_a_memory_that_is_not_there_is_refused() -> None:
    target = machine("hopper")
    with pytest.raises(RewriteError, match="cannot be put into 'L2'") as refused:
        problem((), (Value("x", "L2", -1, (), ()),), target)
    assert "it fills itself" in str(refused.value)
    with pytest.raises(RewriteError, match="cannot be put into 'pad'"):
        problem((), (Value("x", "pad", -1, (), ()),), target)


@pytest.mark.parametrize("name", MACHINES)
def test_draws_are_legal_and_follow_from_the_seed(name: str) -> None:
    target = machine(name)
    for seed in range(20):
        posed = posed_at_random(target, seed)
        drawn = [draw(posed, n) for n in range(5)]
        assert all(is_legal(posed, a) for a in drawn)
        assert drawn == [draw(posed, n) for n in range(5)]


def test_draws_are_even() -> None:
    posed = problem((Site("a", -1), Site("b", 0), Site("c", 0)), (), machine("hopper"))
    found = dict.fromkeys(solutions(posed), 0)
    for seed in range(4000):
        found[draw(posed, seed)] += 1
    expected = 4000 / len(found)
    assert all(expected / 3 < times < expected * 2.5 for times in found.values())


def test_the_cheapest_has_the_least_cost_of_all() -> None:
    for seed in range(20):
        posed = posed_at_random(machine("hopper"), seed)
        costs = [steps(posed, a) for a in solutions(posed)]
        assert steps(posed, cheapest(posed, steps)) == min(costs)


def test_steps_count_what_follows_one_another() -> None:
    posed = problem((Site("rows", -1, 256), Site("columns", 0, 100)), (), machine("hopper"))
    assert steps(posed, ((0, 0), (0, 0))) == 256 * 100
    assert steps(posed, ((0, 1), (1, 2))) == 2 * 25
    assert prod(level.count for level in posed.chain) == 132 * 4 * 128
    assert stretch_text(posed.chain, (0, 3)) == "sm*warpgroup*lane"


def test_too_many_ways_to_compare_are_refused() -> None:
    sites = tuple(Site(f"map {n}", -1) for n in range(12))
    posed = problem(sites, (), machine("hopper"))
    assert count(posed) == 4**12
    with pytest.raises(RewriteError, match=f"{4**12} ways to spread the maps"):
        cheapest(posed, steps)
