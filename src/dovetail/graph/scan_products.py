"""Products in the body of a ``scan`` in one form, so that what no state decides can go ahead of the steps.

    gemm(h, r, b), dense(h, r, b)            ->   add(matmul(h, r), b)
    matmul(concat(x, h), w)                  ->   add(matmul(x, w[:i]), matmul(h, w[i:]))
    add(add(a, b), add(matmul(h, r), c))     ->   add(add(a, add(b, c)), matmul(h, r))     where only h moves
    matmul(h, r0), matmul(h, r1)             ->   slices of matmul(h, concat(r0, r1))

Weights are cut and joined outside, where they are constants and it is done once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dovetail.graph.clean_rule import numbers
from dovetail.graph.roles import VIEWS
from dovetail.graph.scan_form import Body, Scan
from dovetail.graph.sheet import Sheet
from dovetail.ir.graph.graph import Attribute, Node, Type
from dovetail.ir.graph.operator import find

_MOVES = VIEWS | {"transpose", "concat", "slice", "cast", "expand"}


def plain_products(sheet: Sheet, scan: Scan) -> Scan:
    """Products as ``matmul`` alone, parts as slices, one product for each part of a ``concat``."""
    body = Body(scan, sheet.operators)
    moving = scan.moving()
    _join_equal(body, scan)
    for node in scan.nodes:
        made = _plain(body, body.nodes[node.results[0]])
        if made is not None:
            for old, new in zip(node.results, made, strict=True):
                body.replace(old, new)
    for node in tuple(body.nodes.values()):
        value = _apart(sheet, body, body.nodes[node.results[0]], moving)
        if value is not None:
            body.replace(node.results[0], value)
    made_scan = body.finish()
    return scan if made_scan.nodes == scan.nodes else made_scan


def _join_equal(body: Body, scan: Scan) -> None:
    """Nodes that compute the same are one, and copies of what a node makes are that."""
    seen: dict[object, Node] = {}
    for node in (body.nodes[old.results[0]] for old in scan.nodes):
        if node.op == "identity" and body.maker(node.operands[0]) is not None:
            body.replace(node.results[0], node.operands[0])
            continue
        first = seen.setdefault((node.op, node.operands, repr(node.attributes), len(node.results)), node)
        if first is not node and not node.op.startswith("random") and not node.bodies:
            for old, new in zip(node.results, first.results, strict=True):
                body.replace(old, new)


def _plain(body: Body, node: Node) -> Sequence[str] | None:
    given = find(node, body.operators).settings(node)
    if node.op == "split":
        return _parts(body, node, given["axis"], numbers(given["sizes"]))
    if node.op == "gemm":
        if given["transpose_a"] or given["alpha"] != 1 or given["beta"] != 1:
            return None
        value = _product(body, node.operands[0], node.operands[1], bool(given["transpose_b"]))
    elif node.op == "dense" and not given["dtype"]:
        value = _product(body, node.operands[0], node.operands[1], True)
    elif node.op == "matmul" and not given["dtype"] and not given["transpose_b"] and _is_vector_behind(body, node):
        return (_product(body, node.operands[1], node.operands[0], not given["transpose_a"]),)
    else:
        return None
    return (value if len(node.operands) < 3 else body.add("add", value, node.operands[2]),)


def _is_vector_behind(body: Body, node: Node) -> bool:
    left, right = (body.types[name] for name in node.operands)
    return left.rank == 2 and right.rank == 1 and node.operands[0] in body.shared


def _parts(body: Body, node: Node, axis: Attribute | None, sizes: Sequence[int]) -> Sequence[str] | None:
    if not isinstance(axis, int):
        return None
    axis, start, found = axis % body.types[node.operands[0]].rank, 0, []
    for size in sizes:
        found.append(
            body.add("slice", node.operands[0], starts=(start,), ends=(start + size,), axes=(axis,), steps=(1,))
        )
        start += size
    return found


def _product(body: Body, left: str, right: str, transposed: bool) -> str:
    return body.add("matmul", left, right, transpose_b=1) if transposed else body.add("matmul", left, right)


@dataclass(frozen=True, slots=True)
class _Product:
    """``left`` times shared weights of two axes."""

    node: Node
    left: str
    outer: str
    transposed: bool

    @property
    def columns(self) -> int:
        """The axis of the weights that becomes the last of the product."""
        return 0 if self.transposed else 1


def _shared_product(body: Body, node: Node) -> _Product | None:
    if node.op != "matmul" or node.operands[1] not in body.shared:
        return None
    given = find(node, body.operators).settings(node)
    left, right = (body.types[name] for name in node.operands)
    if given["transpose_a"] or given["dtype"] or right.rank != 2 or not left.rank:
        return None
    outer = body.shared[node.operands[1]].outer
    return _Product(node, node.operands[0], outer, bool(given["transpose_b"]))


def _apart(sheet: Sheet, body: Body, node: Node, moving: set[str]) -> str | None:
    """A product of a ``concat`` of what moves and what does not, part by part."""
    product = _shared_product(body, node)
    made = None if product is None else body.maker(product.left)
    if product is None or made is None or made.op != "concat":
        return None
    axis = find(made, body.operators).settings(made)["axis"]
    rank = body.types[product.left].rank
    if not isinstance(axis, int) or axis % rank != rank - 1 or len({part in moving for part in made.operands}) < 2:
        return None
    start, total = 0, ""
    for part in made.operands:
        width = body.types[part].shape[-1].const
        rows = 1 - product.columns
        cut = sheet.add("slice", product.outer, starts=(start,), ends=(start + width,), axes=(rows,), steps=(1,))
        value = _product(body, part, body.share(cut, sheet.types[cut]), product.transposed)
        total, start = (body.add("add", total, value) if total else value), start + width
    return total


def merged_products(sheet: Sheet, scan: Scan) -> tuple[Scan, int]:
    """Products of one value with several constant weights as one, and how many there were."""
    body = Body(scan, sheet.operators)
    groups: dict[str, list[_Product]] = {}
    for node in scan.nodes:
        product = _shared_product(body, node)
        if product is not None and is_constant(sheet, product.outer):
            groups.setdefault(product.left, []).append(product)
    count = 0
    for group in groups.values():
        if len(group) > 1:
            _merge(sheet, body, group)
            count += len(group)
    return (body.finish(), count) if count else (scan, 0)


def _merge(sheet: Sheet, body: Body, group: Sequence[_Product]) -> None:
    first = group[0]
    outers = [p.outer if p.transposed == first.transposed else sheet.add("transpose", p.outer) for p in group]
    weights = sheet.add("concat", *outers, axis=first.columns)
    value = _product(body, first.left, body.share(weights, sheet.types[weights]), first.transposed)
    biases = [_bias(sheet, body, product) for product in group]
    ends = [product.node.results[0] for product in group]
    found = [bias for bias in biases if bias is not None]
    if len(found) == len(group):
        bias = sheet.add("concat", *(outer for _, outer in found), axis=0)
        value = body.add("add", value, body.share(bias, sheet.types[bias]))
        ends = [end for end, _ in found]
    start, axis = 0, body.types[value].rank - 1
    for product, end in zip(group, ends, strict=True):
        width = body.types[product.node.results[0]].shape[-1].const
        part = body.add("slice", value, starts=(start,), ends=(start + width,), axes=(axis,), steps=(1,))
        body.replace(end, part)
        start += width


def _bias(sheet: Sheet, body: Body, product: _Product) -> tuple[str, str] | None:
    """What a product and a constant for each of its columns make together, and that constant outside."""
    value = product.node.results[0]
    readers = body.readers(value)
    if len(readers) != 1 or body.uses(value) != 1 or readers[0].op != "add":
        return None
    (adds,) = readers
    (other,) = (name for name in adds.operands if name != value)
    width = body.types[value].shape[-1]
    if (
        other not in body.shared
        or body.types[other].shape != (width,)
        or not is_constant(sheet, body.shared[other].outer)
    ):
        return None
    return adds.results[0], body.shared[other].outer


def is_constant(sheet: Sheet, value: str) -> bool:
    """Whether ``value`` is a constant, or another order, shape or part of some."""
    node = sheet.maker(value)
    if node is None:
        return sheet.array(value) is not None
    return node.op in (*_MOVES, "add") and all(is_constant(sheet, name) for name in node.operands)


def sums_ahead(sheet: Sheet, scan: Scan) -> Scan:
    """Sums in which what does not move is added up first."""
    body = Body(scan, sheet.operators)
    moving = scan.moving()
    changed = False
    for node in (body.nodes[old.results[0]] for old in scan.nodes):
        if node.op != "add" or node.results[0] not in moving or _is_inner(body, node):
            continue
        terms = _terms(body, node)
        still = [term for term in terms if term not in moving]
        if len(still) < 2 or len(still) == len(terms):
            continue
        shared = [term for term in still if term in body.shared]
        own = [term for term in still if term not in body.shared]
        parts = [_sum(body, part) for part in (own, shared) if part]
        total = body.add("add", _sum(body, [t for t in terms if t in moving]), _sum(body, parts))
        if body.types[total] == body.types[node.results[0]]:
            body.replace(node.results[0], total)
            changed = True
    return body.finish() if changed else scan


def _is_inner(body: Body, node: Node) -> bool:
    """Whether it is part of a larger sum."""
    value = node.results[0]
    readers = body.readers(value)
    return body.uses(value) == 1 and len(readers) == 1 and _continues(body, readers[0], node)


def _terms(body: Body, node: Node) -> list[str]:
    found: list[str] = []
    for name in node.operands:
        made = body.maker(name)
        inner = made is not None and made.op == "add" and body.uses(name) == 1 and _continues(body, node, made)
        found += _terms(body, made) if inner and made is not None else [name]
    return found


def _continues(body: Body, outer: Node, inner: Node) -> bool:
    """Whether a sum goes on, with elements of the same kind."""
    types: list[Type] = [body.types[node.results[0]] for node in (outer, inner)]
    return outer.op == "add" and types[0].dtype == types[1].dtype


def _sum(body: Body, terms: Sequence[str]) -> str:
    total = terms[0]
    for term in terms[1:]:
        total = body.add("add", total, term)
    return total
