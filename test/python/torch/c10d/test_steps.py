"""Calls of several steps in which ranks disagree; ranks on the CPU."""

from __future__ import annotations

import steps_checks
from harness import World


def test_sizes_are_named_as_sizes(world: World) -> None:
    """Not as the numbers that they are, which another call may have as many of."""
    ranks = world.size
    for exchange, gather in world.run(steps_checks.sizes):
        for said, elements in ((exchange, 2 * ranks), (gather, ranks)):
            assert f"all_gather of {elements} sizes" in said and f"all_gather of {elements} i64" in said, said
            assert "can still be used" in said, said


def test_an_error_in_the_second_step_names_the_call(world: World) -> None:
    for said in world.run(steps_checks.second_step):
        assert "call number 2 differs between ranks" in said, said
        assert "all_to_all of 1 x " in said and "can still be used" in said, said
        for name in ("f32", "i32"):
            assert f"all_to_all of {world.size} {name} for each rank" in said, said


def test_tensors_in_one_array_have_the_same_sizes_on_all_ranks(world: World) -> None:
    for gather, scatter, reduce in world.run(steps_checks.tensors_in_one_array):
        assert "f32 in tensors of [1] elements" in gather and "f32 in tensors of [2] elements" in gather, gather
        for said in (scatter, reduce):
            assert "in tensors of [2, 3] elements" in said and "in tensors of [3, 2] elements" in said, said
            assert "can still be used" in said, said


def test_all_ranks_learn_of_a_rank_without_elements(world: World) -> None:
    """Nobody waits for it until the time is up."""
    for told in world.run(steps_checks.nothing_on_one_rank):
        assert told and all("ranks disagree" in said and "of 0 f32" in said for said in told), told
