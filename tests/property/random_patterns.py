"""Random graphs of a few operators, and patterns that were cut out of them, or out of nothing."""

import random

from dovetail.base.dtypes import DTYPES
from dovetail.ir.graph.graph import Graph, Node, Type, Value
from dovetail.ir.index import constant
from dovetail.rewrite.graph_text import FixedAttribute, MadeAttribute
from dovetail.rewrite.patterns.form import Form, FormBuilder, Hole, Operation, Result

ONE, TWO, SPLIT = ("relu", "neg"), ("add", "mul", "sub"), "split"


def random_graph(rng: random.Random, size: int) -> Graph:
    """Values read close to where they are made, so that chains and shared values are common."""
    values, nodes = ["x", "y"], list[Node]()
    for number in range(size):
        near = values[-5:]
        kind = rng.random()
        if kind < 0.4:
            made = Node(rng.choice(ONE), (rng.choice(near),), (f"v{number}",))
        elif kind < 0.9:
            made = Node(rng.choice(TWO), (rng.choice(near), rng.choice(near)), (f"v{number}",))
        else:
            made = Node(SPLIT, (rng.choice(near),), (f"v{number}", f"w{number}"), (("sizes", (2, 2)),))
        nodes.append(made)
        values += made.results
    kind_of = Type(DTYPES["f32"], (constant(4),))
    outputs = (values[-1], *(rng.choice(values[2:]) for _ in range(rng.randrange(2))))
    return Graph("g", (Value("x", kind_of), Value("y", kind_of)), outputs, tuple(nodes))


def random_form(rng: random.Random, graph: Graph) -> Form:
    """A piece of the graph above one or two of its nodes; now and then one of its operators is another."""
    builder, made, holes = FormBuilder(), dict[str, int](), dict[str, str]()
    depth = rng.randrange(1, 4)
    sinks = rng.sample(graph.nodes, min(len(graph.nodes), 1 + (rng.random() < 0.3)))

    def part(value: str, left: int) -> int:
        node = graph.producer(value)
        if node is None or left == 0 or rng.random() < 0.15:
            fresh = holes.setdefault(value, f"h{len(holes)}") if rng.random() < 0.85 else f"k{len(builder.parts)}"
            return builder.add(Hole(fresh))
        first = node.results[0]
        if first not in made:
            operands = tuple(part(one, left - 1) for one in node.operands)
            made[first] = builder.add(_operation(rng, node, operands))
        found = made[first]
        return found if len(node.results) == 1 else builder.add(Result(found, node.results.index(value)))

    return builder.form(*dict.fromkeys(part(rng.choice(sink.results), depth + 1) for sink in sinks))


def _operation(rng: random.Random, node: Node, operands: tuple[int, ...]) -> Operation:
    if node.op == SPLIT:
        sizes = MadeAttribute("", (FixedAttribute(2), FixedAttribute(2)))
        return Operation(SPLIT, operands, (("sizes", sizes),), 2)
    other = rng.random() < 0.08
    return Operation(rng.choice(ONE if len(operands) == 1 else TWO) if other else node.op, operands)


def random_chains(rng: random.Random, step: Form, previous: str, size: int) -> Graph:
    """Steps one behind the other, with other nodes between some of them, and readers of what lies between."""
    values, nodes = ["x", "y"], list[Node]()

    def add(op: str, operands: tuple[str, ...]) -> str:
        shuffled = operands if rng.random() < 0.5 or op == "sub" else operands[::-1]
        nodes.append(Node(op, shuffled, (f"v{len(nodes)}",)))
        values.append(nodes[-1].results[0])
        return values[-1]

    last = "x"
    while len(nodes) < size:
        if rng.random() < 0.2:
            last = add(rng.choice(ONE), (last,))
            continue
        if rng.random() < 0.1:
            add("neg", (rng.choice(values),))
        made: list[str] = []
        for part in step.parts:
            if isinstance(part, Operation):
                made.append(add(part.op, tuple(made[one] for one in part.operands)))
            else:
                is_before = isinstance(part, Hole) and part.name == previous
                made.append(last if is_before else "y" if rng.random() < 0.7 else rng.choice(values))
        last = made[step.sinks[0]]
    kind_of = Type(DTYPES["f32"], (constant(4),))
    return Graph("g", (Value("x", kind_of), Value("y", kind_of)), (last,), tuple(nodes))
