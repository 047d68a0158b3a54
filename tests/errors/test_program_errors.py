"""Every message that a wrong program or a wrong call can give, word for word.

``program/<case>.txt`` is a program, a line ``---``, and the message. ``call/<case>.txt`` has the call between them: one
``name: dtype[shape]`` or ``name = value`` a line. Run with ``--update-golden`` to rewrite the messages.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from dovetail.base.dtypes import DTYPES
from dovetail.base.errors import DovetailError
from dovetail.ir.evaluate import evaluate
from dovetail.ir.parse import parse
from dovetail.ir.verify import verify

HERE = Path(__file__).parent
PROGRAMS = sorted((HERE / "program").glob("*.txt"))
CALLS = sorted((HERE / "call").glob("*.txt"))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_wrong_program_is_refused_with_this_message(path: Path, update_golden: bool) -> None:
    text, expected = path.read_text().split("\n---\n")
    with pytest.raises(DovetailError) as caught:
        verify(parse(text))
    check(path, [text], expected, caught.value, update_golden)


@pytest.mark.parametrize("path", CALLS, ids=lambda path: path.stem)
def test_a_wrong_call_is_refused_with_this_message(path: Path, update_golden: bool) -> None:
    text, call, expected = path.read_text().split("\n---\n")
    program = parse(text)
    verify(program)
    arrays, sizes = read_call(call)
    with pytest.raises(DovetailError) as caught:
        evaluate(program, arrays, sizes)
    check(path, [text, call], expected, caught.value, update_golden)


def read_call(text: str) -> tuple[dict[str, np.ndarray[tuple[int, ...], np.dtype[np.generic]]], dict[str, int]]:
    """``x: f32[2, 3] = 7`` is an array of sevens (zeros when no number is given), ``n = 5`` a size."""
    arrays, sizes = {}, {}
    for line in text.splitlines():
        if array := re.fullmatch(r"(\w+): (\w+)\[([\d, ]*)\](?: = (-?\d+))?", line):
            name, dtype, shape, value = array.groups()
            arrays[name] = np.full(
                [int(n) for n in shape.split(",") if n.strip()], int(value or 0), DTYPES[dtype].numpy
            )
        else:
            name, value = line.split(" = ")
            sizes[name] = int(value)
    return arrays, sizes


def check(path: Path, before: list[str], expected: str, error: DovetailError, update: bool) -> None:
    found = f"{type(error).__name__}: {error}"
    if update:
        path.write_text("\n---\n".join([*before, found]) + "\n")
    else:
        assert found == expected.rstrip("\n")
