"""Every message that a wrong graph can give, word for word.

``graph/<case>.txt`` is a graph, a line ``---``, and the message. Run with ``--update-golden`` to rewrite the messages.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from dovetail.base.errors import DovetailError
from dovetail.ir.graph.parse import parse
from dovetail.ir.graph.verify import verify
from dovetail.ops.table import OPERATORS

CASES = sorted((Path(__file__).parent / "graph").glob("*.txt"))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_wrong_graph_is_refused_with_this_message(path: Path, update_golden: bool) -> None:
    text, expected = path.read_text().split("\n---\n")
    with pytest.raises(DovetailError) as caught:
        verify(parse(text), OPERATORS)
    found = f"{type(caught.value).__name__}: {caught.value}"
    if update_golden:
        path.write_text(f"{text}\n---\n{found}\n")
    else:
        assert found == expected.rstrip("\n")
