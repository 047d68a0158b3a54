"""Every message that a wrong term can give, word for word.

``functional/<case>.txt`` is a definition, a line ``---``, and the message. Run with ``--update-golden`` to rewrite the
messages.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from dovetail.base.errors import DovetailError
from dovetail.ir.functional.infer import check
from dovetail.ir.functional.text import parse_definition

CASES = sorted((Path(__file__).parent / "functional").glob("*.txt"))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_wrong_term_is_refused_with_this_message(path: Path, update_golden: bool) -> None:
    text, expected = path.read_text().split("\n---\n")
    with pytest.raises(DovetailError) as caught:
        check(parse_definition(text))
    found = f"{type(caught.value).__name__}: {caught.value}\n"
    if update_golden:
        path.write_text(f"{text}\n---\n{found}")
        return
    assert found == expected
