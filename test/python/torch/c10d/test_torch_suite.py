"""PyTorch's own distributed tests against the backend, on the CPU: the tests that Gloo runs, and all-to-all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch_suite
from harness import World

RANKS = 4
_outcomes: dict[str, str] = {}


@pytest.fixture(scope="module")
def ranks() -> Iterator[World]:
    made = World(RANKS)
    yield made
    made.stop()


@pytest.mark.parametrize("test", torch_suite.tests(RANKS))
def test_suite(ranks: World, test: str) -> None:
    results: list[dict[str, Any]] = ranks.run(torch_suite.run, backend="", patience=150, test=test)
    for result in results:
        for call in result["calls"]:
            assert call["path"] == "commsir" or torch_suite.DELEGATED.get(call["op"]) == call["reason"], call
    _outcomes[test] = results[0]["outcome"]
    if all(result["outcome"] == "skipped" for result in results):
        pytest.skip(results[0]["reason"])


def test_little_is_left_out() -> None:
    assert len(torch_suite.NOT_OURS) <= 5
    if len(_outcomes) > 200:
        assert list(_outcomes.values()).count("passed") >= 95, _outcomes
