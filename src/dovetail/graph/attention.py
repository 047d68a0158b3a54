"""Two products and the rows between them become one region: attention.

s = matmul(q, k) {...}      s[b, h, i, j]          for each b and h, what the first product makes is still near when
p = softmax(s * scale + mask)                 ->   its rows are worked on, and when the second one reads them
o = matmul(p, v)            o[b, h, i, d]
"""

from __future__ import annotations

from dovetail.graph.grow import Sketch, few_reads
from dovetail.graph.roles import Work
from dovetail.ir.graph.graph import Node
from dovetail.ir.index import ONE, Index


def rows_between_products(sketch: Sketch) -> None:
    """Regions of a product, of rows, and of a product that nothing else reads from become one."""
    for node in reversed(sketch.graph.nodes):
        rows = sketch.home.get(node.results[0])
        if rows is None or sketch.work_of(node) is not Work.ROWS:
            continue
        before, after = _maker(sketch, rows, node), _reader(sketch, rows)
        if before is not None and after is not None and len({before, rows, after}) == 3:
            nodes = tuple(n for number in (before, rows, after) for n in sketch.regions[number][0])
            if few_reads({n.results[0]: n for n in nodes}):
                sketch.merge((before, rows, after), "products, and what is computed of each row between them")


def _maker(sketch: Sketch, rows: int, node: Node) -> int | None:
    """The region of the product whose result the rows are, if they alone read it."""
    for value in (v for n in sketch.regions[rows][0] for v in n.operands):
        made = sketch.graph.producer(value)
        number = None if made is None else sketch.home.get(made.results[0])
        if number is None or number == rows or not _is_product(sketch, number):
            continue
        if sketch.same_points(value, node.results[0]) and _readers(sketch, number) == {rows}:
            return number
    return None


def _reader(sketch: Sketch, rows: int) -> int | None:
    """The region of the product that alone reads what becomes of the rows."""
    readers = _readers(sketch, rows)
    number = next(iter(readers)) if len(readers) == 1 else None
    return number if number is not None and _is_product(sketch, number) else None


def _readers(sketch: Sketch, number: int) -> set[int | None]:
    """Regions that read from one; None stands for callers, and for nodes that have none."""
    found: set[int | None] = set()
    for node in sketch.regions[number][0]:
        for value in node.results:
            found |= {sketch.home.get(user.results[0]) for user in sketch.graph.users(value)}
            found |= {None} if value in sketch.outputs else set()
    return found - {number}


def _is_product(sketch: Sketch, number: int) -> bool:
    """Whether a region has one product, of parts that share nothing: a product for each of several batches."""
    products = [n for n in sketch.regions[number][0] if sketch.work_of(n) is Work.CONTRACTION]
    return len(products) == 1 and len(products[0].operands) == 2 and _batches(sketch, products[0])


def _batches(sketch: Sketch, product: Node) -> bool:
    shapes = [sketch.types[value].shape for value in (*product.operands, product.results[0])]
    outer = [_outer(shape) for shape in shapes]
    return product.op == "matmul" and bool(outer[2]) and outer[0] == outer[1] == outer[2]


def _outer(shape: tuple[Index, ...]) -> tuple[Index, ...]:
    """Extents of all axes but the last two, without those of one element."""
    return tuple(extent for extent in shape[:-2] if extent != ONE)
