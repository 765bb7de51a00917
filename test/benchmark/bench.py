"""Runs bench-cpu and bench-jit several times and prints tables: median, spread and limits.

Usage: bench.py --bin BUILD/bin [--only cpu|jit] [--repetitions N] [--json FILE]
Ends with status 1 if a figure exceeds a limit of docs/Benchmarks.md.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
from typing import Any

# name of the benchmark → (what is compared, limit, whether more is better)
PROMISES: dict[str, tuple[str, float, bool]] = {
    "compileRmsnorm/8": ("ms", 60.0, False),
    "compileRmsnorm/1024": ("ms", 60.0, False),
    "bandwidth/two_shot/iterations:3/manual_time": ("of_memcpy_%", 30.0, True),
    "manyRanks/1024_ranks_64KiB_two_shot_ll/iterations:1/manual_time": ("ms", 10000.0, False),
}
# The fused kernel for GPUs. The cold one is a target and no promise: most of it is nvJitLink's.
DISK_MS, CALL_NS = 3.0, 1000.0
KERNELS = {"fused": "all-reduce + residual + RMSNorm, 8 x 8192 bf16", "flat": "all-reduce of 64 Ki bf16"}
PHASES = (
    "parser",
    "choice",
    "module's bytes for the key",
    "linker's identity",
    "copy for the proof",
    "passes",
    "to LLVM IR",
    "LLVM's optimizer",
    "PTX",
    "linker",
    "waiting for the proof",
    "disk, reading",
    "disk, writing",
    "reading the entry",
)


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


def report_cpu(entries: list[dict[str, Any]]) -> list[str]:
    """Prints the table of bench-cpu; what is broken."""
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
    return broken


class Jit:
    """Runs of bench-jit, over the driver of the tests."""

    def __init__(self, folder: pathlib.Path, repetitions: int) -> None:
        self.binary = folder / "bench-jit"
        self.repetitions = repetitions
        fake = folder.parent / "lib" / "fake-cuda"
        # nvJitLink where the environment or the tests' packages have it.
        linkers = [
            path.parent
            for path in pathlib.Path(sys.prefix).glob("lib/python*/site-packages/nvidia/cu*/lib/libnvJitLink*")
        ]
        paths = [str(fake), *map(str, linkers), os.environ.get("LD_LIBRARY_PATH", "")]
        # Cold is cold: where there is a driver, nvJitLink takes what it has linked before from CUDA's cache.
        self.environment = os.environ | {
            "LD_LIBRARY_PATH": ":".join(paths),
            "COMMSIR_FAKE_GPUS": "8",
            "CUDA_CACHE_DISABLE": "1",
        }

    def run(self, cache: str, *arguments: str) -> dict[str, Any]:
        done = subprocess.run(
            [self.binary, *arguments],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            env=self.environment | {"COMMSIR_CACHE_DIR": cache},
        )
        figures: dict[str, Any] = json.loads(done.stdout)
        return figures

    def samples(self, *arguments: str) -> dict[str, list[dict[str, Any]]]:
        """Of each kind: the first of a process and later ones, cold and from disk, and from memory."""
        kinds: dict[str, list[dict[str, Any]]] = {}
        for _ in range(self.repetitions):
            with tempfile.TemporaryDirectory() as cache:
                cold = self.run(cache, "--times=3", *arguments)
                warm = self.run(cache, "--times=3", *arguments)
            kinds.setdefault("cold, the first of a process", []).append(cold["first"])
            kinds.setdefault("cold, later", []).extend(cold["later"])
            kinds.setdefault("from disk, the first of a process", []).append(warm["first"])
            kinds.setdefault("from disk, later", []).extend(cold["disk"])
            kinds.setdefault("from memory", []).extend(cold["memory"])
        return kinds


def describe(values: list[float]) -> str:
    digits = 1 if min(values) >= 1 else 3
    return f"{statistics.median(values):.{digits}f} [{min(values):.{digits}f} {max(values):.{digits}f}]"


def report_phases(samples: list[dict[str, Any]]) -> None:
    """Of the fastest sample."""
    fastest = min(samples, key=lambda sample: float(sample["ms"]))
    phases = fastest["phases"]
    told = {name: phases[name] for name in PHASES if name in phases}
    told["the rest"] = fastest["ms"] - sum(told.values())
    parts = [
        f"{name} {100 * part / fastest['ms']:.0f} %" for name, part in told.items() if part >= 0.005 * fastest["ms"]
    ]
    print(f"  {fastest['ms']:.1f} ms: " + ", ".join(parts))


def report_jit(jit: Jit) -> list[str]:
    """Prints what bench-jit measures; what is broken."""
    print("running bench-jit; half a minute …", file=sys.stderr)
    broken = []
    print("| kernel for sm_90, 8 ranks | what | ms | processor's ms |")
    print("|---|---|---|---|")
    for kernel, text in KERNELS.items():
        for check in ("", "--no-check"):
            kinds = jit.samples(f"--kernel={kernel}", *([check] if check else []))
            for kind, samples in kinds.items():
                name = f"{text}{', no check' if check else ''}"
                times = [float(sample["ms"]) for sample in samples]
                print(
                    f"| {name} | {kind} | {describe(times)} | {describe([float(s['processor_ms']) for s in samples])} |"
                )
                if kind.startswith("from disk") and statistics.median(times) > DISK_MS:
                    broken.append(f"{name}: {kind}")
    for kernel, text in KERNELS.items():
        print(f"\nPhases, {text}:")
        kinds = jit.samples(f"--kernel={kernel}", "--phases")
        for kind in ("cold, the first of a process", "cold, later", "from disk, the first of a process"):
            print(f"- {kind}:")
            report_phases(kinds[kind])
    with tempfile.TemporaryDirectory() as cache:
        calls = jit.run(cache, "--kernel=calls")
    print(
        "\nWhat a repeated call adds to the driver's own: "
        + ", ".join(f"{n[:-3]} {v:.0f} ns" for n, v in calls.items())
    )
    broken += [name for name in ("launch_ns", "all_reduce_ns", "fused_ns") if calls[name] > CALL_NS]
    return broken


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--only", choices=["cpu", "jit"])
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--json", type=pathlib.Path, help="figures of bench-cpu")
    options = parser.parse_args()

    broken = []
    if options.only != "jit":
        entries = measure(options.bin / "bench-cpu", options.repetitions)
        if options.json:
            options.json.write_text(json.dumps(entries, indent=1))
        broken += report_cpu(entries)
        print()
    if options.only != "cpu" and (options.bin / "bench-jit").exists():
        broken += report_jit(Jit(options.bin.resolve(), options.repetitions))
    return 1 if broken else 0


sys.exit(main())
