"""The option of pytest that says where the tensors of checks are, and the mark of tests that it leaves out."""

from __future__ import annotations

import pytest

__all__ = ["pytest_addoption", "pytest_configure", "pytest_runtest_setup"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--tensors", default="cpu", help="cpu or cuda: where tensors are that say nothing")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "cpu_alone(why): what cannot be tried with tensors on GPUs")


def pytest_runtest_setup(item: pytest.Item) -> None:
    marker = item.get_closest_marker("cpu_alone")
    if marker is not None and item.config.getoption("--tensors") == "cuda":
        pytest.skip(marker.args[0])
