"""python -m commsir.bench under torchrun, without GPUs: beside Gloo; and what it makes of its figures."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from commsir.torch import bench


def test_beside_gloo(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node=2",
        "-m",
        "commsir.bench",
    ]
    command += ["--device", "cpu", "--op", *bench.OPS, "--sizes", "1K", "40K", "--rounds", "2"]
    command += ["--json", str(tmp_path / "run.json"), "--plot", str(tmp_path / "run.png")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    report = json.loads((tmp_path / "run.json").read_text())
    results = report["results"]
    assert report["header"]["ranks"] == 2
    assert {e["contender"] for e in results} == {"commsir op", "commsir backend", "gloo"}
    assert {(e["op"], e["bytes"]) for e in results} == {(op, size) for op in bench.OPS for size in (1024, 40960)}
    assert all(e["status"] == "ok" and len(e["samples_us"]["call"]) == 2 and e["us"]["call"] > 0 for e in results)
    assert done.stdout.count("\n|") == 2 + 2 * len(bench.OPS), done.stdout
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")


def test_a_size_that_is_none_is_named(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "commsir.bench", "--sizes", "many"],
        env={**os.environ, "TORCHELASTIC_RUN_ID": "x"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2 and "'many' is no size: write 4096, 64K or 4M" in done.stderr


def test_the_table_leaves_out_what_failed() -> None:
    entries = [
        {"op": "all_reduce", "bytes": 64, "contender": "a", "status": "ok", "us": {"host": 2.0, "graph": 1.5}},
        {"op": "all_reduce", "bytes": 64, "contender": "b", "status": "wrong", "message": "wrong: is off"},
        {"op": "all_reduce", "bytes": 128, "contender": "b", "status": "ok", "us": {"host": 3.0}},
    ]
    assert bench.table(entries).splitlines() == [
        "|         op | bytes | a (host) | a (graph) | b (host) |",
        "|-----------:|------:|---------:|----------:|---------:|",
        "| all_reduce |    64 |     2.00 |      1.50 |          |",
        "| all_reduce |   128 |          |           |     3.00 |",
    ]
