"""Fifty patterns on a graph of a hundred thousand nodes."""

import random
import re
import time

from dovetail.base.dtypes import DTYPES
from dovetail.ir.graph.bound import BoundGraph
from dovetail.ir.graph.graph import Graph, Node, Type, Value
from dovetail.ir.index import constant
from dovetail.rewrite.patterns.find import find
from dovetail.rewrite.patterns.pattern import Pattern

NODES, STEPS = 100_000, 20_000
ONE = ("relu", "sigmoid", "tanh", "exp", "neg", "abs", "sqrt")
TWO = ("add", "mul", "sub", "max")
MOST_SECONDS = 2.0


def large_graph(rng: random.Random) -> BoundGraph:
    values, nodes = ["x", "y"], list[Node]()
    for number in range(NODES):
        near = values[-6:]
        count = 1 if rng.random() < 0.5 else 2
        op = rng.choice(ONE if count == 1 else TWO)
        nodes.append(Node(op, tuple(rng.choice(near) for _ in range(count)), (f"v{number}",)))
        values.append(f"v{number}")
    kind = Type(DTYPES["f32"], (constant(8),))
    return BoundGraph(Graph("g", (Value("x", kind), Value("y", kind)), (values[-1],), tuple(nodes)), {})


def fifty_patterns(rng: random.Random) -> list[Pattern]:
    def term(depth: int) -> str:
        if depth == 0:
            return f"?{rng.choice('abc')}"
        if rng.random() < 0.4:
            return f"{rng.choice(ONE)}({term(depth - 1)})"
        return f"{rng.choice(TWO)}({term(depth - 1)}, {term(rng.randrange(depth))})"

    texts = [term(2 + number % 3) for number in range(47)]
    found = [Pattern(f"p{k}", text, re.findall(r"\?\w", text)[0]) for k, text in enumerate(texts)]
    found.append(Pattern("sums", "repeat(?n >= 3, ?h = ?x, add(?h, each(?b)))", "?x"))
    found.append(Pattern("squares", "repeat(?n, ?h = relu(?x), mul(?h, sigmoid(?h)))", "?x"))
    found.append(Pattern("two", "exp(?x), tanh(?x)", "?x, ?x"))
    return found


def test_fifty_patterns_on_a_hundred_thousand_nodes_take_two_seconds() -> None:
    rng = random.Random(1)
    graph, patterns = large_graph(rng), fifty_patterns(rng)
    took = float("inf")
    for _ in range(3):  # others may have the machine for a while
        begun = time.process_time()
        found = find(graph, patterns)
        took = min(took, time.process_time() - begun)
        if took <= MOST_SECONDS:
            break
    assert len({one.pattern.name for one in found}) > 10
    assert len(found) > 2_500
    assert took <= MOST_SECONDS, f"{took:.2f} s"


def test_a_chain_of_twenty_thousand_steps_does_not_take_the_square_of_that() -> None:
    nodes = [Node("add", ("x" if k == 0 else f"v{k - 1}", "y"), (f"v{k}",)) for k in range(STEPS)]
    kind = Type(DTYPES["f32"], (constant(8),))
    graph = BoundGraph(Graph("g", (Value("x", kind), Value("y", kind)), (f"v{STEPS - 1}",), tuple(nodes)), {})
    patterns = [
        Pattern("sums", "repeat(?n, ?h = ?x, add(?h, each(?b)))", "?x"),
        Pattern("none", "repeat(?n, ?h = relu(?x), add(?h, each(?b)))", "?x"),
    ]
    begun = time.process_time()
    (found,) = find(graph, patterns)
    assert found.settings["n"] == constant(STEPS)
    assert time.process_time() - begun <= 5
