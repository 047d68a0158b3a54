"""Runs the command line inside the test's own process."""

import json
from dataclasses import dataclass
from pathlib import Path

from typer.testing import CliRunner

from dovetail.cli import app

MATMUL = """\
in a: f32[13,9]  in b: f32[9,11]  out c: f32[13,11]
for i<13, j<11, k<9: c[i,j] += a[i,k] * b[k,j]
"""
ROWS = """\
size m in 1..40
in a: i32[m,5]  out c: i32[m]
for i<m, j<5: c[i] += a[i,j]
"""


@dataclass(frozen=True, slots=True)
class Done:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, object]:
        found = json.loads(self.out)
        assert isinstance(found, dict)
        return found


def dovetail(*arguments: str | Path, stdin: str | bytes | None = None) -> Done:
    """``dovetail arguments...``; an error that would show a traceback is raised here."""
    result = CliRunner().invoke(app, [str(a) for a in arguments], input=stdin, catch_exceptions=False)
    return Done(result.exit_code, result.stdout, result.stderr)
