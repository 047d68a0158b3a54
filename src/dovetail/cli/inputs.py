"""Arrays that go into a kernel and come out of it: made up, or from and to .npy files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dovetail.base.errors import CallError
from dovetail.ir.bind import bind_sizes
from dovetail.ir.fill import fill
from dovetail.ir.program import Program

Array = npt.NDArray[np.generic]


def gather(
    program: Program, files: Mapping[str, str], sizes: Mapping[str, int], seed: int
) -> tuple[dict[str, Array], dict[str, int]]:
    """All inputs, those without a file filled with small whole numbers; and the value of every size."""
    known = [tensor.name for tensor in program.inputs]
    for name in files:
        if name not in known:
            raise CallError(f"'{name}' is not an input of the program", why=f"its inputs: {', '.join(known)}")
    given = {name: _load(program, name, path) for name, path in files.items()}
    bound = bind(program, {name: array.shape for name, array in given.items()}, sizes)
    made = fill(program, seed, bound) if len(given) < len(known) else {}
    return {name: given[name] if name in given else made[name] for name in known}, bound


def bind(program: Program, shapes: Mapping[str, tuple[int, ...]], sizes: Mapping[str, int]) -> dict[str, int]:
    """The value of every size; one that nothing tells is an error that says how to give it."""
    told = {t.name for t in program.inputs if t.name in shapes}
    reachable = {n for t in program.inputs if t.name in told for extent in t.shape for n in extent.names()}
    for size in program.sizes:
        if size.name not in sizes and size.name not in reachable:
            hint = f"--size {size.name}={size.high if size.high < 1000 else max(size.low, 100)}"
            raise CallError(
                f"the value of size '{size.name}' is not given", why=f"the program declares {size}", hint=hint
            )
    return bind_sizes(program, shapes, sizes)


def save(path: str, array: Array) -> None:
    try:
        np.save(path, array, allow_pickle=False)
    except OSError as problem:
        raise CallError(f"'{path}' cannot be written", why=problem.strerror) from None


def _load(program: Program, name: str, path: str) -> Array:
    try:
        array = np.load(Path(path), allow_pickle=False)
    except OSError as problem:
        raise CallError(f"input '{name}': '{path}' cannot be read", why=problem.strerror) from None
    except (ValueError, EOFError) as problem:
        raise CallError(f"input '{name}': '{path}' is not a .npy file", why=str(problem)) from None
    if not isinstance(array, np.ndarray):
        raise CallError(f"input '{name}': '{path}' holds several arrays", hint="save one array with numpy.save")
    wanted = program.tensor(name).dtype.numpy
    raw = array.dtype.kind == "V" and array.dtype.names is None and array.dtype.itemsize == wanted.itemsize
    return array.view(wanted) if raw else array  # .npy has no name for bf16: it is saved as plain bytes
