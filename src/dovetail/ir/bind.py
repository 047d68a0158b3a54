"""A call's arrays -> the values of its run-time sizes, with every shape checked.

Sizes come from the caller, or from the shapes of the arrays: an extent with one unknown size is solved for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from dovetail.base.dtypes import from_numpy
from dovetail.base.errors import CallError
from dovetail.ir.index import Index, constant
from dovetail.ir.program import Loop, Program, Tensor

Array = npt.NDArray[np.generic]


def bind_arrays(
    program: Program, arrays: Mapping[str, Array], sizes: Mapping[str, int] | None = None
) -> dict[str, int]:
    """The value of every size, once ``arrays`` are known to be the program's inputs: names, dtypes, shapes."""
    wanted = [t.name for t in program.inputs]
    for name in arrays:
        if name not in wanted:
            raise CallError(f"'{name}' is not an input of the program", why=f"its inputs: {', '.join(wanted)}")
    for tensor in program.inputs:
        if tensor.name not in arrays:
            raise CallError(f"input '{tensor.name}' is missing", why=f"the program declares {tensor}")
        found = from_numpy(arrays[tensor.name].dtype)
        if found != tensor.dtype:
            given = found or arrays[tensor.name].dtype
            raise CallError(f"'{tensor.name}' has dtype {given}, the program wants {tensor.dtype}", why=str(tensor))
    return bind_sizes(program, {name: array.shape for name, array in arrays.items()}, sizes)


def with_sizes(program: Program, sizes: Mapping[str, int]) -> Program:
    """``program`` with its run-time sizes replaced by their values."""
    if not program.sizes:
        return program
    values = {s.name: constant(sizes[s.name]) for s in program.sizes}

    def fixed(loops: tuple[Loop, ...]) -> tuple[Loop, ...]:
        return tuple(Loop(x.name, x.extent.substitute(values)) for x in loops)

    tensors = tuple(replace(t, shape=tuple(e.substitute(values) for e in t.shape)) for t in program.tensors)
    statements = tuple(replace(s.substitute(values, fixed(s.loops)), seq=fixed(s.seq)) for s in program.statements)
    return Program(tensors, statements)


def bind_sizes(
    program: Program, shapes: Mapping[str, tuple[int, ...]], sizes: Mapping[str, int] | None = None
) -> dict[str, int]:
    """The value of every size, given or solved from ``shapes``; shapes and ranges are checked against it."""
    bound = dict(sizes or {})
    known = {s.name for s in program.sizes}
    for name in bound:
        if name not in known:
            raise CallError(f"the program has no size '{name}'", why=f"its sizes: {', '.join(sorted(known))}")
    for tensor in program.inputs:
        if tensor.name in shapes and len(shapes[tensor.name]) != len(tensor.shape):
            rank, want = len(shapes[tensor.name]), len(tensor.shape)
            raise CallError(f"'{tensor.name}' has {rank} dimensions, the program wants {want}", why=str(tensor))
    _solve(program, shapes, bound)
    for size in program.sizes:
        if size.name not in bound:
            raise CallError(f"the value of size '{size.name}' is unknown", hint=f"sizes={{'{size.name}': ...}}")
        if not size.low <= bound[size.name] <= size.high:
            why = f"the program declares {size}"
            raise CallError(f"size {size.name} = {bound[size.name]} is outside {size.low}..{size.high}", why=why)
    for tensor in program.inputs:
        if tensor.name in shapes:
            _check_shape(tensor, shapes[tensor.name], bound)
    return bound


def extents(tensor: Tensor, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """The tensor's shape in numbers."""
    return tuple(extent.evaluate(sizes) for extent in tensor.shape)


def _solve(program: Program, shapes: Mapping[str, tuple[int, ...]], bound: dict[str, int]) -> None:
    """Find unknown sizes, one from each extent that has a single one left."""
    dims = [(e, n) for t in program.inputs if t.name in shapes for e, n in zip(t.shape, shapes[t.name], strict=True)]
    progress = True
    while progress:
        progress = False
        for extent, found in dims:
            unknown = extent.names() - bound.keys()
            if len(unknown) == 1 and extent.is_affine:
                (name,) = unknown
                bound[name] = _root(extent, name, found, bound)
                progress = True


def _root(extent: Index, name: str, found: int, bound: Mapping[str, int]) -> int:
    """The value of ``name`` for which ``extent`` is ``found``; rounded down, the shape check tells if there is none."""
    return (found - extent.evaluate({**bound, name: 0})) // extent.coefficient(name)


def _check_shape(tensor: Tensor, shape: tuple[int, ...], sizes: Mapping[str, int]) -> None:
    for dim, (want, found) in enumerate(zip(extents(tensor, sizes), shape, strict=True)):
        if want != found:
            named = sorted(tensor.shape[dim].names())
            given = ", where " + ", ".join(f"{n} = {sizes[n]}" for n in named) if named else ""
            raise CallError(
                f"dimension {dim} of '{tensor.name}' is {found}, the program wants {want}", why=f"{tensor}{given}"
            )
