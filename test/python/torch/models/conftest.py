"""Worlds of ranks, as for the tests of the ops."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "c10d"))

from harness import World  # noqa: E402


@pytest.fixture(scope="session")
def pair() -> Iterator[World]:
    made = World(2, ("torch._dynamo", "torch._inductor.compile_fx"))
    yield made
    made.stop()
