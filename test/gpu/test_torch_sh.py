"""Tests torch.sh with a Python that pretends to see GPUs: the parts that it runs, and what it reports of them."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

SCRIPT = pathlib.Path(__file__).with_name("torch.sh")
PRETENDS = """#!/bin/sh
case "$*" in
*find_spec*) exit {found} ;;
*device_count*) {count} ;;
*quantized*) echo "it broke"; exit 3 ;;
*own_collective*) exec {real} -c '{finds}' ;;
*) echo "ran $*" ;;
esac
"""


#: What torch does to find backends.
FINDS = 'import importlib.metadata as m; print([e.load() for e in m.entry_points(group="torch.backends")])'


def torch_sh(
    folder: pathlib.Path,
    count: str = "echo 4",
    found: int = 0,
    parts: str = "",
    libraries: tuple[str, ...] = (),
    **variables: str,
) -> tuple[int, str]:
    python = folder / "python"
    python.write_text(PRETENDS.format(count=count, found=found, real=sys.executable, finds=FINDS))
    python.chmod(0o755)
    environment = {**os.environ, "TMPDIR": str(folder)}
    for name in ("COMMSIR_TORCH_PARTS", "COMMSIR_SHARE_GPU", "CHECK_RANKS"):
        environment.pop(name, None)
    environment.update(variables)
    if parts:
        environment["COMMSIR_TORCH_PARTS"] = parts
    done = subprocess.run([SCRIPT, python, *libraries], env=environment, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout + done.stderr


def test_parts_run_and_those_that_fail_are_named(tmp_path: pathlib.Path) -> None:
    status, said = torch_sh(tmp_path)
    assert status == 1 and said.endswith("torch on GPUs: failed: quantized_backend\n"), said
    assert "quantized_backend: failed, see " in said and "it broke" in said
    assert said.count(": ok, ") == 8 and "--nproc-per-node 4 -m commsir.examples.torch.push_weights" in said, said


def test_parts_that_are_named(tmp_path: pathlib.Path) -> None:
    status, said = torch_sh(tmp_path, parts="backend push_weights", count="echo 2")
    assert status == 0 and said.count(": ok, ") == 2, said  # On two GPUs, too.
    status, said = torch_sh(tmp_path, parts="suite push_weights")
    assert status == 0 and said.count(": ok, ") == 2, said
    status, said = torch_sh(tmp_path, parts="suit")
    assert status == 2 and "'suit' names no part" in said


def test_ranks_that_share_a_gpu_run_what_needs_no_nccl(tmp_path: pathlib.Path) -> None:
    status, said = torch_sh(tmp_path, count="echo 1", COMMSIR_SHARE_GPU="1", CHECK_RANKS="4")
    assert status == 1 and said.endswith("torch on GPUs: failed: quantized_backend\n"), said
    assert said.count("torch, 4 ranks, GPUs: 1: ") == 5, said
    assert "own_collective" not in said and "losses" not in said and "suite" not in said, said
    for off in ("", "0", "Off", "no", "FALSE"):
        status, said = torch_sh(tmp_path, count="echo 1", COMMSIR_SHARE_GPU=off)
        assert status == 0 and "COMMSIR_SHARE_GPU=1" in said, said
    status, said = torch_sh(tmp_path, count="echo 0", COMMSIR_SHARE_GPU="1")
    assert status == 0 and "not run" in said, said


def test_in_a_checkout_torch_finds_the_backend(tmp_path: pathlib.Path) -> None:
    status, said = torch_sh(tmp_path, parts="own_collective", libraries=(str(tmp_path),))
    assert status == 0 and "<function autoload" in said, said
    assert [path.name for path in tmp_path.iterdir()] == ["python"], "something is left behind"


def test_without_torch_or_gpus(tmp_path: pathlib.Path) -> None:
    for options in ({"found": 1}, {"count": "echo 1"}):
        status, said = torch_sh(tmp_path, **options)
        assert status == 0 and "not run" in said, said
    status, said = torch_sh(tmp_path, count="echo broken >&2; exit 1")
    assert status == 2 and "cannot import its torch" in said, said
