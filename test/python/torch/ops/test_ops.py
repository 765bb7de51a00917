"""torch.ops.commsir on the CPU with four ranks."""

from __future__ import annotations

from typing import Any

import ops_checks
import pytest
import torch
from harness import World


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int32, torch.int64], ids=str)
@pytest.mark.parametrize("backend", ["gloo", "commsir"])
def test_plain(world: World, backend: str, dtype: torch.dtype) -> None:
    world.run(ops_checks.plain, backend, dtype=dtype, shape=(8, 33))


def test_strided(world: World) -> None:
    world.run(ops_checks.strided, "gloo")


def test_lazy_outputs(world: World) -> None:
    world.run(ops_checks.lazy_outputs, "gloo")


def test_gradients(world: World) -> None:
    world.run(ops_checks.gradients, "gloo")


def test_without_derivatives(world: World) -> None:
    world.run(ops_checks.without_derivatives, "gloo")


def test_other_types(world: World) -> None:
    world.run(ops_checks.other_types, "gloo")


def test_subgroups(world: World) -> None:
    world.run(ops_checks.subgroups, "gloo")


@pytest.mark.parametrize("backend", ["gloo", "commsir"])
def test_counts(world: World, backend: str) -> None:
    world.run(ops_checks.counted, backend)


def test_a_name_that_is_used_again(world: World) -> None:
    world.run(ops_checks.renamed, "")


def test_mistakes(world: World) -> None:
    world.run(ops_checks.mistakes, "gloo")


def test_ranks_that_disagree(world: World) -> None:
    world.run(ops_checks.disagreeing, "gloo")


@pytest.mark.parametrize("check", [ops_checks.wrong_results, ops_checks.wrong_operands], ids=lambda c: str(c.__name__))
def test_results_that_do_not_fit(world: World, check: Any) -> None:
    world.run(check, "gloo")


def test_memory_that_one_rank_does_not_reach(world: World) -> None:
    world.run(ops_checks.not_symmetric, "gloo")


def test_symmetric_memory_of_gpus_with_other_numbers(world: World) -> None:
    world.run(ops_checks.symmetric_on_other_gpus, "gloo")


def test_symmetric_memory_that_a_rank_does_not_ask_for(world: World) -> None:
    world.run(ops_checks.symmetric_without_a_rank, "gloo", timeout=8)


@pytest.mark.parametrize("backend", ["gloo", "commsir"])
def test_ctrl_c(world: World, backend: str) -> None:
    waiting, seconds, later = world.run(ops_checks.interrupted, backend)[0]
    assert "interrupted while it waited" in waiting, waiting
    assert float(seconds.split()[0]) < 10, seconds
    assert "interrupted while it waited" in later, later


def test_fused(world: World) -> None:
    world.run(ops_checks.fused, "gloo")


def test_shared_arguments(world: World) -> None:
    world.run(ops_checks.shared_arguments, "gloo")


def test_warm_up(capsys: pytest.CaptureFixture[str]) -> None:
    """Powers of two first, and odd counts between them: c10d/gpu_checks.py tries that nothing else is compiled."""
    import commsir.torch

    counts: list[int] = []
    seconds = commsir.torch.warm_up(counts.append, rows=20, progress=True)
    assert counts == [16, 8, 4, 2, 1, 20, 19, 17, 9, 5, 3]
    assert seconds >= 0
    assert "11 of 11 row counts" in capsys.readouterr().err
    counts.clear()
    commsir.torch.warm_up(counts.append, rows=[3, 5, 5])
    assert counts == [5] * 5 + [3] * 5
    with pytest.raises(ValueError, match="at least 1"):
        commsir.torch.warm_up(counts.append, rows=0)
