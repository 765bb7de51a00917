"""Calls on CUDA tensors without a GPU: torch's runtime and libcommsir share a driver that counts what it is asked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import devices_checks
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


def _run(folder: Path, devices: tuple[int, ...] = ()) -> list[dict[str, str]]:
    """What the checks came to on each rank, by their names; with `devices`, those of ranks on these GPUs."""
    environment = _environment() | {"COMMSIR_TORCH_BACKEND": "cpp"}
    program, last = gpu_checks.__file__, str(RANKS)
    if devices:
        environment["COMMSIR_FAKE_GPUS"] = str(max(devices) + 1)
        program, last = devices_checks.__file__, ",".join(map(str, devices))
    ranks = [
        subprocess.Popen(
            [sys.executable, str(program), str(folder), str(rank), last],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(RANKS)
    ]
    try:
        said = [rank.communicate(timeout=240) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    assert [rank.returncode for rank in ranks] == [0] * RANKS, "\n".join(errors for _, errors in said)
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
    for rank, outcome in enumerate(_run(tmp_path, devices)):
        assert not any(outcome.values()), f"rank {rank}: {outcome}"
