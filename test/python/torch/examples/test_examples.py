"""Programs that know only the backend's name, run as users run them, with four ranks."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).resolve().parents[4] / "frontend" / "commsir" / "examples" / "torch"


@pytest.fixture(scope="session")
def installed() -> dict[str, str]:
    """The environment of a user, with nothing that says where the package is: it is installed."""
    return {**{name: value for name, value in os.environ.items() if name != "PYTHONPATH"}, "OMP_NUM_THREADS": "1"}


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def torchrun(environment: dict[str, str], program: str, *arguments: str, ranks: int = 4) -> str:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "torch.distributed.run",
            # By address: what a machine calls itself takes long to look up where nobody knows.
            "--master-addr=127.0.0.1",
            f"--master-port={_free_port()}",
            f"--nproc-per-node={ranks}",
            str(PROGRAMS / program),
            *arguments,
        ],
        env=environment,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


def test_data_parallel_training(installed: dict[str, str], tmp_path: Path) -> None:
    """Under torchrun with nothing changed but the backend's name; test_programs.py compares losses with one rank."""
    report = tmp_path / "report.json"
    torchrun(
        {**installed, "COMMSIR_TORCH_BACKEND": "cpp"}, "ddp_digits.py", "--backend", "commsir", "--report", str(report)
    )
    ours = json.loads(report.read_text())
    assert ours["accuracy"] > 0.9
    assert ours["losses"][-1] < 0.3 * ours["losses"][0]
    assert {call["path"] for call in ours["calls"]} == {"commsir"}, ours["calls"]
    assert "all_reduce" in {call["op"] for call in ours["calls"]}


def test_survivors_of_a_dead_rank_go_on(installed: dict[str, str], tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    command = [sys.executable, str(PROGRAMS / "survivors.py"), "--steps", "16", "--report", str(report)]
    done = subprocess.run(command, env=installed, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    ended = json.loads(report.read_text())
    assert sorted(ended) == ["0", "1", "3"]
    for rank, result in ended.items():
        assert result["ranks"] == [0, 1, 3]
        assert "rank 2" in result["said"] and "has died" in result["said"], f"rank {rank}: {result['said']}"
        losses = result["losses"]
        assert len(losses) >= 15 and sum(losses[-3:]) < 0.8 * sum(losses[5:8]), losses
    assert len({result["weights"] for result in ended.values()}) == 1, "the survivors' models differ"


@pytest.mark.parametrize("program", ["ddp_digits.py", "quantized_backend.py"])
def test_without_torchrun(program: str) -> None:
    """A program that is started by itself says how to start it."""
    bare = {name: value for name, value in os.environ.items() if name != "RANK"}
    alone = subprocess.run([sys.executable, PROGRAMS / program], env=bare, capture_output=True, text=True, timeout=120)
    assert alone.returncode == 1 and "Traceback" not in alone.stderr
    assert f"torchrun --standalone --nproc-per-node 4 {PROGRAMS / program}" in alone.stderr


def test_all_programs_say_how_to_start_them() -> None:
    for program in PROGRAMS.glob("*.py"):
        text = program.read_text()
        # What gives ranks a store of its own starts them, too.
        if "init_process_group(" in text and "store=" not in text.partition("init_process_group(")[2][:200]:
            assert "need_ranks()" in text.partition("init_process_group(")[0], program.name
