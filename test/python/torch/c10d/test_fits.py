"""Tensors that do not match; four ranks on the CPU, or CHECK_RANKS of them."""

from __future__ import annotations

import fits_checks
import pytest
from harness import World


def test_splits_that_differ_are_named_on_every_rank(world: World) -> None:
    for said in world.run(fits_checks.splits):
        for text in said:
            assert "rank 0 sends 3 elements to rank 1, which expects 2" in text, said


def test_lists_that_differ_are_named_on_every_rank(world: World) -> None:
    others = [3, 2] + [1] * (world.size - 2)
    first = {2: [3, 1]}.get(world.size, [3, 2, 2] + others[3:])
    for said in world.run(fits_checks.lists):
        for text in said:
            assert f"rank 0 has a list of tensors of {first} elements, rank 1 of {others}" in text, said


def test_arguments(world: World) -> None:
    world.run(fits_checks.arguments)


@pytest.mark.parametrize(("wrong", "receives"), [("size", "2 x float32"), ("type", "4 x int32")])
def test_transfers_that_differ_are_named_on_both_sides(world: World, wrong: str, receives: str) -> None:
    for text in world.run(fits_checks.transfers, wrong=wrong, timeout=30)[:2]:
        assert f"rank 0 sends 4 x float32 to rank 1, which receives {receives} (tag 3" in text, text
