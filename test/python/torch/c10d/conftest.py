"""A world of CHECK_RANKS ranks, or four."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from harness import World


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--tensors", default="cpu", help="cpu or cuda: where tensors are that say nothing")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "cpu_alone(why): what cannot be tried with tensors on GPUs")


def pytest_runtest_setup(item: pytest.Item) -> None:
    marker = item.get_closest_marker("cpu_alone")
    if marker is not None and item.config.getoption("--tensors") == "cuda":
        pytest.skip(marker.args[0])


@pytest.fixture(scope="session")
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    option = request.config.getoption
    made = World(int(os.environ.get("CHECK_RANKS", "4")), tensors=option("--tensors"))
    yield made
    made.stop()
