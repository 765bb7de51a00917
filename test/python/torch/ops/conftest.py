"""Worlds of four ranks and of two, as for the tests of the backend."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "c10d"))

from harness import World  # noqa: E402
from tensors_option import pytest_addoption, pytest_configure, pytest_runtest_setup  # noqa: E402

__all__ = ["pair", "pytest_addoption", "pytest_configure", "pytest_runtest_setup", "world"]


def world_of(request: pytest.FixtureRequest, ranks: int, *imports: str) -> Iterator[World]:
    tensors = request.config.getoption("--tensors")
    if tensors == "cuda":
        import torch

        if torch.cuda.device_count() < ranks and not os.environ.get("COMMSIR_SHARE_GPU"):
            pytest.skip(f"there are fewer than {ranks} GPUs")
        imports = ()  # Some of them begin to use CUDA, which a fork cannot go on with.
    made = World(ranks, imports, tensors=tensors)
    yield made
    made.stop()


@pytest.fixture(scope="session")
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    yield from world_of(request, 4)


@pytest.fixture(scope="session")
def pair(request: pytest.FixtureRequest) -> Iterator[World]:
    yield from world_of(request, 2, "torch._dynamo", "torch._inductor.compile_fx")
