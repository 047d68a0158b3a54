"""What ``find`` finds is what a brute-force subgraph isomorphism finds, on thousands of random graphs."""

import random

import pytest

from dovetail.base.errors import PatternError
from dovetail.ir.graph.bound import BoundGraph
from dovetail.ir.index import constant
from dovetail.rewrite.patterns.find import MOST_WAYS, Match, find
from dovetail.rewrite.patterns.form import Form, Hole
from dovetail.rewrite.patterns.pattern import Pattern
from dovetail.rewrite.patterns.text import parse_form
from tests.property.brute_patterns import Key, brute_matches, longest
from tests.property.random_patterns import random_chains, random_form, random_graph

GRAPHS = 2000
CHAINS = (
    "repeat(?n, ?h = ?start, add(?h, each(?b)))",
    "repeat(?n, ?h = ?start, relu(?h))",
    "repeat(?n, ?h = ?start, mul(?h, ?w))",
    "repeat(?n, ?h = ?start, add(?h, neg(each(?b))))",
    "repeat(?n, ?h = ?start, sub(relu(?h), ?h))",
)


def found_keys(graph: BoundGraph, form: Form) -> tuple[set[Key], list[Match]]:
    hole = next((f"?{part.name}" for part in form.parts if isinstance(part, Hole)), "?x")
    after = parse_form(", ".join([hole] * len(form.sinks)))
    matches = list(find(graph, [Pattern("p", form, after)]))
    return {(one.found.sinks, frozenset(one.found.holes), frozenset(one.inside)) for one in matches}, matches


def test_all_matches_agree_with_brute_force_on_two_thousand_graphs() -> None:
    rng = random.Random(20)
    found = several = refused = 0
    for _ in range(GRAPHS):
        graph = random_graph(rng, rng.randrange(4, 13))
        form = random_form(rng, graph)
        try:
            ours, matches = found_keys(BoundGraph(graph, {}), form)
        except PatternError:
            refused += 1
            continue
        assert len(matches) < MOST_WAYS
        assert ours == brute_matches(graph, form), f"{graph}\n{form}"
        found += bool(ours)
        several += len(form.sinks) > 1 and bool(ours)
    assert found > GRAPHS // 4
    assert several > GRAPHS // 50
    assert refused < GRAPHS // 2


@pytest.mark.parametrize("text", CHAINS)
def test_repetitions_are_as_long_as_brute_force_finds_them(text: str) -> None:
    rng = random.Random(len(text))
    (chain,) = parse_form(text).chains()
    lengths: list[int] = []
    for number in range(45):
        graph = random_chains(rng, chain.step, chain.previous, 8) if number % 3 else random_graph(rng, 8)
        ours = find(BoundGraph(graph, {}), [Pattern("p", text, "?start")])
        brute = longest(graph, chain, 9)
        assert brute.keys() <= {name for one in ours for name in one.inside}
        for one in ours:
            count, matches = brute[one.found.sinks[0]]
            assert one.settings["n"] == constant(count)
            assert frozenset(one.inside) in {key[2] for key in matches}
            lengths.append(count)
    assert len(lengths) > 25
    assert max(lengths) >= 3
