"""Why instructions do not fit: a target, a program, a line of dashes, and what a person is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from dovetail.base.limits import Limits
from dovetail.ir.parse import parse
from dovetail.mapping.find import find_mappings
from dovetail.targets.load import load_target

CASES = sorted((Path(__file__).parent / "mapping").glob("*.txt"))
TARGETS = Path(__file__).parents[1] / "targets"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_an_instruction_that_does_not_fit_is_explained(case: Path, update_golden: bool) -> None:
    source, expected = case.read_text().split("----\n")
    first, text = source.split("\n", 1)
    _, name, *rest = first.split()
    limits = Limits(mapping_depth=int(rest[1])) if rest else Limits()
    result = find_mappings(parse(text), load_target(str(TARGETS / f"{name}.toml")), limits)
    said = "".join(f"{misfit}\n  {misfit.program_line}\n  {misfit.target_field}\n" for misfit in result.misfits)
    said = said.replace(f"{TARGETS}/", "")
    if update_golden:
        case.write_text(f"{source}----\n{said}")
        return
    assert said == expected


def test_there_are_cases() -> None:
    assert len(CASES) >= 9
