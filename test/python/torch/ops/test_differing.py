"""torch.compile on ranks that compile different things: each gives the same result as without the pass."""

from __future__ import annotations

from typing import Any

import differing_checks as checks
import pytest
from harness import World

#: Of each backend that process groups may have.
_BACKENDS = ["commsir", "gloo"]


def _skip_what_leaves(world: World, name: str) -> None:
    """Of which one rank comes back to the kernel of before."""
    if world.tensors == "cuda" and (name.endswith("_again") or name == "rows"):
        pytest.skip("on GPUs a rank cannot leave what all have agreed on")


@pytest.mark.parametrize("backend", _BACKENDS)
@pytest.mark.parametrize("name", list(checks.DIFFERING))
def test_two_ranks(pair: World, name: str, backend: str) -> None:
    _skip_what_leaves(pair, name)
    pair.run(checks.differ, backend, names=[name], timeout=30)


@pytest.mark.parametrize(
    "name", ["constant", "one_of_several", "in_turn", "joined", "joined_again", "sent_again", "padded"]
)
def test_four_ranks(world: World, name: str) -> None:
    _skip_what_leaves(world, name)
    world.run(checks.differ, "gloo", names=[name], timeout=60)


@pytest.mark.cpu_alone("on GPUs a rank cannot leave what all have agreed on")
def test_one_after_the_other(pair: World) -> None:
    """In one group, after ranks have agreed on some of it."""
    pair.run(
        checks.differ,
        "gloo",
        names=["compiled_again", "bias", "joined_again", "scattered_constant", "saved", "rows"],
        timeout=60,
    )


@pytest.mark.parametrize("backend", _BACKENDS)
def test_uneven_shards(world: World, backend: str) -> None:
    said = world.run(checks.uneven_shards, backend, timeout=30)
    assert "not fused" in said[3][0] and ": fused with" in said[0][0], said


@pytest.mark.parametrize("backend", _BACKENDS)
def test_one_rank_does_not_compile(pair: World, backend: str) -> None:
    assert pair.run(checks.not_compiled, backend, timeout=30) == [0, 0]


@pytest.mark.parametrize("size", ["pair", "world"])
def test_kernels_where_all_agree(request: Any, size: str) -> None:
    for ran in request.getfixturevalue(size).run(checks.agree, "gloo", timeout=30):
        assert ran == [1, 1, 1]


def test_one_rank_has_it_in_its_cache(pair: World) -> None:
    for ran in pair.run(checks.cached_on_some, "gloo", timeout=30):
        assert ran == [1] * 6


@pytest.mark.parametrize(
    ("backend", "how"),
    [("commsir", "is not compiled"), ("commsir", "waits in the program"), ("gloo", "is not compiled")],
)
def test_one_rank_leaves_compiled_code(pair: World, backend: str, how: str) -> None:
    if pair.tensors == "cuda":
        pytest.skip("on GPUs calls end at the timeout")
    said = pair.run(checks.left_compiled_code, backend, how=how, timeout=8)
    step, seconds, text = said[0]
    assert step == 5 and seconds < 5, said
    assert "rank 0 runs the kernel of an all_reduce of [8, 16]" in text and "but rank 1 runs collective" in text, said
    assert said[1][0] == 5, said


def test_late_ranks(pair: World) -> None:
    assert all(ran >= 10 for ran in pair.run(checks.waited_for, "gloo", timeout=60))
