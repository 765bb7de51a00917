# ===- compare-ptx.py - Compare the PTX of two builds ----------------------===#
#
# Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===-----------------------------------------------------------------------===#
"""Compares the PTX that two builds generate for the kernels of the tests and examples, byte for byte.

Usage: compare-ptx.py BEFORE AFTER [--chip sm_90] [--gpu "algorithm=ring protocol=ll"] [FILE...]

BEFORE and AFTER are `comms-translate` programs, for example a copy from before a change that must not affect code
generation. Without FILEs, it compiles every kernel of test/exec, test/lowering/ptx and test/demo. Returns 1 if a
kernel's PTX or error differs, or if no kernel compiles.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import pathlib
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("test/exec", "test/lowering/ptx", "test/demo")


def translate(program: str, file: pathlib.Path, gpu: str) -> tuple[bool, bytes]:
    """Returns whether the file compiles, and its PTX or the error."""
    run = subprocess.run([program, "--comms-to-ptx", str(file), f"--gpu={gpu}"], capture_output=True, check=False)
    return run.returncode == 0, run.stdout if run.returncode == 0 else run.stderr


def compare(options: argparse.Namespace, file: pathlib.Path) -> tuple[bool, str, bytes]:
    """Returns whether the file compiles, the difference or an empty string, and the PTX."""
    text = file.read_text(encoding="utf-8")
    gpu = f"chip={options.chip} check=false {options.gpu}"
    for name, number in (("ranks", options.ranks), ("blocks", 2)):
        if not re.search(rf"\b{name} = \d", text) and f"{name}=" not in options.gpu:
            run = re.search(rf"--{name}[= ](\d+)", text)
            gpu += f" {name}={run[1] if run else number}"
    (was_good, before), (is_good, after) = (
        translate(program, file, gpu) for program in (options.before, options.after)
    )
    if before == after and was_good == is_good:
        return is_good, "", after
    if was_good != is_good:
        return is_good, f"compiles only {'before' if was_good else 'after'}: {(after if was_good else before)!r}", after
    for number, (old, new) in enumerate(zip(before.splitlines(), after.splitlines(), strict=False), 1):
        if old != new:
            return is_good, f"line {number}: {old.decode()!r} became {new.decode()!r}", after
    return is_good, "one is longer", after


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare the PTX of two builds.")
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    parser.add_argument("--chip", default="sm_90")
    parser.add_argument("--gpu", default="", help="more options of the pipeline comms-to-nvvm")
    parser.add_argument("--ranks", type=int, default=4, help="for files whose RUN lines name no number of ranks")
    options = parser.parse_args()
    files = options.files or sorted(file for folder in FOLDERS for file in (ROOT / folder).rglob("*.mlir"))
    total, compiled, changed = hashlib.sha256(), 0, 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for file, (is_good, difference, ptx) in zip(files, pool.map(partial(compare, options), files), strict=True):
            if difference:
                changed += 1
                print(f"{file}: {difference}")
            elif is_good:
                compiled += 1
                total.update(ptx)
    refused = len(files) - compiled - changed
    print(
        f"{options.chip}: {compiled} files with the same PTX (sha256 {total.hexdigest()[:16]}), {changed} differ, "
        f"{refused} compile with neither"
    )
    return 1 if changed or not compiled else 0


if __name__ == "__main__":
    sys.exit(main())
