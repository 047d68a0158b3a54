"""Every message about a faulty rule, as golden text: a rule file, then what is said about it."""

from pathlib import Path

import pytest

from dovetail.base.errors import RewriteError, RuleError
from dovetail.base.limits import RewriteLimits
from dovetail.ir.functional.text import parse_definition
from dovetail.rewrite.strategy import derive, exhaust
from dovetail.rewrite.user_rules import read_rules

RULES = sorted((Path(__file__).parent / "rules").glob("*.txt"))
RUNS = sorted((Path(__file__).parent / "rewriting").glob("*.txt"))


@pytest.mark.parametrize("case", RULES, ids=lambda case: case.stem)
def test_a_faulty_rule_is_explained(
    case: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, update_golden: bool
) -> None:
    source, expected = case.read_text().split("----\n")
    (tmp_path / "mine.toml").write_text(source)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RuleError) as caught:
        read_rules("mine.toml")
    _compare(case, source, expected, f"{caught.value}\n", update_golden)


@pytest.mark.parametrize("case", RUNS, ids=lambda case: case.stem)
def test_rewriting_that_goes_wrong_is_explained(case: Path, tmp_path: Path, update_golden: bool) -> None:
    source, expected = case.read_text().split("----\n")
    rules, text = source.split("====\n")
    (tmp_path / "mine.toml").write_text(rules)
    strategy = exhaust(read_rules(tmp_path / "mine.toml"))
    with pytest.raises(RewriteError) as caught:
        derive(parse_definition(text), strategy, RewriteLimits(steps=40, nodes=100)).finished()
    _compare(case, source, expected, f"{caught.value}\n", update_golden)


def test_there_are_cases() -> None:
    assert len(RULES) > 25
    assert len(RUNS) > 3


def _compare(case: Path, source: str, expected: str, message: str, update_golden: bool) -> None:
    if update_golden:
        case.write_text(f"{source}----\n{message}")
        return
    assert message == expected
