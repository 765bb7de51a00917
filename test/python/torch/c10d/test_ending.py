"""Programs end while threads of a group, or of Gloo behind it, may still hold what is Python's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import ending
import pytest

#: Those that take no longer than an end.
QUICK = [case.__name__ for case in ending.CASES if case.__name__ != "alone"]


def failures(implementation: str, folder: Path, turns: int, *cases: str) -> list[object]:
    program = [sys.executable, str(Path(ending.__file__)), str(folder), str(turns), *cases]
    environment = {**os.environ, "COMMSIR_TORCH_BACKEND": implementation, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(program, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


def test_programs_end_well(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    assert failures(str(pytestconfig.getoption("--backend")), tmp_path, 2, *QUICK) == []


def test_a_call_that_nobody_joins_does_not_hold_up_the_end(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    assert failures(str(pytestconfig.getoption("--backend")), tmp_path, 1, "alone") == []
