"""Runs bench-cpu several times and prints one table: median, spread and the promised figure.

Usage: bench.py --bin BUILD/bin [--repetitions N] [--json FILE]
Ends with 1 if a promise of docs/Benchmarks.md is not met.
"""

import argparse
import json
import pathlib
import subprocess
import sys
from typing import Any

# name of the benchmark → (what is compared, limit, whether more is better)
PROMISES: dict[str, tuple[str, float, bool]] = {
    "compileRmsnorm/8": ("ms", 60.0, False),
    "compileRmsnorm/1024": ("ms", 60.0, False),
    "bandwidth/two_shot/iterations:3/manual_time": ("of_memcpy_%", 30.0, True),
    "manyRanks/1024_ranks_64KiB_two_shot_ll/iterations:1/manual_time": ("ms", 10000.0, False),
}


def measure(binary: pathlib.Path, repetitions: int) -> list[dict[str, Any]]:
    """All figures of the program: one entry a benchmark and aggregate."""
    print(f"running {binary.name}, {repetitions} repetitions; about a minute …", file=sys.stderr)
    done = subprocess.run(
        [
            binary,
            "--benchmark_format=json",
            f"--benchmark_repetitions={repetitions}",
            "--benchmark_min_time=0.2",
        ],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    entries: list[dict[str, Any]] = json.loads(done.stdout)["benchmarks"]
    return entries


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()

    entries = measure(options.bin / "bench-cpu", options.repetitions)
    if options.json:
        options.json.write_text(json.dumps(entries, indent=1))
    runs: dict[str, list[dict[str, Any]]] = {}
    for entry in entries:
        if entry["run_type"] == "iteration":
            runs.setdefault(entry["run_name"], []).append(entry)

    broken = []
    print("| benchmark | median ms | min–max ms | of memcpy | promised |")
    print("|---|---|---|---|---|")
    for name, of_name in runs.items():
        times = sorted(entry["real_time"] for entry in of_name)
        median = times[len(times) // 2]
        shares = sorted(entry.get("of_memcpy_%", 0.0) for entry in of_name)
        share = shares[len(shares) // 2]
        promise = ""
        if name in PROMISES:
            what, limit, more = PROMISES[name]
            value = median if what == "ms" else share
            kept = value >= limit if more else value <= limit
            promise = f"{'≥' if more else '≤'} {limit:g} {what}: {'met' if kept else 'MISSED'}"
            if not kept:
                broken.append(name)
        shown = f"{share:.0f} %" if share else ""
        print(f"| {name} | {median:.1f} | {times[0]:.1f}–{times[-1]:.1f} | {shown} | {promise} |")
    return 1 if broken else 0


sys.exit(main())
