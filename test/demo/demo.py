"""The demo of CommsIR: on 8 ranks of the CPU world, and on this machine's GPUs if it has two or more.

1. Cuts the handwritten digits that scikit-learn ships into one shard for each rank.
2. Runs all-reduce + residual add + RMSNorm as one kernel, and compares every rank's result with
   NumPy in float64. If there are GPUs, the same file also runs there, with one rank per GPU.
3. Gives a kernel with a missing signal to the checker, and then runs it to show how a deadlock
   is reported.

Usage: demo.py --bin build/bin [--gpus N]
"""

import argparse
import ctypes
import pathlib
import shutil
import subprocess
import sys
import tempfile
import textwrap
from typing import Any

import ml_dtypes
import numpy as np
from sklearn.datasets import load_digits

Array = np.ndarray[Any, Any]

HERE = pathlib.Path(__file__).parent
RANKS = 8
ROWS = 192
BF16 = ml_dtypes.bfloat16
# Exit codes of comms-run.
REFUSED, DEADLOCK = 4, 5


class Steps:
    """Numbers the headings."""

    def __init__(self) -> None:
        self.number = 0

    def heading(self, text: str) -> None:
        self.number += 1
        print(f"\n{self.number}. {text}\n{'-' * (len(text) + 3)}", flush=True)


def count_gpus() -> int:
    """GPUs that the driver shows; 0 where there is no driver."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int()
    if cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count)):
        return 0
    return count.value


def save_digits(folder: pathlib.Path, ranks: int) -> None:
    """Each rank's shard, the residual, the weight, and the reference, as .npy files."""
    pixels = load_digits().data / 16.0
    shards: list[Array] = [pixels[rank * ROWS : (rank + 1) * ROWS].astype(BF16) for rank in range(ranks)]
    residual = pixels[RANKS * ROWS : (RANKS + 1) * ROWS].astype(BF16)
    weight = (0.5 + pixels.mean(axis=0)).astype(BF16)
    for rank, shard in enumerate(shards):
        np.save(folder / f"x-{rank}.npy", shard)
    np.save(folder / "residual.npy", residual)
    np.save(folder / "weight.npy", weight)

    added = sum(shard.astype(np.float64) for shard in shards) + residual.astype(np.float64)
    mean_square = np.mean(added**2, axis=-1, keepdims=True)
    np.save(folder / "y.npy", added / np.sqrt(mean_square + 1e-6) * weight.astype(np.float64))
    np.save(folder / "next.npy", added)


def run(binaries: pathlib.Path, folder: pathlib.Path, arguments: list[str], expected: int) -> bool:
    """Shows a command, and runs it in `folder`; whether it ended with the expected status."""
    lines = textwrap.wrap("comms-run " + " ".join(arguments), 84, break_on_hyphens=False)
    print("$ " + " \\\n    ".join(lines) + "\n", flush=True)
    binary = (binaries / "comms-run").resolve()
    done = subprocess.run([binary, *arguments], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(textwrap.indent(done.stdout.replace(f"{folder}/", ""), "   "), end="", flush=True)
    if done.returncode == expected:
        return True
    print(f"\nUNEXPECTED: exit status {done.returncode}, expected {expected}")
    return False


def fused_kernel(steps: Steps, binaries: pathlib.Path, folder: pathlib.Path) -> bool:
    steps.heading(f"{RANKS} shards of handwritten digits")
    save_digits(folder, RANKS)
    print(f"   {RANKS} ranks, {ROWS} images each, 64 pixels an image, bf16, as .npy files")

    steps.heading(f"All-reduce + residual add + RMSNorm: one kernel, {RANKS} ranks")
    print("   The kernel is test/demo/rmsnorm.mlir; the reference is NumPy in float64.\n")
    shutil.copy(HERE / "rmsnorm.mlir", folder)
    return run_fused(binaries, folder, [f"--ranks={RANKS}", "--blocks=2"])


def on_gpus(steps: Steps, binaries: pathlib.Path, folder: pathlib.Path, gpus: int) -> bool:
    steps.heading(f"The same file on {gpus} GPUs of this machine, a rank each")
    save_digits(folder, gpus)
    return run_fused(binaries, folder, ["--target=cuda", f"--ranks={gpus}"])


def run_fused(binaries: pathlib.Path, folder: pathlib.Path, flags: list[str]) -> bool:
    arguments = ["rmsnorm.mlir", *flags, "--input=x=x-%r.npy"]
    arguments += [f"--input={name}={name}.npy" for name in ("residual", "weight")]
    arguments += [f"--expect={name}={name}.npy" for name in ("y", "next")]
    return run(binaries, folder, arguments, 0)


def deadlock(steps: Steps, binaries: pathlib.Path, folder: pathlib.Path) -> bool:
    shutil.copy(HERE / "deadlock.mlir", folder)
    kernel = "deadlock.mlir"
    steps.heading("A kernel with a missing signal: refused before it runs")
    if not run(binaries, folder, [kernel, "--ranks=4"], REFUSED):
        return False
    print("\n   The checker simulated every rank, and found a wait that never ends (status 4).")

    steps.heading("The same kernel, run without the checker: a report, not a hang")
    if not run(binaries, folder, [kernel, "--ranks=4", "--no-check"], DEADLOCK):
        return False
    print("\n   Each waiting rank, its source line, and what it waits for (status 5).")
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="folder of comms-run")
    parser.add_argument("--gpus", type=int, default=-1, help="GPUs to run on as well, at most 8; fewer than 2: none")
    options = parser.parse_args()
    # There are shards for so many ranks.
    gpus = min(count_gpus() if options.gpus < 0 else options.gpus, RANKS)
    steps = Steps()
    with tempfile.TemporaryDirectory(prefix="commsir-demo-") as name:
        folder = pathlib.Path(name)
        good = fused_kernel(steps, options.bin, folder)
        if good and gpus >= 2:
            good = on_gpus(steps, options.bin, folder, gpus)
        if not good or not deadlock(steps, options.bin, folder):
            return 1
    print(
        "\nNext:\n"
        "   build/bin/comms-run --help          how to run your own kernel\n"
        "   docs/Tutorial.md                    write a collective of your own\n"
        "   test/examples/                      LayerNorm, softmax, fp8, ... as kernels\n"
        "   make test                           all tests"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
