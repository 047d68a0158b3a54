"""Every message a person who calls a kernel can meet: the program, the call, the message, with dashes between.

A call is one array a line, in the order of the kernel's arguments: ``x: f32[2, 3] = 7`` is an array of sevens,
``out y: f32[4] backwards`` an output that runs backwards in memory, ``n = 5`` a size, ``x: list`` no array at all.
Where it runs, it gives what the evaluator gives.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import dovetail
from dovetail.base.dtypes import DTYPES
from dovetail.base.errors import DovetailError
from dovetail.ir.evaluate import evaluate
from dovetail.ir.fill import fill

Array = npt.NDArray[np.generic]
CASES = sorted((Path(__file__).parent / "kernel").glob("*.txt"))
ARRAY = re.compile(r"(out )?(\w+): (\w+)(?:\[([\d, ]*)\])?(?: = (-?\d+))?(?: ([\w ]+))?")


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_wrong_call_of_a_kernel_is_refused_with_this_message(path: Path, update_golden: bool) -> None:
    text, call, expected = path.read_text().split("\n---\n")
    kernel = dovetail.compile(dovetail.program(text), threads=1)
    arrays, outputs, sizes = read_call(call)
    with pytest.raises(DovetailError) as caught:
        kernel(*arrays, out=outputs or None, sizes=sizes or None)
    found = re.sub(r"0x[0-9a-f]+", "0x...", f"{type(caught.value).__name__}: {caught.value}")
    if update_golden:
        path.write_text("\n---\n".join([text, call, found]) + "\n")
        return
    assert found == expected.rstrip("\n")


def test_there_are_cases() -> None:
    assert len(CASES) > 15


@pytest.mark.parametrize("layout", ["plain", "backwards", "strided", "transposed", "misaligned"])
def test_inputs_in_any_order_and_place_work(layout: str) -> None:
    program = dovetail.program("in x: f32[4,4] out y: f32[4,4]\nfor i<4, j<4: y[i,j] = 2 * x[i,j]")
    x = laid_out(np.arange(16, dtype=np.float32).reshape(4, 4), layout)
    np.testing.assert_array_equal(dovetail.compile(program, threads=1)(x), 2 * x)


@pytest.mark.parametrize(
    "text",
    [
        "in x: f32[0,4] out y: f32[0,4]\nfor i<0, j<4: y[i,j] = x[i,j]",
        "in x: f32[3,0] out y: f32[3]\nfor i<3, k<0: y[i] += x[i,k]",
        "in x: f32[3,0] inout z: f32[3]\nfor i<3, k<0: z[i] max= x[i,k]",
        "in a: f32[2,0] in b: f32[0,3] temp t: f32[2,3] out c: f32[2,3]\n"
        "for i<2, j<3, k<0: t[i,j] += a[i,k] * b[k,j]\nfor i<2, j<3: c[i,j] = t[i,j] + 1",
        "size n in 0..9\nin x: f32[n,4] out y: f32[4]\nfor i<4, k<n: y[i] += x[k,i]",
    ],
)
def test_dimensions_without_elements_work(text: str) -> None:
    program = dovetail.program(text)
    sizes = {"n": 0} if program.sizes else {}
    arrays = fill(program, 1, sizes)
    found = dovetail.compile(program, threads=1)(*arrays.values(), sizes=sizes or None)
    expected = evaluate(program, arrays, sizes)
    np.testing.assert_array_equal(found, expected[program.outputs[0].name])


def read_call(text: str) -> tuple[list[object], list[Array], dict[str, int]]:
    """Inputs, outputs and sizes."""
    arrays: list[object] = []
    outputs: list[Array] = []
    sizes: dict[str, int] = {}
    for line in text.splitlines():
        found = ARRAY.fullmatch(line)
        if found is None:
            name, value = line.split(" = ")
            sizes[name] = int(value)
            continue
        is_output, _, dtype, shape, number, layout = found.groups()
        if dtype == "list":
            arrays.append([1, 2, 3])
            continue
        extents = [int(n) for n in (shape or "").split(",") if n.strip()]
        array = laid_out(np.full(extents, int(number or 0), DTYPES[dtype].numpy), layout or "plain")
        if layout == "shared":
            assert isinstance(arrays[0], np.ndarray)
            array = arrays[0]
        if layout == "same":
            array = outputs[0]
        (outputs if is_output else arrays).append(array)
    return arrays, outputs, sizes


def laid_out(array: Array, layout: str) -> Array:
    """The same numbers in another place or order of memory."""
    if layout == "backwards":
        return np.ascontiguousarray(array[::-1])[::-1]
    if layout == "strided":
        wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
        wide[..., ::2] = array
        return wide[..., ::2]
    if layout == "transposed":
        return np.ascontiguousarray(array.T).T
    if layout == "misaligned":
        memory = np.zeros(array.nbytes + 1, np.uint8)
        moved = memory[1:].view(array.dtype).reshape(array.shape)
        moved[...] = array
        return moved
    if layout == "read only":
        array.flags.writeable = False
    return array
