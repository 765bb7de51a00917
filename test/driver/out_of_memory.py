"""The programs, with memory that runs out at any allocation: one line says so, and no signal ends them.

Usage: out_of_memory.py --bin FOLDER --library FILE [--points N]

FILE is failing-malloc.c, built. Of the allocations of each program, N are chosen, from the start of its main function
to its end. Each fails alone, and with all that follow.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

KERNEL = """
comms.kernel @sum(%x: !comms.window<8x64xf32>, %y: memref<8x64xf32>) {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : !comms.window<8x64xf32>) outs(%y : memref<8x64xf32>)
  comms.return
}
"""
#: What is run, and the exit status that says that memory ran out.
PROGRAMS = {
    "comms-run FILE --ranks 2": 2,
    "comms-run FILE --ranks 2 --no-check --fuzz-schedules 4": 2,
    "comms-opt FILE --pass-pipeline=builtin.module(comms-to-cpu{ranks=2})": 1,
    "comms-translate --comms-to-ptx --ranks=2 --gpu=blocks=4 FILE": 1,
    "comms-bench --target cpu --ranks 2 --sizes 1K --calls 1 --no-baselines": 2,
}
#: Before main, objects of LLVM take about 500: what fails there ends the process by a signal.
BEFORE_MAIN = 700
LINE = re.compile(r"comms-[a-z]+: error: [^\n]*\bmemory\b[^\n]*\n")


def run(command: list[str], library: str, **settings: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "LD_PRELOAD": library, "COMMSIR_COMPILER": "off", **settings}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)


def fault(done: subprocess.CompletedProcess[str], status: int) -> str:
    """What is wrong with the end of a program; empty: nothing."""
    if done.returncode == 0:  # LLVM and the library can do without some allocations.
        return ""
    if done.returncode != status:
        return f"exit status {done.returncode} in place of {status}"
    return "" if LINE.fullmatch(done.stderr) else "not one line that names memory"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--library", required=True)
    parser.add_argument("--points", type=int, default=5)
    options = parser.parse_args()
    found = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        kernel = pathlib.Path(folder, "sum.mlir")
        kernel.write_text(KERNEL, encoding="utf-8")
        for words, status in PROGRAMS.items():
            name, *rest = words.replace("FILE", str(kernel)).split()
            command = [str(options.bin / name), *rest]
            whole = run(command, options.library, FAIL_COUNT="1")
            counted = re.search(r"allocations: (\d+)\n", whole.stderr)
            if whole.returncode or not counted:
                sys.exit(f"{words}: exit status {whole.returncode}: {whole.stderr}")
            step = (int(counted[1]) - BEFORE_MAIN) // options.points
            for number in range(BEFORE_MAIN, int(counted[1]), max(1, step)):
                for settings in ({}, {"FAIL_ONCE": "1"}):
                    done = run(command, options.library, FAIL_AT=str(number), **settings)
                    failed += done.returncode != 0
                    if wrong := fault(done, status):
                        found += 1
                        print(f"{words}: allocation {number} {settings}: {wrong}\n{done.stderr}")
    print(f"{failed} runs ended without memory, {found} of them badly")
    # Most of the allocations are needed.
    return 1 if found or failed < 6 * options.points else 0


sys.exit(main())
