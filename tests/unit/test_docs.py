"""What the documents say is true: their programs verify, their Python runs, their commands do what they show.

A block whose first line is a comment with a file name is that file. After ``$`` stands a command; ``...`` stands for
lines that were left out; a block that shows ``error:`` shows all of it.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import dovetail
from tests.unit.cli.command import dovetail as command

ROOT = Path(__file__).parents[2]
DOCUMENTS = ("README.md", "docs/architecture.md", *(f"docs/how_to/{p.name}" for p in ROOT.glob("docs/how_to/*.md")))
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE_NAME = re.compile(r"(?:#|/\*) (\w+\.\w+)")


@pytest.mark.parametrize("name", sorted(DOCUMENTS))
def test_every_block_of_a_document_is_true(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = FENCE.findall((ROOT / name).read_text(encoding="utf-8"))
    shutil.copytree(ROOT / "tests/targets", tmp_path / "tests/targets")
    for language, text in blocks:
        titled = FILE_NAME.match(text)
        if titled:
            (tmp_path / titled[1]).write_text(text, encoding="utf-8")
        if language == "dovetail":
            dovetail.program(text)
        elif language == "python":
            subprocess.run([sys.executable, "-c", text], check=True, capture_output=True)
        elif language == "console":
            for line, shown in _commands(text):
                _run(line, shown)


def test_every_link_between_documents_leads_somewhere() -> None:
    for name in (*DOCUMENTS, "CONTRIBUTING.md", "CHANGELOG.md", "benchmarks/README.md"):
        for link in re.findall(r"\]\((?!http)([^)#]+)", (ROOT / name).read_text(encoding="utf-8")):
            assert (ROOT / name).parent.joinpath(link).exists(), f"{name}: {link}"


def _commands(text: str) -> Iterator[tuple[str, str]]:
    """(command, what is shown below it)."""
    for part in text.split("$ ", 1)[1].split("\n$ "):
        line, _, shown = part.partition("\n")
        yield line, shown


def _run(line: str, shown: str) -> None:
    if not line.startswith("dovetail "):
        if shutil.which("cc"):
            done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=True)
            assert done.stdout == shown
        return
    found = re.findall(r'"([^"]*)"|(\S+)', line)
    result = command(*(quoted or bare for quoted, bare in found[1:]))
    if shown.startswith("error:"):
        assert (result.code, result.err) == (2, shown)
        return
    assert result.code == 0, result.err
    for counted in re.findall(r"^(?:all \d+ .*|\d+ fits of .*|check: .*)$", shown, re.MULTILINE):
        assert counted in result.out or ".toml" not in line, counted  # shipped targets grow, files do not
