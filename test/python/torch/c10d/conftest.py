"""A world of CHECK_RANKS ranks, or four."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from harness import World
from tensors_option import pytest_addoption, pytest_configure, pytest_runtest_setup

__all__ = ["pytest_addoption", "pytest_configure", "pytest_runtest_setup", "world"]


@pytest.fixture(scope="session")
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    option = request.config.getoption
    made = World(int(os.environ.get("CHECK_RANKS", "4")), tensors=option("--tensors"))
    yield made
    made.stop()
