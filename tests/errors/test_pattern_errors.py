"""Every message about a faulty pattern, as golden text: a file of patterns (and a graph), then what is said of it."""

from pathlib import Path

import pytest

from dovetail.base.errors import PatternError
from dovetail.ir.graph.bound import BoundGraph
from dovetail.ir.graph.parse import parse
from dovetail.rewrite.patterns.apply import map_patterns
from dovetail.rewrite.patterns.file import read_patterns

PATTERNS = sorted((Path(__file__).parent / "patterns").glob("*.txt"))
RUNS = sorted((Path(__file__).parent / "pattern_runs").glob("*.txt"))


@pytest.mark.parametrize("case", PATTERNS, ids=lambda case: case.stem)
def test_a_faulty_pattern_is_explained(
    case: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, update_golden: bool
) -> None:
    source, expected = case.read_text().split("----\n")
    (tmp_path / "mine.toml").write_text(source)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PatternError) as caught:
        read_patterns("mine.toml")
    _compare(case, source, expected, f"{caught.value}\n", update_golden)


@pytest.mark.parametrize("case", RUNS, ids=lambda case: case.stem)
def test_a_pattern_that_does_not_fit_a_graph_is_explained(case: Path, tmp_path: Path, update_golden: bool) -> None:
    source, expected = case.read_text().split("----\n")
    patterns, graph = source.split("====\n")
    (tmp_path / "mine.toml").write_text(patterns)
    with pytest.raises(PatternError) as caught:
        map_patterns(BoundGraph(parse(graph), {}), read_patterns(tmp_path / "mine.toml"))
    _compare(case, source, expected, f"{caught.value}\n", update_golden)


def test_there_are_cases() -> None:
    assert len(PATTERNS) > 30
    assert len(RUNS) > 4


def _compare(case: Path, source: str, expected: str, message: str, update_golden: bool) -> None:
    if update_golden:
        case.write_text(f"{source}----\n{message}")
        return
    assert message == expected
