"""Tests of litmus.py: in the CPU world with weak memory, and as PTX. Environment: COMMSIR_BIN."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys
from typing import Any

import pytest

HERE = pathlib.Path(__file__).resolve().parent
LITMUS = HERE.parent / "lowering/check-sync/litmus.mlir"


def run(*options: str | os.PathLike[str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(HERE / "litmus.py"), f"--bin={os.environ['COMMSIR_BIN']}", *map(str, options)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def test_weak_memory_shows_allowed_outcomes(tmp_path: pathlib.Path) -> None:
    """On three ranks all tests run; message passing shows the order that nobody forbids, and no other test a fault."""
    done = run("--target=cpu", "--ranks=3", "--times=64", "--runs=1", f"--json={tmp_path}/found.json")
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads((tmp_path / "found.json").read_text())
    assert found["mp_release_alone"]["counts"]["10"] > 0
    assert set(found["chain_fenced"]["counts"]) == {"2"}
    assert {"1", "2"} == set(found["chain_relaxed"]["counts"])
    assert found["shake_poison"]["counts"] == {"whole": 128}


def test_forbidden_outcome_fails(tmp_path: pathlib.Path) -> None:
    """A test that lists too little is one whose outcome is forbidden."""
    file = tmp_path / "few.mlir"
    part = next(part for part in LITMUS.read_text().split("// -----") if "@mp_release_alone(" in part)
    file.write_text(part.replace("in 00 01 10 11", "in 00 01 11"))
    done = run("--target=cpu", "--times=64", "--runs=2", f"--file={file}")
    assert done.returncode == 1
    assert "FAILED: forbidden: 10" in done.stdout


def test_hang_fails(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "hang.mlir"
    part = next(part for part in LITMUS.read_text().split("// -----") if "@written_again(" in part)
    file.write_text(part.replace("value %v1 at %c2", "value %v1 at %c0"))
    done = run("--target=cpu", "--ranks=3", "--times=4", "--runs=1", f"--file={file}")
    assert done.returncode == 1
    assert "deadlock" in done.stdout


def test_becomes_machine_code(tmp_path: pathlib.Path) -> None:
    done = run("--ranks=3", "--times=256", f"--ptx={tmp_path}")
    assert done.returncode == 0, done.stdout
    written = sorted(tmp_path.glob("*.ptx"))
    assert len(written) > 30
    ptxas = shutil.which("ptxas")
    if not ptxas:
        pytest.skip("no ptxas")
    for file in written[::6]:
        subprocess.run([ptxas, "-arch=sm_90", file, "-o", os.devnull], check=True)
