"""Options shared by all tests; no test leaves anything in, or takes anything from, the user's cache."""

import os

import pytest
from hypothesis import settings

os.environ["DOVETAIL_CACHE"] = "off"
settings.register_profile("same every time", derandomize=True, database=None, deadline=None)
settings.load_profile("same every time")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite golden files with what the code says now")


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-golden"))
