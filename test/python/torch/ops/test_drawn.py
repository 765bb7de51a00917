"""Random calls of matmuls with collectives against float64. `COMMSIR_DRAWN=COUNT` draws so many."""

from __future__ import annotations

import os
from collections.abc import Iterator

import drawn_checks
import pytest
from conftest import world_of
from harness import World

_COUNT = int(os.environ.get("COMMSIR_DRAWN", "100"))


@pytest.fixture(scope="module")
def five(request: pytest.FixtureRequest) -> Iterator[World]:
    yield from world_of(request, 5)


@pytest.mark.cpu_alone("torch multiplies neither whole numbers nor float32 with scales there")
@pytest.mark.parametrize(("backend", "first", "count"), [("commsir", 91, _COUNT), ("gloo", 1001, _COUNT // 3)])
def test_drawn_calls(five: World, backend: str, first: int, count: int) -> None:
    for said in five.run(drawn_checks.runs, backend, first=first, count=count, patience=3600):
        assert not said, "\n".join(said)


@pytest.mark.cpu_alone("GPUs compare no calls once ranks have agreed on them")
@pytest.mark.parametrize("repeated", [False, True])
@pytest.mark.parametrize("how", list(drawn_checks.DISAGREEMENTS))
def test_ranks_disagree(pair: World, how: str, repeated: bool) -> None:
    """Every rank that calls hears of it."""
    mine, odd = pair.run(drawn_checks.disagrees, "commsir", how=how, repeated=repeated)
    if how in ("no call", "a call that is refused"):
        assert all("rank 1" in said for said in mine.values()), mine
        assert all("the first of the second" in said if said else how == "no call" for said in odd.values()), odd
        return
    for said in (mine, odd):
        assert all("ranks disagree" in one and "all ranks must make the same calls" in one for one in said.values()), (
            said
        )
