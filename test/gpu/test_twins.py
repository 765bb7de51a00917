"""Tests of twins.py that need no GPU: fake programs report made-up times."""

import json
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import twins  # noqa: E402

# Each takes the times of times.json, by its own name; what a flag names chooses among them.
PROGRAM = """#!{python}
import json, pathlib, sys
here = pathlib.Path(__file__)
times = json.loads((here.parent / "times.json").read_text())
flags = dict(zip(sys.argv[1::2], sys.argv[2::2])) | {{"--json": sys.argv[sys.argv.index("--json") + 1]}}
for index, word in enumerate(sys.argv):
    if word in ("--op", "--sizes", "--rows", "--algorithm", "--threads", "--fp8"):
        flags[word] = sys.argv[index + 1]
out = open(flags["--json"], "w")
if here.name == "comms-bench":
    rows = [int(rows) * 16384 for rows in flags.get("--rows", "").split(",") if rows]
    sizes = rows or [int(size) for size in flags["--sizes"].split(",")]
    op = flags.get("--op", "all_reduce")
    results = [
        dict(op=op, bytes=size, contender="commsir", status=times.get("status", "ok"), exact=True,
             median_us=times["ours"][flags.get("--algorithm", "chosen")] * (1 + size / 2**40))
        for size in sizes
    ]
    json.dump(dict(results=results), out)
    sys.exit(1 if times.get("status") == "wrong" else 0)
key = "bytes" if here.name == "twin-allreduce" else "rows"
sizes = [int(size) for size in flags["--sizes"].split(",")] if key == "bytes" else [1, 2, 8, 16, 64, 128, 512]
sizes = sizes[: times.get("measured")]
for size in sizes:
    for name, us in times[here.name].items():
        out.write(json.dumps({{key: size, "name": name, "us": us, "wrong": times.get("twin wrong", 0)}}) + "\\n")
"""
TIMES = {
    "ours": {"one_shot": 1.9, "two_shot": 1.8, "chosen": 2.2},
    "twin-allreduce": {"one_shot_lamport/t64/pdl": 2.0, "two_shot_lamport/t64": 2.5, "nccl": 1.0},
    "twin-rmsnorm": {"one_shot/c8/t128/g16": 2.1, "two_shot/c8/t128/g16": 2.0, "two_shot/c1/t1024/g132": 9.0},
}


def programs(folder: pathlib.Path, names: list[str], **times: object) -> None:
    for name in names:
        (folder / name).write_text(PROGRAM.format(python=sys.executable))
        (folder / name).chmod(0o755)
    (folder / "times.json").write_text(json.dumps(TIMES | times))


def main(monkeypatch: pytest.MonkeyPatch, folder: pathlib.Path, *words: str, gpus: int = 4) -> int:
    monkeypatch.setattr(twins, "count_gpus", lambda: gpus)
    monkeypatch.setattr(twins.shutil, "which", lambda name: None)
    monkeypatch.setattr(sys, "argv", ["twins.py", "--bin", str(folder), *words])
    status: int = twins.main()
    return status


ALL = ["comms-bench", "twin-allreduce", "twin-rmsnorm"]


def test_all_is_compared(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    programs(tmp_path, ALL)
    report = tmp_path / "table.json"
    assert main(monkeypatch, tmp_path, "--rounds", "1", "--json", str(report)) == 0
    rows = {row["what"]: row for row in json.loads(report.read_text())["rows"]}
    assert list(rows) == ["1 KiB", "8 KiB", "64 KiB", "256 KiB", "1 MiB", "4 MiB"] + [
        f"{count} rows{fp8}" for fp8 in ("", ", fp8") for count in twins.ROWS
    ]
    # The algorithm that is the twin's best, NCCL's aside, and the best of its shapes.
    assert rows["1 KiB"]["algorithm"] == "one_shot_lamport" and rows["1 KiB"]["ratio"] == pytest.approx(0.95)
    assert rows["64 rows"]["algorithm"] == "two_shot" and rows["64 rows"]["ratio"] == pytest.approx(0.9, rel=1e-3)
    assert rows["64 rows"]["chosen_us"] == pytest.approx(2.2, rel=1e-3)
    assert rows["1 KiB"]["first_us"] == 2.8 and "first_us" not in rows["64 rows"]


def test_a_kernel_that_is_slower_in_every_round_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    slow = TIMES["ours"] | {"one_shot": 2.08}
    programs(tmp_path, ALL[:2], ours=slow, **{"twin-allreduce": {"one_shot_lamport/t64": 2.0}})
    assert main(monkeypatch, tmp_path, "--rounds", "5") == 1
    assert "1 KiB: 1.040 of the twin's time" in capsys.readouterr().err


def test_wrong_results_fail(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    programs(tmp_path, ALL[:2], status="wrong")
    assert main(monkeypatch, tmp_path, "--rounds", "1") == 1
    programs(tmp_path, ALL[:2], **{"twin wrong": 3})
    assert main(monkeypatch, tmp_path, "--rounds", "1") == 1
    told = capsys.readouterr().err
    assert "commsir gave a wrong result" in told and "the twin one_shot_lamport/t64/pdl gave a wrong result" in told


def test_a_twin_without_the_sizes_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    programs(tmp_path, ALL[:2], measured=5)
    assert main(monkeypatch, tmp_path) == 2
    assert "the twin measured nothing at 4194304 bytes: was it built from older sources?" in capsys.readouterr().err


def test_partial_results_are_printed_before_the_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    programs(tmp_path, ALL, **{"twin-allreduce": {"one_shot_lamport/t64": 1.0}})
    (tmp_path / "twin-rmsnorm").write_text("#!/bin/sh\nexit 3\n")
    report = tmp_path / "table.json"
    assert main(monkeypatch, tmp_path, "--json", str(report)) == 2
    told = capsys.readouterr()
    assert "all-reduce: round 5 of 5" in told.err and "rows: round 1 of 5" in told.err
    assert "1 KiB: 1.900 of the twin's time" in told.err and "exit status 3" in told.err
    assert "4 MiB  one_shot_lamport" in told.out and len(json.loads(report.read_text())["rows"]) == 6


#: Pretends to be twin-matmul, and torchrun with matmul.py.
MATMULS = """#!{python}
import json, pathlib, sys
here = pathlib.Path(__file__)
times = json.loads((here.parent / "times.json").read_text())["matmuls"]
flags = {{word: sys.argv[index + 1] for index, word in enumerate(sys.argv) if word in ("--rows", "--json")}}
rows = [int(one) for one in flags["--rows"].split(",")]
out = pathlib.Path(flags["--json"])
if here.name == "torchrun":
    ours = times["ours"]
    out.write_text(json.dumps({{f"{{op}} {{one}}": of for op, of in ours.items() for one in rows}}))
    sys.exit(0)
out.write_text("".join(
    json.dumps(dict(rows=one, op=name.split("/")[0], name=name, us=us, wrong=times.get("wrong", 0))) + "\\n"
    for one in rows for name, us in times["twin"].items()))
sys.exit(times.get("wrong", 0))
"""


@pytest.mark.parametrize(
    ("ours", "wrong", "status", "said"),
    [
        (470.0, 0, 0, ""),
        (480.0, 0, 1, "matmul reduce_scatter 8192: 1.067 of the twin's time"),
        (440.0, 1, 1, "the twin all_gather gave a wrong result at 8192 rows"),
    ],
)
def test_matmuls(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
    ours: float,
    wrong: int,
    status: int,
    said: str,
) -> None:
    """The best number of blocks counts on either side, and 5 percent are allowed."""
    twin = {"all_gather": 360.0, "reduce_scatter/b1": 600.0, "reduce_scatter/b2": 450.0, "all_reduce/b1": 700.0}
    mine = {
        "all_gather": {"overlapped": 370.0},
        "reduce_scatter": {"overlapped in 1": 610.0, "overlapped in 2": ours},
        "all_reduce": {"overlapped in 1": 690.0},
    }
    (tmp_path / "times.json").write_text(json.dumps({"matmuls": {"twin": twin, "ours": mine, "wrong": wrong}}))
    for name in ("twin-matmul", "torchrun"):
        (tmp_path / name).write_text(MATMULS.format(python=sys.executable))
        (tmp_path / name).chmod(0o755)
    monkeypatch.setattr(twins, "TORCHRUN", [tmp_path / "torchrun"])
    report = tmp_path / "table.json"
    assert main(monkeypatch, tmp_path, "--only", "matmul", "--json", str(report)) == status
    assert said in capsys.readouterr().err
    if not wrong:
        rows = {row["what"]: row for row in json.loads(report.read_text())["rows"]}
        assert rows["matmul all_gather 8192"]["ratio"] == pytest.approx(370 / 360)
        assert rows["matmul reduce_scatter 8192"]["twin_us"] == 450.0


def test_noise_decides_nothing() -> None:
    def wrong(ours: list[float], twin: list[float], first: float | None = None) -> list[str]:
        mistakes: list[str] = twins.judge("1 KiB", twins.Times(ours, twin), 3, first)[1]
        return mistakes

    assert wrong([2.2, 2.2, 2.2, 2.2, 2.0], [2.0] * 5) == []
    assert len(wrong([2.07] * 5, [2.0] * 5)) == 1
    assert wrong([2.07] * 4, [2.0] * 4) == []
    assert wrong([2.0, 2.0] + [2.2] * 6, [2.0] * 8) == []
    assert len(wrong([2.0] + [2.2] * 7, [2.0] * 8)) == 1
    assert wrong([1.0] * 5, [2.9, 2.9, 2.9, 2.9, 2.7], 2.8) == []
    assert "first hand-written kernels took 2.8" in wrong([1.0] * 5, [2.9] * 5, 2.8)[0]


def test_missing_parts_are_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    programs(tmp_path, ALL[:1])
    assert main(monkeypatch, tmp_path) == 0
    assert f"NOT compared with hand-written ones: there is no nvcc (CUDA's, on PATH), and no {tmp_path}/twin-" in (
        capsys.readouterr().err
    )
    assert main(monkeypatch, tmp_path, gpus=1) == 2
    assert "here are 1 GPUs" in capsys.readouterr().err
    (tmp_path / "twin-allreduce").write_text("no program")
    assert main(monkeypatch, tmp_path) == 2
    assert "twin-allreduce" in capsys.readouterr().err
