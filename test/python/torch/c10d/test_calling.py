"""Uses of groups beyond dist's functions; four ranks, or CHECK_RANKS of them."""

from __future__ import annotations

import os
from collections.abc import Callable

import calling_checks
import commsir
import compiled_checks
import pytest
from harness import World

#: Of its sources, wherever the project is: a checkout, and what is installed in it, may lie below a folder of its name.
PACKAGE = os.path.dirname(os.path.realpath(commsir.__file__)) + os.sep


@pytest.mark.parametrize(
    "check",
    [
        calling_checks.builtin_hooks,
        calling_checks.forms,
        calling_checks.without_memory,
        calling_checks.asked,
        compiled_checks.one_graph,
    ],
    ids=lambda check: str(check.__name__),
)
def test_calls(world: World, check: Callable[..., None]) -> None:
    world.run(check)


@pytest.mark.parametrize(
    ("check", "backend"),
    [
        (compiled_checks.breaks, "commsir"),
        (compiled_checks.parallel_training, "commsir"),
        (compiled_checks.of_ones_own, ""),
    ],
)
def test_dynamo_does_not_go_into_a_group(world: World, check: Callable[..., set[str]], backend: str) -> None:
    for seen in world.run(check, backend=backend):
        ours = [at for at in seen if os.path.realpath(at).startswith(PACKAGE) or at.endswith(" allreduce")]
        assert seen and not ours, ours


def test_wrong_arguments_raise_as_in_other_groups(world: World) -> None:
    for types in world.run(calling_checks.refusals):
        assert types == ["RuntimeError"] * 4
