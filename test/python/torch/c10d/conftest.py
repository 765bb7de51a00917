"""A world of four ranks for each implementation of the backend."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from harness import World


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--backend", default="cpp", help="cpp or python")


@pytest.fixture(scope="session")
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    made = World(int(os.environ.get("CHECK_RANKS", "4")), request.config.getoption("--backend"))
    yield made
    made.stop()
