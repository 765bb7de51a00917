#!/usr/bin/env python3
"""Generated kernels against their hand-written twins, in turns, on the GPUs of this host.

  twins.py BIN TWIN [--ranks N] [--rounds K] [--limit PERCENT] [--json FILE]

BIN has comms-bench, TWIN is test/gpu/twin/allreduce.cu as nvcc builds it. Each round measures both at every size, the
one right after the other, so that a slow spell of the host meets both; the best shape of each side counts, as a median
of rounds. Exit status 1: a result was wrong, or a generated kernel was slower than its twin by more than the limit.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from typing import Any

# Environment without NVLink multicast, which is never probed.
QUIET = {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1", "NVSHMEM_DISABLE_NVLS": "1"}


def run(command: list[str], timeout: float) -> None:
    """Runs a program; ends this one with what it said when it fails."""
    made = subprocess.run(
        command, capture_output=True, text=True, timeout=timeout, env={**os.environ, **QUIET}, check=False
    )
    if made.returncode:
        sys.exit(f"{' '.join(command)}: exit status {made.returncode}\n{made.stdout[-2000:]}{made.stderr[-2000:]}")


def best_generated(path: str) -> dict[int, float]:
    """Microseconds of the best shape by bytes, from a report of comms-bench."""
    with open(path, encoding="utf-8") as file:
        report: dict[str, Any] = json.load(file)
    best: dict[int, float] = {}
    for row in report["results"]:
        if row.get("message") or row["baseline"]:
            continue
        if not row["exact"]:
            sys.exit(f"{row['contender']} gave a wrong result at {row['bytes']} bytes")
        best[row["bytes"]] = min(best.get(row["bytes"], float("inf")), row["median_us"])
    return best


def best_twin(path: str) -> dict[int, float]:
    """The same of the twin, whose report has one line for each variant."""
    best: dict[int, float] = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            row: dict[str, Any] = json.loads(line)
            if row["wrong"]:
                sys.exit(f"the twin {row['name']} gave a wrong result at {row['bytes']} bytes")
            best[row["bytes"]] = min(best.get(row["bytes"], float("inf")), row["us"])
    return best


def compare(generated: list[dict[int, float]], twin: list[dict[int, float]]) -> list[dict[str, float]]:
    """One row for each size that both sides were measured at, in every round."""
    rows = []
    for size in sorted(set.intersection(*(set(round_) for round_ in generated + twin))):
        ours = statistics.median(round_[size] for round_ in generated)
        theirs = statistics.median(round_[size] for round_ in twin)
        ratio = statistics.median(a[size] / b[size] for a, b in zip(generated, twin, strict=True))
        rows.append({"bytes": size, "generated_us": ours, "twin_us": theirs, "ratio": ratio})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin")
    parser.add_argument("twin")
    parser.add_argument("--ranks", type=int, default=0, help="GPUs [all]")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=3.0, help="percent that a generated kernel may be slower [3]")
    parser.add_argument("--json", help="write the table")
    args = parser.parse_args()
    ranks = ["--ranks", str(args.ranks)] if args.ranks else []
    generated, twin = [], []
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = os.path.join(folder, "ours.json"), os.path.join(folder, "twin.json")
        for _ in range(args.rounds):
            shapes = ["--algorithm", "one_shot,two_shot", "--protocol", "lamport", "--threads", "64,128"]
            speed = ["--no-baselines", "--no-check", "--full", "--quiet", "--repetitions", "2"]
            bench = os.path.join(args.bin, "comms-bench")
            run([bench, *ranks, "--sizes", "1K..1M*4", *shapes, *speed, "--json", ours], 120)
            run([args.twin, *ranks, "--min", "1024", "--max", "1048576", "--only", "lamport", "--json", theirs], 120)
            generated.append(best_generated(ours))
            twin.append(best_twin(theirs))
    rows = compare(generated, twin)
    if not rows:
        sys.exit("no size was measured on both sides")
    print("     bytes  generated µs  twin µs  ratio")
    for row in rows:
        print(f"{row['bytes']:10.0f}  {row['generated_us']:12.2f}  {row['twin_us']:7.2f}  {row['ratio']:5.3f}")
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)
    if any(row["ratio"] > 1 + args.limit / 100 for row in rows):
        sys.exit(f"slower than the twin by more than {args.limit} %")


if __name__ == "__main__":
    main()
