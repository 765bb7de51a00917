"""Random calls of matmuls with collectives against float64. `COMMSIR_DRAWN=COUNT` draws so many."""

from __future__ import annotations

import os
from collections.abc import Iterator

import drawn_checks
import pytest
from conftest import world_of
from harness import World

_COUNT = int(os.environ.get("COMMSIR_DRAWN", "200"))


@pytest.fixture(scope="module")
def five(request: pytest.FixtureRequest) -> Iterator[World]:
    yield from world_of(request, 5)


@pytest.mark.cpu_alone("torch multiplies neither whole numbers nor float32 with scales there")
@pytest.mark.parametrize(("backend", "first", "count"), [("commsir", 1, _COUNT), ("gloo", 1001, _COUNT // 4)])
def test_drawn_calls(five: World, backend: str, first: int, count: int) -> None:
    for said in five.run(drawn_checks.runs, backend, first=first, count=count, patience=3600):
        assert not said, "\n".join(said)
