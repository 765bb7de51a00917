"""Views, booleans, shared memory and splits; on the CPU, four ranks."""

from __future__ import annotations

import memory_checks
import pytest
import torch
from harness import World

_LAZY = [torch.float32, torch.float64, torch.bfloat16, torch.int32, torch.complex64]


@pytest.mark.parametrize("dtype", _LAZY, ids=str)
def test_views_that_negate_or_conjugate(world: World, dtype: torch.dtype) -> None:
    world.run(memory_checks.lazy_views, dtype=dtype)


def test_negated_views_in_programs(world: World) -> None:
    world.run(memory_checks.negated_in_programs)


@pytest.mark.cpu_alone("the other backend is Gloo")
def test_other_backends_are_as_they_were(world: World) -> None:
    world.run(memory_checks.other_backends_are_as_they_were)


@pytest.mark.parametrize("kind", ["MIN", "MAX", "SUM", "PRODUCT", "BAND", "BOR", "BXOR"])
def test_booleans_of_any_bytes(world: World, kind: str) -> None:
    world.run(memory_checks.booleans, kind=kind)


def test_outputs_that_share_memory(world: World) -> None:
    world.run(memory_checks.shared_outputs)


def test_outputs_between_each_other(world: World) -> None:
    world.run(memory_checks.columns)


@pytest.mark.parametrize("count", [3, 40000])
def test_inputs_in_outputs(world: World, count: int) -> None:
    world.run(memory_checks.inputs_in_outputs, count=count)


def test_splits(world: World) -> None:
    world.run(memory_checks.splits)


def test_storages_that_are_smaller_than_their_tensors(world: World) -> None:
    """test_gpu.py has the same over a driver that pretends GPUs."""
    world.run(memory_checks.short_storages)
