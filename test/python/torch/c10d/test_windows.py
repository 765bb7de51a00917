"""Windows as tensors: over process groups of Gloo and CommsIR, and the example that pushes weights."""

from __future__ import annotations

import pytest
import windows_checks
from harness import World


@pytest.mark.parametrize("backend", ["gloo", "commsir"])
@pytest.mark.parametrize("check", ["tensors", "groups", "refused", "disagreeing"])
def test_window(world: World, check: str, backend: str) -> None:
    world.run(getattr(windows_checks, check), "nccl" if (backend, world.tensors) == ("gloo", "cuda") else backend)


@pytest.mark.parametrize("backend", ["gloo", "commsir"])
def test_windows_end_with_their_process_group(world: World, backend: str) -> None:
    kind = "nccl" if (backend, world.tensors) == ("gloo", "cuda") else backend
    world.run(windows_checks.destroyed, backend="", kind=kind)


@pytest.mark.cpu_alone("the trainer and its samplers have CPU tensors")
def test_weights_are_pushed(world: World) -> None:
    world.run(windows_checks.push_weights, "gloo")
