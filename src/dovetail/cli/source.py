"""PROGRAM on the command line -> a verified program, or a term that is well typed."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from dovetail.base.errors import ProgramError
from dovetail.base.limits import DEFAULT_LIMITS

if TYPE_CHECKING:
    from dovetail.ir.functional.term import Definition
    from dovetail.ir.program import Program

STDIN = "-"
_DEFINITION = re.compile(r"(?:\s+|#[^\n]*|size\s+\w+\s+in\s+\d+\s*\.\.\s*\d+)*def\b")
"""How the text of a definition begins."""


def read_program(path: str | None, text: str | None) -> Program:
    """The program in the file ``path`` ("-": standard input), or in ``text``; of a term, the one it stands for."""
    return read_given(path, text)[0]


def read_given(path: str | None, text: str | None) -> tuple[Program, Definition | None]:
    """The program, and the definition that it stands for where one was given."""
    from dovetail.ir.functional.term import Definition

    source = read_source(path, text)
    return (_normalised(source), source) if isinstance(source, Definition) else (source, None)


def read_source(path: str | None, text: str | None) -> Program | Definition:
    """The program, or the one definition of a term (``def f(x: f32[8]) -> y = ...``), in a file or in ``text``."""
    from dovetail.pipeline import definition, program

    found, name = _text(path, text)
    return definition(found, name) if _DEFINITION.match(found) else program(found, name)


def _normalised(definition: Definition) -> Program:
    from dovetail.ir.functional.normalise import normalise

    return normalise(definition)


def stem(path: str | None) -> str:
    """The name that files made from this program start with."""
    return "kernel" if path is None or path == STDIN else Path(path).stem


def _text(path: str | None, text: str | None) -> tuple[str, str]:
    """The text, and the name that it goes by in messages."""
    if (path is None) == (text is None):
        what = "no program is given" if path is None else "two programs are given: a file and --text"
        raise ProgramError(what, hint="a file, - for standard input, or --text 'in x: f32[8] ...'")
    if text is not None:
        return text, "--text"
    assert path is not None
    return _decoded(_bytes(path), path), "standard input" if path == STDIN else path


def _bytes(path: str) -> bytes:
    most = DEFAULT_LIMITS.text_bytes + 1  # enough to see that it is too long
    if path == STDIN:
        return sys.stdin.buffer.read(most)
    try:
        with Path(path).open("rb") as file:
            return file.read(most)
    except OSError as problem:
        hint = "a file, - for standard input, or --text 'in x: f32[8] ...'"
        raise ProgramError(f"the program '{path}' cannot be read", why=problem.strerror, hint=hint) from None


def _decoded(data: bytes, path: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as problem:
        raise ProgramError(f"the program '{path}' is not text", why=f"byte {problem.start} is not UTF-8") from None
