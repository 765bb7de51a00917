"""The package's programs restart themselves: as the ranks of a job, also inside Python."""

import pathlib
import subprocess
import sys

from conftest import ROOT, fake_gpus


def test_comms_run_starts_a_process_a_gpu(tmp_path: pathlib.Path) -> None:
    kernel = str(ROOT / "test" / "tools" / "Inputs" / "sum.mlir")
    script = tmp_path / "comms-run"
    script.write_text("from commsir._tools import comms_run\n\ncomms_run()\n")
    environment = fake_gpus(3, "exchange 24")
    common = [sys.executable, str(script), kernel, "--ranks=3", "--input=x=iota"]

    def run(*words: str) -> str:
        done = subprocess.run([*common, *words], capture_output=True, text=True, cwd=tmp_path, env=environment)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run("--output=y=y-%r.npy")
    shape = ["--protocol=pull", "--algorithm=one_shot", "--blocks=2", "--threads=64"]
    told = run("--target=cuda", "--windows=plain", *shape, "--launches=3", "--expect=y=y-%r.npy")
    assert "shared between processes" in told and "72 elements compared on 3 ranks: all as expected" in told
