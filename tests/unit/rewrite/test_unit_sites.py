"""The maps of a definition that may be spread over units, and the terms that say how."""

from pathlib import Path

import pytest

from dovetail.ir.functional.text import parse_definition
from dovetail.rewrite.unit_sites import Spread, spread
from dovetail.rewrite.units import broken, cheapest, count, solutions, steps
from dovetail.targets.load import load_target
from dovetail.targets.model import Target

TARGETS = Path(__file__).parents[2] / "targets"
PRODUCT = r"def product(a: f16[256, 64], b: f16[128, 64]) -> y = map(\r -> map(\c -> {dot}, b), a)"
DOT = "reduce(add, 0, map(mul, zip(r, c)))"


def machine(name: str) -> Target:
    path = TARGETS / f"{name}.toml"
    return load_target(path if path.exists() else name)


def spread_text(text: str, name: str) -> Spread:
    return spread(parse_definition(text), machine(name))


def ways(found: Spread) -> set[tuple[str, ...]]:
    return {tuple(map(found.problem.text, a)) for a in solutions(found.problem)}


def test_the_maps_around_a_sum_are_sites_and_the_one_inside_is_not() -> None:
    found = spread_text(PRODUCT.format(dot=DOT), "hopper")
    assert [(s.parent, s.extent) for s in found.problem.sites] == [(-1, 256), (0, 128)]
    assert ("sm", "warpgroup*lane") in ways(found)
    assert ("", "sm") in ways(found)
    assert not any("lane" in way[0] and way[1] for way in ways(found))


def test_a_spread_term_says_what_runs_where() -> None:
    found = spread_text(PRODUCT.format(dot=DOT), "hopper")
    best = cheapest(found.problem, steps)
    text = str(found.annotated(best))
    assert text == (
        "def product(a: f16[256, 64], b: f16[128, 64]) -> y =\n"
        "  map@sm*warpgroup(\\r -> map@lane(\\c -> reduce(add, 0, map(mul, zip(r, c))), b), a)"
    )
    assert str(found.annotated(((0, 0), (0, 0)))) == str(found.definition)


def test_a_tile_in_shared_memory_keeps_its_readers_in_one_sm() -> None:
    text = r"""def product(a: f16[4, 64, 64], b: f16[128, 64]) -> y =
      map(\t -> let near = to(shared, map(\r -> map(\v -> f16(v + v), r), t)) in
                map(\r -> map(\c -> reduce(add, 0, map(mul, zip(r, c))), b), near), a)"""
    found = spread_text(text, "hopper")
    names = [(value.name, value.memory, value.scope) for value in found.problem.values]
    assert ("near", "shared", 0) in names
    for way in ways(found):
        inside = {way[s] for s in range(len(way)) if s}
        assert way[0].startswith("sm") or not any("sm" in unit for unit in inside)
    assert broken(found.problem, ((0, 0),) * 3 + ((0, 1),) + ((0, 0),) * (len(found.paths) - 4))


def test_a_pad_that_is_sent_to_all_cores_may_be_read_by_all() -> None:
    text = r"""def scale(x: i32[64], w: i32[256, 64]) -> y =
      let near = to(pad, {value}) in map(\r -> map(add, zip(r, near)), w)"""
    copied = spread_text(text.format(value="x"), "four-cores")
    assert ways(copied) == {("", ""), ("core", ""), ("", "core")}
    computed = spread_text(text.format(value=r"map(\v -> v + 1, x)"), "four-cores")
    assert ways(computed) == {("", "", "")}


@pytest.mark.parametrize("name", ["npu-mv", "systolic16"])
def test_a_machine_of_one_core_has_one_way(name: str) -> None:
    found = spread_text(PRODUCT.format(dot=DOT), name)
    assert count(found.problem) == 1


def test_a_grid_takes_a_map_for_each_dimension() -> None:
    found = spread_text(PRODUCT.format(dot=DOT), "sw26010")
    assert ("cpe.0", "cpe.1") in ways(found)
    assert ("cpe", "") in ways(found)


def test_maps_that_only_move_elements_are_no_sites() -> None:
    found = spread_text(r"def f(x: f32[8, 16]) -> y = transpose(map(\r -> map(exp, r), transpose(x)))", "hopper")
    assert [site.extent for site in found.problem.sites] == [16, 8]


def test_partial_sums_of_arrays_are_spread_inside_the_sum() -> None:
    text = r"""def f(x: f32[4, 64]) -> y =
      reduce(\a b -> map(add, zip(a, b)), repeat(64, 0), map(\r -> map(exp, r), x))"""
    found = spread_text(text, "hopper")
    assert [site.extent for site in found.problem.sites] == [64]
