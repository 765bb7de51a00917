"""What CommsIR prints reaches terminals that are not UTF-8, and files are read as UTF-8 under every locale."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

#: The kernels of the programs below. Errors show their lines, which ASCII does not have.
KERNELS = """
import warnings
# A file that is read in the locale's encoding, in place of UTF-8, is an error.
warnings.filterwarnings("error", category=EncodingWarning, module=r"commsir(\\.|$)")
import numpy as np
import commsir
from commsir import *

n = dims("n")

@commsir.kernel
def total(x: f32[Window, n], y: f32[Array, n]) -> None:
    all_reduce(x, outs=(y,))  # µs × 2 … →

@commsir.kernel
def wrong(y: f32[Array, 4]) -> None:
    y = 1.0  # µs × 2 … →

@commsir.kernel
def hangs(x: f32[Window, 4], s: Signal[1]) -> None:
    wait_signal(s[0], ge=1)  # µs × 2 … →

INPUTS = {"x": [np.ones(4, np.float32)] * 2}
"""

#: By what they show: programs that follow the kernels above.
PROGRAMS = {
    "kernel": "print(total, repr(total))",
    "simulation": "print(total.simulate(ranks=2, inputs=INPUTS))",
    "check": "r = total.specialize(n=4).check(ranks=2); print(r, r.proof, r.remarks)",
    "explanation": "print(total.specialize(n=4).explain(ranks=2))",
    "compile-error": """
try:
    wrong.text()
except commsir.CompileError as error:
    print(error, *error.diagnostics)
""",
    "deadlock": """
try:
    hangs.simulate(ranks=2, check=False)
except commsir.DeadlockError as error:
    print(error, *error.waiting, *error.diagnostics)
""",
    "usage-error": """
try:
    total.simulate(ranks=2, inputs={"höhe": 1})
except commsir.UsageError as error:
    print(error)
""",
    "trace": """
import tempfile
with tempfile.TemporaryDirectory() as folder:
    print(total.simulate(ranks=2, inputs=INPUTS, trace=folder + "/trace.json"))
""",
    "sequence": "print(commsir.host_read('höhe'))",
    "doctor": "print(commsir.doctor())",
    "demo": "from commsir import demo; demo.main()",
    "torch-reports": """
import pytest
pytest.importorskip("torch")
from commsir.torch.reporting import Fusion, Report
one = Fusion("all_reduce", "größe", (4,), ("add",), ("saves 3 µs → 2 ×",), predicted=1.5, source="größe.py:1: µ")
print(one, Report([one]))
""",
    "torch-bench-help": """
import sys
import pytest
pytest.importorskip("torch")
from commsir.torch import bench
sys.argv[1:] = ["--help"]
bench.main()
""",
    "torch-sources": """
import pytest
pytest.importorskip("torch")
from commsir.torch import compile
print(compile._sources())
""",
}

#: The programs of the library, which write UTF-8 everywhere.
TOOLS = {
    "comms_run": ["größe.mlir", "--ranks", "2", "--input", "höhe=iota"],
    "comms_opt": ["größe.mlir"],
    "comms_translate": ["--comms-to-llvmir", "--ranks=2", "größe.mlir"],
    "comms_bench": ["--target", "cpu", "--ranks", "2", "--sizes", "1K", "--op", "all_reduce", "--calls", "1"],
}


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[bytes]:
    """Runs a command in a terminal of ASCII, and a locale that has nothing else."""
    terminal = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii", "PYTHONWARNDEFAULTENCODING": "1"}
    (folder / "größe.mlir").write_text(
        """comms.kernel @"größe"(%x: !comms.window<4xf32> {comms.name = "höhe"}) { comms.return }""", encoding="utf-8"
    )
    return subprocess.run(command, env={**os.environ, **terminal}, cwd=os.fsencode(folder), capture_output=True)


@pytest.mark.parametrize("what", PROGRAMS)
def test_reports_in_ascii(what: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(KERNELS + PROGRAMS[what], encoding="utf-8")
    done = run([sys.executable, str(program)], tmp_path)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.isascii() and done.stdout.strip()


@pytest.mark.parametrize("tool", TOOLS)
def test_tools_in_ascii(tool: str, tmp_path: Path) -> None:
    program = f"from commsir._tools import {tool}; {tool}()"
    done = run([sys.executable, "-c", program, *TOOLS[tool]], tmp_path)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.decode("utf-8").strip()
