"""Random models give what the reference evaluator gives: exactly where they are exact."""

from __future__ import annotations

import pytest

from tests.random_models.makers import OPERATORS_USED
from tests.random_models.run import counted

MODELS = 1000
SHARE = 20


@pytest.mark.parametrize("first", range(0, MODELS, SHARE))
def test_compiled_models_agree_with_the_reference(first: int) -> None:
    count = counted(range(first, first + SHARE))
    assert not count.wrong, "\n\n".join(f"model {v.seed}\n{v.text}\n{v.problem}" for v in count.wrong)
    assert count.exact, "nothing was exact: the models prove little"
    assert count.mistrusted < count.outputs / 4


def test_most_operators_take_part() -> None:
    assert len(OPERATORS_USED) >= 60
