"""Working sets of any affine nest, by isl: windows (``p + r``), guards, several accesses to one array.

The definition is the one of ``reuse``; on nests that have a closed form both give the same numbers. Sets are counted
as disjoint boxes where they are boxes, and point by point otherwise.
"""

from math import prod

import islpy as isl

from dovetail.poly.reuse import Access, Index, WorkingSet


def isl_working_sets(extents: tuple[int, ...], accesses: tuple[Access, ...], where: str = "") -> tuple[WorkingSet, ...]:
    """Working sets of ``accesses`` over the box of ``extents``, cut down by ``where``.

    ``where`` is isl text over the loops i0, i1, ... (``"i1 <= i0"``). Leaves one working set for each pair of
    accesses to one array and each loop that carries a reuse between them. Uses within one point are no reuse.
    """
    loops = [f"i{n}" for n in range(len(extents))]
    bounds = [f"0 <= {loop} < {extent}" for loop, extent in zip(loops, extents, strict=True)]
    points = isl.Set(f"{{ [{', '.join(loops)}] : {' and '.join([*bounds, *([f'({where})'] if where else [])])} }}")
    distinct = tuple(dict.fromkeys(accesses))
    maps = tuple(_access_map(loops, access).intersect_domain(points) for access in distinct)
    found = []
    for access, reads in zip(distinct, maps, strict=True):
        for other, again in zip(distinct, maps, strict=True):
            if access.array != other.array:
                continue
            same_element = reads.apply_range(again.reverse())
            for loop in range(len(extents)):
                reuse = same_element.intersect(_carried_by(loop, len(extents)))
                pair = _interval_data(points, distinct, maps, reuse, loop)
                if pair is not None:
                    found.append(WorkingSet(access.array, loop, *pair))
    return tuple(found)


def _interval_data(
    points: isl.Set, accesses: tuple[Access, ...], maps: tuple[isl.Map, ...], reuse: isl.Map, loop: int
) -> tuple[int, int] | None:
    """Data up to the nearest and to the farthest use for the first source of ``reuse``; None when there is none."""
    if reuse.is_empty():
        return None
    source = reuse.domain().lexmin()
    targets = source.apply(reuse)
    nearest = targets.lexmin()
    farthest = targets.fix_val(isl.dim_type.set, loop, targets.dim_max_val(loop)).lexmin()
    from_source = points.intersect(source.apply(isl.Map.lex_le(points.get_space())))
    before_last = from_source.intersect(farthest.apply(isl.Map.lex_gt(points.get_space())))
    last = _data(accesses, maps, before_last)
    if nearest.is_equal(farthest):
        return last, last
    to_nearest = from_source.intersect(nearest.apply(isl.Map.lex_ge(points.get_space())))
    return _data(accesses, maps, to_nearest), last


def _data(accesses: tuple[Access, ...], maps: tuple[isl.Map, ...], points: isl.Set) -> int:
    """Distinct elements (times their bytes) that the accesses touch at ``points``."""
    touched: dict[tuple[str, int], isl.Set] = {}
    for access, reads in zip(accesses, maps, strict=True):
        array, elements = (access.array, access.element_bytes), points.apply(reads)
        touched[array] = touched[array].union(elements) if array in touched else elements
    return sum(element_bytes * _count(elements) for (_, element_bytes), elements in touched.items())


def _count(elements: isl.Set) -> int:
    """Number of integer points of a bounded set."""
    pieces = elements.coalesce().make_disjoint().get_basic_sets()
    return sum(_count_piece(isl.Set.from_basic_set(piece)) for piece in pieces)


def _count_piece(piece: isl.Set) -> int:
    dims = range(piece.dim(isl.dim_type.set))
    low = [piece.dim_min_val(dim).to_python() for dim in dims]
    high = [piece.dim_max_val(dim).to_python() for dim in dims]
    box = isl.Set.universe(piece.get_space())
    for dim in dims:
        box = box.lower_bound_val(isl.dim_type.set, dim, low[dim]).upper_bound_val(isl.dim_type.set, dim, high[dim])
    if piece.is_equal(box):
        return prod(last - first + 1 for first, last in zip(low, high, strict=True))
    return int(piece.count_val().to_python())


def _carried_by(loop: int, depth: int) -> isl.Map:
    """{ s -> t : t comes after s, and ``loop`` is the outermost loop in which they differ }."""
    source, target = ([f"{letter}{n}" for n in range(depth)] for letter in "st")
    order = [f"s{n} = t{n}" for n in range(loop)] + [f"s{loop} < t{loop}"]
    return isl.Map(f"{{ [{', '.join(source)}] -> [{', '.join(target)}] : {' and '.join(order)} }}")


def _access_map(loops: list[str], access: Access) -> isl.Map:
    indices = ", ".join(_index_text(loops, index) for index in access.indices)
    return isl.Map(f"{{ [{', '.join(loops)}] -> [{indices}] }}")


def _index_text(loops: list[str], index: Index) -> str:
    terms = [f"{c}*{loop}" for c, loop in zip(index.coefficients, loops, strict=True) if c]
    return " + ".join([*terms, str(index.constant)])
