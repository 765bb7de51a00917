"""python -m commsir.bench under torchrun, without GPUs: against Gloo; and its evaluation of figures."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
import torch.distributed as dist
from commsir.torch import bench
from commsir.torch.bench_calls import CALLS, SIZELESS, pattern, tensors


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
    command += ["--device", "cpu", "--op", "all", "--sizes", "1K", "40K", "--rounds", "2"]
    command += ["--json", str(tmp_path / "run.json"), "--plot", str(tmp_path / "run.png")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    report = json.loads((tmp_path / "run.json").read_text())
    results = report["results"]
    assert report["header"]["ranks"] == 2
    made = {(op, size) for op in CALLS for size in ((1024,) if op in SIZELESS else (1024, 40960))}
    for contender, ops in (("commsir op", bench.OPS), ("commsir backend", tuple(CALLS)), ("gloo", tuple(CALLS))):
        found = {(e["op"], e["bytes"]) for e in results if e["contender"] == contender}
        assert found == {(op, size) for op, size in made if op in ops}, contender
    assert all(e["status"] == "ok" and len(e["samples_us"]["call"]) == 2 and e["us"]["call"] > 0 for e in results)
    assert all(e["ratios"]["commsir backend"]["call"][0] > 0 for e in results if e["contender"] == "gloo")
    assert done.stdout.count("\n|") == 2 + len(made), done.stdout
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")


def test_a_size_that_is_none_is_named(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "commsir.bench", "--sizes", "many"],
        env={**os.environ, "TORCHELASTIC_RUN_ID": "x"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2 and "'many' is not a size: write 4096, 64K or 4M" in done.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--rounds", "0"], "'0' is not a number of rounds"),
        (["--rounds", "-1"], "'-1' is not a number of rounds"),
        (["--json", "FOLDER/absent/x.json"], "there is no folder 'FOLDER/absent'"),
        (["--json", "FOLDER"], "'FOLDER' is a folder"),
        (["--plot", "FOLDER/absent/x.png"], "there is no folder 'FOLDER/absent'"),
        (["--plot", "FOLDER/x.xyz"], "'FOLDER/x.xyz' does not end in .png, .svg or .pdf"),
    ],
)
def test_unwritable_files_are_refused_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], said: str
) -> None:
    with pytest.raises(SystemExit, match="2"):
        bench._parse([option.replace("FOLDER", str(tmp_path)) for option in options])
    assert said.replace("FOLDER", str(tmp_path)) in capsys.readouterr().err


def test_a_file_that_cannot_be_written_is_refused_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # Root may write everywhere.
    with mock.patch.object(os, "access", return_value=False), pytest.raises(SystemExit, match="2"):
        bench._parse(["--json", str(tmp_path / "x.json")])
    assert "x.json' cannot be written: name another file" in capsys.readouterr().err


def test_a_plot_without_matplotlib_is_refused_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    absent = {"matplotlib.backends.backend_agg": None}
    with mock.patch.dict(sys.modules, absent), pytest.raises(SystemExit, match="2"):
        bench._parse(["--plot", str(tmp_path / "x.png")])
    assert "pip install matplotlib" in capsys.readouterr().err


def test_files_are_rank_zeros(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    options = bench._parse(["--json", "/nowhere/x.json", "--plot", "/nowhere/x.png", "--rounds", "2"])
    assert (options.json, options.plot, options.rounds) == ("/nowhere/x.json", "/nowhere/x.png", 2)


def test_a_rank_without_a_gpu_learns_the_number_of_gpus() -> None:
    assert bench._missing_gpu_reason(1, 2) == ""
    assert "start 1 rank, or" in bench._missing_gpu_reason(1, 1) and "start 2 ranks, or" in bench._missing_gpu_reason(
        2, 2
    )
    assert bench._missing_gpu_reason(0, 0) == "torch finds no GPU on this host: say --device cpu"


def test_the_table_omits_failures() -> None:
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


def test_the_baseline_is_compared_turn_by_turn() -> None:
    def entry(name: str, samples: list[float]) -> dict[str, Any]:
        made = {"op": "gather", "bytes": 64, "contender": name, "status": "ok", "us": {"call": samples[0]}}
        return {**made, "samples_us": {"call": samples}}

    entries = [entry("commsir backend", [10.0, 20.0, 40.0]), entry("gloo", [20.0, 60.0, 40.0])]
    bench.compare(entries)
    assert "ratios" not in entries[0] and entries[1]["ratios"] == {"commsir backend": {"call": [2.0, 1.0, 3.0]}}
    assert bench.table(entries).splitlines() == [
        "|     op | bytes | commsir backend |       gloo | gloo / ours |",
        "|-------:|------:|----------------:|-----------:|------------:|",
        "| gather |    64 |      10 [10 40] | 20 [20 60] |        2.00 |",
    ]


def test_the_best_of_the_others_is_named_with_its_interval() -> None:
    def entry(name: str, eager: list[float], graph: list[float]) -> dict[str, Any]:
        samples = {"eager": eager, "graph": graph}
        us = {way: bench.median(times) for way, times in samples.items()}
        return {"op": "all_reduce", "bytes": 64, "contender": name, "status": "ok", "us": us, "samples_us": samples}

    entries = [
        entry("commsir op", [2.0, 4.0, 3.0], [1.0] * 3),
        entry("nccl", [4.0, 8.0, 6.0], [0.5] * 3),
        entry("symm_mem", [3.0, 6.0, 9.0], [2.0] * 3),
    ]
    bench.compare(entries)
    assert bench.bests(entries).splitlines()[2:] == [
        "| all_reduce |    64 | commsir op |      | nccl 2.00 [2.00 2.00] | nccl 0.50 [0.50 0.50] |"
    ]


def test_an_interval_holds_its_median_and_narrows() -> None:
    few, many = (bench.interval([1.0 + 0.01 * (7 * i % 10) for i in range(count)]) for count in (10, 200))
    assert few[1] <= few[0] <= few[2] and many[1] <= many[0] <= many[2]
    assert many[2] - many[1] < few[2] - few[1]
    assert bench.interval([3.0] * 5) == [3.0, 3.0, 3.0]


def test_a_wrong_result_is_reported() -> None:
    x, y = torch.zeros(4), torch.zeros(4)
    with mock.patch.object(dist, "get_rank", return_value=3):
        right = tensors(lambda: y.copy_(x), [x], [y], lambda: pattern(3, 4))
        assert right.wrong() == ""
        assert tensors(lambda: None, [x], [y.zero_()], lambda: pattern(3, 4)).wrong() == "is off by up to 6.0"
