"""Calls on CUDA tensors without a GPU: torch's runtime and libcommsir share a driver that counts its calls."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import capture_checks
import channel_checks
import devices_checks
import exhaustion_checks
import gpu_checks
import pytest
import torch

RANKS = 2


def _environment() -> dict[str, str]:
    fake = Path(os.environ["COMMSIR_LIBRARY"]).absolute() / "fake-cuda"
    if not (fake / "libfake-cudart.so").is_file():
        pytest.skip("built without the GPU target")
    if not torch.version.cuda:
        pytest.skip("torch is without CUDA")
    return {
        **os.environ,
        "LD_LIBRARY_PATH": str(fake),
        "LD_PRELOAD": str(fake / "libfake-cudart.so"),
        "COMMSIR_FAKE_GPUS": str(RANKS),
        "COMMSIR_FAKE_KERNEL": "",
        # Windows by CUDA's memory: torch's NCCL is the real one.
        "COMMSIR_NCCL_LIBRARY": "none",
        "OMP_NUM_THREADS": "1",
    }


def _run(
    folder: Path, checks: ModuleType = gpu_checks, last: str = str(RANKS), size: int = RANKS, **environment: Any
) -> list[dict[str, Any]]:
    """What the checks came to on each rank, by their names; `last` is the program's last argument."""
    ranks = [
        subprocess.Popen(
            [sys.executable, str(checks.__file__), str(folder), str(rank), last],
            env=_environment() | {"COMMSIR_TORCH_BACKEND": "cpp"} | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(size)
    ]
    try:
        said = [rank.communicate(timeout=240) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    assert [rank.returncode for rank in ranks] == [0] * size, "\n".join(errors for _, errors in said)
    return [json.loads(text.splitlines()[-1]) for text, _ in said]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, str]]:
    return _run(tmp_path_factory.mktemp("gpu"))


@pytest.mark.parametrize("check", [check.__name__ for check in gpu_checks.CHECKS + gpu_checks.BOUND])
def test_gpu(outcomes: list[dict[str, str]], check: str) -> None:
    for rank, outcome in enumerate(outcomes):
        assert outcome[check] == "", f"rank {rank}: {outcome[check]}"


@pytest.mark.parametrize("devices", [(0, 1), (3, 1)], ids=str)
def test_ranks_with_other_numbers_than_their_gpus(tmp_path: Path, devices: tuple[int, ...]) -> None:
    gpus: dict[str, Any] = {"COMMSIR_FAKE_GPUS": str(max(devices) + 1)}
    for rank, outcome in enumerate(_run(tmp_path, devices_checks, ",".join(map(str, devices)), **gpus)):
        assert not any(outcome.values()), f"rank {rank}: {outcome}"


def test_graphs_that_an_engine_gets_wrong(tmp_path: Path) -> None:
    for rank, outcome in enumerate(_run(tmp_path, capture_checks)):
        assert not any(outcome.values()), f"rank {rank}: {outcome}"


def test_each_allocation_fails_once(tmp_path: Path) -> None:
    for rank, outcome in enumerate(_run(tmp_path, exhaustion_checks)):
        assert not any(outcome.values()), f"rank {rank}: {outcome}"


def test_channels_of_an_engine_take_at_most_64_mib(tmp_path: Path) -> None:
    gpus: dict[str, Any] = {
        "COMMSIR_FAKE_GPUS": "4",
        "COMMSIR_FAKE_NAME": "NVIDIA H100 80GB HBM3",
        "COMMSIR_FAKE_RESIDENT": "12",  # Blocks of few threads.
    }
    for rank, outcome in enumerate(_run(tmp_path, channel_checks, "4", 4, **gpus)):
        assert all(0 < bytes <= 64 << 20 for bytes in outcome.values()), f"rank {rank}: {outcome}"
