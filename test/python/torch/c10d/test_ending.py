"""Programs end while threads of a group, or of Gloo behind it, may still hold Python objects."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import ending
import pytest

#: Those that take no longer than an end.
QUICK = [case.__name__ for case in ending.CASES if case.__name__ != "alone"]


def failures(folder: Path, turns: int, *cases: str) -> list[object]:
    program = [sys.executable, str(Path(ending.__file__)), str(folder), str(turns), *cases]
    environment = {**os.environ, "COMMSIR_TORCH_BACKEND": "cpp", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(program, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


def test_programs_end_well(tmp_path: Path) -> None:
    assert failures(tmp_path, 2, *QUICK) == []


def test_a_call_without_peers_does_not_delay_the_end(tmp_path: Path) -> None:
    assert failures(tmp_path, 1, "alone") == []


HELD_UP = """
import commsir.torch, torch, torch.distributed as dist, sys, time
commsir.torch.register()
rank = int(sys.argv[2])
dist.init_process_group("commsir", store=dist.FileStore(sys.argv[1], 3), rank=rank, world_size=3)
if rank < 2:
    work = dist.irecv(torch.empty(2), 2)
    while not commsir.torch.stats()["calls"]:
        time.sleep(0.01)
print("ready", flush=True)
input()
input()
"""


def _waiters(inode: int) -> int:
    """Those who wait for a lock on a file."""
    lines = Path("/proc/locks").read_text().splitlines()
    return sum("->" in line and f":{inode} " in line for line in lines)


def test_a_store_that_does_not_answer_does_not_hold_up_the_end(tmp_path: Path) -> None:
    """Somebody looks for the other side of a receive, in a store that is held up."""
    if not Path("/proc/locks").is_file():
        pytest.skip("the system does not tell which process waits for a lock")
    path = tmp_path / "store"
    environment = {**os.environ, "COMMSIR_TORCH_BACKEND": "cpp"}
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", HELD_UP, str(path), str(rank)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(3)
    ]
    try:
        for rank in ranks:
            assert rank.stdin and rank.stdout and rank.stdout.readline() == "ready\n"
        with path.open() as store:
            fcntl.flock(store, fcntl.LOCK_EX)
            for rank in ranks:
                assert rank.stdin
                rank.stdin.write("\n")
                rank.stdin.flush()
            inode, deadline = os.fstat(store.fileno()).st_ino, time.monotonic() + 60
            while _waiters(inode) < 2 and time.monotonic() < deadline:
                time.sleep(0.05)
            assert _waiters(inode) == 2
            # The end of torch's own store waits for nobody where the file is gone.
            path.unlink()
            for rank in ranks:
                _, said = rank.communicate("\n", timeout=60)
                assert rank.returncode == 0, said
                assert ("does not answer at the program's end" in said) == (rank is not ranks[2]), said
    finally:
        for rank in ranks:
            rank.kill()
