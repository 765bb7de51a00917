"""The programs of commsir.examples.torch with four ranks, compared with Gloo where it supports them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "c10d"), str(Path(__file__).resolve().parent)]

import programs  # noqa: E402
from harness import World  # noqa: E402

#: What takes seconds to import.
IMPORTS = (
    "sklearn.datasets",
    "torch._dynamo",
    "torch._inductor.compile_fx",
    "torch.distributed.fsdp",
    "torch.distributed.tensor.parallel",
)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    made = World(4, IMPORTS)
    yield made
    made.stop()


def run(world: World, name: str, *arguments: str, ranks: int = 4) -> tuple[Any, set[str]]:
    """What rank 0's `main` returns, and the collectives that all ranks ran; all by CommsIR."""
    answers = world.run(programs.program, backend="", name=name, arguments=list(arguments), ranks=ranks)
    calls = [call for _, counted in answers for call in counted]
    assert {call["path"] for call in calls} <= {"commsir"}, calls
    return answers[0][0], {call["op"] for call in calls}


def test_ddp(world: World) -> None:
    """Four ranks with a quarter of each batch learn what one rank with all of it does."""
    # Not together with Gloo: DDP leaves tensors with Gloo's threads, and a group destroyed then may wait for them
    # forever, or abort the program (https://github.com/pytorch/pytorch/issues/190489).
    (losses, _), ops = run(world, "ddp_digits")
    assert "all_reduce" in {op.removeprefix("_") for op in ops}, ops
    (alone, _), _ = run(world, "ddp_digits", ranks=1)
    assert losses == pytest.approx(alone, abs=1e-3)


def test_fsdp(world: World) -> None:
    (losses, accuracy), ops = run(world, "fsdp_digits", "--epochs", "4")
    assert losses[-1] < 0.3 * losses[0] and accuracy > 0.85
    assert {"all_gather_into_tensor", "reduce_scatter_tensor"} <= {op.removeprefix("_") for op in ops}, ops
    (gloo, _), none = run(world, "fsdp_digits", "--epochs", "1", "--backend", "gloo")
    assert not none
    # Sums of four ranks in another order: float32 rounds differently, and steps of Adam grow that.
    assert losses[: len(gloo)] == pytest.approx(gloo, rel=1e-5)


def test_fsdp_and_tensor_parallel(world: World) -> None:
    """Every sum is one of two ranks, which is the same in either order: the loss curves have the same bits."""
    ours, ops = run(world, "fsdp_tp", "--steps", "50", "--layers", "1")
    assert ops and len(ours) == 50 and ours[-1] < 0.5 * ours[0]
    gloo, none = run(world, "fsdp_tp", "--steps", "50", "--layers", "1", "--backend", "gloo")
    assert not none and ours == gloo


def test_tensor_parallel_inference(world: World) -> None:
    (off, _), ops = run(world, "tensor_parallel")
    assert off < 1e-5 and "all_reduce" in ops


def test_tensor_parallel_inference_compiled(world: World) -> None:
    answers = world.run(
        programs.program, backend="", name="tensor_parallel", arguments=["--compile", "--layers", "1"], ranks=2
    )
    off, fused = answers[0][0]
    assert off < 1e-5
    assert len(fused) == 2 and all(": fused with aten.add" in one and "aten.rsqrt" in one for one in fused), fused
    for _, calls in answers[:2]:
        sums = sum(call["count"] for call in calls if call["op"] == "all_reduce")
        assert sums == 2, "the first forward pass sums twice while ranks agree, and the second not at all"


def test_own_collective(world: World) -> None:
    stats, _ = run(world, "own_collective")
    assert stats["launches"] == 5


def test_quantized_all_reduce(world: World) -> None:
    error, ops = run(world, "quantized_backend")
    assert 1e-3 < error < 0.05, "numbers have not been through fp8"
    assert "quantized_all_reduce" in ops
