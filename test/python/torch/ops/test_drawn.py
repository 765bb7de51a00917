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


def test_shapes_of_one_size(pair: World) -> None:
    """Numbers of elements do not show them; the group goes on."""
    shapes = {"all_gather_matmul": ("4 x 6", "2 x 12"), "all_to_all_matmul": ("4 x 6", "2 x 12")}
    for said in pair.run(drawn_checks.shapes_differ, "commsir"):
        for op, texts in said.items():
            wanted = [f"{op} of {shape} float32" for shape in shapes.get(op, ("4 x 5", "2 x 10"))]
            assert all("ranks disagree" in text and all(one in text for one in wanted) for text in texts), said


def test_sizes_that_may_differ(pair: World) -> None:
    for rank, shapes in enumerate(pair.run(drawn_checks.sizes_may_differ, "commsir")):
        assert shapes == {
            "all_gather_matmul": [8, 4 + rank],
            "all_to_all_matmul": [4, 4 + rank],
            "matmul_all_reduce": [4, 5],
            "matmul_reduce_scatter": [2, 5],
            "matmul_all_to_all": [4, 5],
        }
