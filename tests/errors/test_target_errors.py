"""Every message a person who writes a target file can meet: the file, a line of dashes, the message.

A line ``==== name.toml`` starts a second file beside the first, which is ``target.toml``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from dovetail.base.errors import TargetError
from dovetail.targets.load import load_target

CASES = sorted((Path(__file__).parent / "target").glob("*.txt"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_a_faulty_target_file_is_explained(
    case: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, update_golden: bool
) -> None:
    source, expected = case.read_text().split("----\n")
    first, *others = source.split("==== ")
    (tmp_path / "target.toml").write_text(first)
    for other in others:
        name, text = other.split("\n", 1)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TargetError) as caught:
        load_target("target.toml")
    message = f"{caught.value}\n"
    if update_golden:
        case.write_text(f"{source}----\n{message}")
        return
    assert message == expected


def test_there_are_cases() -> None:
    assert len(CASES) > 40
