#!/usr/bin/env python3
"""Generated kernels against their hand-written twins, in turns, on the GPUs of this host.

  twins.py [--bin FOLDER] [--twins FOLDER] [--only NAME ...] [--ranks N] [--level quick|full] [--rounds K]
           [--limit PERCENT] [--json FILE]

The twins are test/gpu/twin/allreduce.cu, rmsnorm.cu and matmul.cu: the programs twin-allreduce, twin-rmsnorm and
twin-matmul in the folder --twins (by default that of --bin), or built now with nvcc. If there are none and no nvcc,
nothing is compared: a message says so, and the status is 0. --only lists the twins to compare.

Each round measures all configs of a twin at every size. Then, at each size, it measures the generated kernels of the
algorithm that was the twin's best there, in the twin's shapes: right after the twin, so that a slow spell of the host
affects both. Each side counts with its best shape. Two conditions must hold:

  - a generated kernel takes at most --limit percent (3) more than its twin;
  - the twin is not slow itself: on 4 and 8 GPUs it takes at most --limit percent more than the first hand-written
    kernels took (FIRST), which ran on another host.

Matmuls next to collectives (twin-matmul) are compared with the ops of commsir.torch, which test/gpu/matmul.py measures
and which need torch: the twin has the same plan, written by hand with cuBLASLt. The ops may take 5 percent more.

The rounds separate all conditions from noise: a condition fails only if the lower end of the 95 % interval of the
median, an order statistic of the rounds (the smallest of 5, the second smallest of 8), exceeds its limit. Fewer than 5
rounds decide nothing. The config that CommsIR chooses by itself is also measured, and decides nothing.

Exit status 1: a result was wrong, or a condition does not hold. 2: the measurement was not possible.
"""

import argparse
import ctypes
import importlib.util
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import comb
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Environment without NVLink multicast, which is never probed.
QUIET = {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1", "NVSHMEM_DISABLE_NVLS": "1"}

KIB = 1024
# First hand-written all-reduces of bf16, µs by GPUs and KiB.
FIRST = {
    4: {1: 2.8, 8: 3.2, 64: 3.6, 256: 5.4, 1024: 9.4, 4096: 23.9, 16384: 82.1, 65536: 320, 262144: 1245},
    8: {1: 3.2, 8: 3.5, 64: 4.8, 256: 7.5, 1024: 10.7, 4096: 27.7, 16384: 96, 65536: 375, 262144: 1471},
}
#: Of matmuls; percent that ours may be slower.
MATMUL_ROWS = {"quick": [8192], "full": [2048, 4096, 8192, 16384]}
MATMUL_LIMIT = 5.0
#: What measures ours, on each rank.
MATMUL = [ROOT / "test" / "gpu" / "matmul.py", "--parts", "speed", "--only", "overlapped", "--rounds", 3]
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
SIZES = {"quick": [1, 8, 64, 256, 1024, 4096], "full": [1, 8, 64, 256, 1024, 4096, 16384, 65536, 262144]}
ROWS = [1, 8, 64, 512]
# What the twin's ways are called, and what a generated kernel of the same algorithm is: algorithm, protocol, threads.
FAMILIES = {
    "one_shot_lamport": ("one_shot", "lamport", "32,64,128,256"),
    # More than the twin has: the table's best at 4 MiB, on 2 GPUs, are of 512 and 1024 threads.
    "two_shot_lamport": ("two_shot", "lamport", "64,128,256,512,1024"),
    "two_shot_barrier": ("two_shot", "pull", "256,512"),
    "permutation": ("permutation", "push", "256,512,1024"),
}
# Shapes of a row of 8192: threads of a CTA, CTAs of a cluster.
ROW_SHAPES = [("64,128", 8), ("256", 4), ("512", 2), ("1024", 1)]

NO_TWINS = (
    "twins.py: generated kernels were NOT compared with hand-written ones: there is no nvcc (CUDA's, on PATH), and no"
    " {}/twin-allreduce, which it can build elsewhere: nvcc -O3 -std=c++20 -arch=sm_90 -Xcompiler -pthread"
    " test/gpu/twin/allreduce.cu -lnccl -o twin-allreduce; twin-rmsnorm likewise, twin-matmul with -lcublasLt"
)
NAMES = ("allreduce", "rmsnorm", "matmul")


class TwinError(Exception):
    """It could not be measured."""


class WrongError(Exception):
    """A kernel gave a wrong result."""


@dataclass
class Times:
    """Microseconds, one of each round."""

    ours: list[float] = field(default_factory=list)
    twin: list[float] = field(default_factory=list)
    chosen: list[float] = field(default_factory=list)
    what: str = ""


def count_gpus() -> int:
    """GPUs that the driver shows; 0 where there is no driver."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int()
    return 0 if cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count)) else count.value


def run(command: list[Any], timeout: float, allowed: tuple[int, ...] = (0,)) -> None:
    words = [str(word) for word in command]
    try:
        made = subprocess.run(
            words, capture_output=True, text=True, timeout=timeout, env={**os.environ, **QUIET}, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise TwinError(f"{' '.join(words)}: {error}") from error
    if made.returncode not in allowed:
        raise TwinError(f"{' '.join(words)}: exit status {made.returncode}\n{made.stdout[-2000:]}{made.stderr[-2000:]}")


def rounds(what: str, count: int) -> Iterator[int]:
    """Counts them, and says to stderr how far it is and what they take."""
    start = time.monotonic()
    for done in range(count):
        print(f"{what}: round {done + 1} of {count}, {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
        yield done


# ---------------------------------------------------------------------------------------------------
# The twins
# ---------------------------------------------------------------------------------------------------


def build(source: str, folder: pathlib.Path) -> pathlib.Path:
    """By nvcc, with this Python's NCCL and cuBLASLt where it has them."""
    program = folder / f"twin-{source}"
    flags: list[str] = []
    for package, name in (("nccl", "nccl"), *((("cu13", "cublasLt"),) if source == "matmul" else ())):
        place = pathlib.Path(sysconfig.get_paths()["purelib"]) / "nvidia" / package
        found = sorted((place / "lib").glob(f"lib{name}.so.*"))
        if found:
            flags += [f"-I{place}/include", f"-L{found[0].parent}", f"-l:{found[0].name}"]
            flags += ["-Xlinker", f"-rpath={found[0].parent}"]
        else:
            flags.append(f"-l{name}")
    code = ROOT / "test" / "gpu" / "twin" / f"{source}.cu"
    run(["nvcc", "-O3", "-std=c++20", "-arch=native", code, "-o", program, "-Xcompiler", "-pthread", *flags], 600)
    return program


def find_twins(folder: pathlib.Path, made: pathlib.Path, names: Iterable[str] = NAMES) -> dict[str, pathlib.Path]:
    found = {name: folder / f"twin-{name}" for name in names if (folder / f"twin-{name}").exists()}
    if shutil.which("nvcc"):
        found |= {name: build(name, made) for name in names if name not in found}
    return found


def read_twin(path: pathlib.Path, key: str, asked: Iterable[int]) -> dict[int, dict[str, float]]:
    """Microseconds by size and name, of a report with one line for each way; NCCL's are left out."""
    times: dict[int, dict[str, float]] = {}
    for line in path.read_text().splitlines():
        row: dict[str, Any] = json.loads(line)
        if row["name"] == "nccl":
            continue
        if row["wrong"]:
            raise WrongError(f"the twin {row['name']} gave a wrong result at {row[key]} {key}")
        times.setdefault(row[key], {})[row["name"]] = row["us"]
    if missing := [size for size in asked if size not in times]:
        raise TwinError(
            f"the twin measured nothing at {', '.join(map(str, missing))} {key}: was it built from older sources?"
        )
    return times


def family(name: str) -> str:
    """ "one_shot" of "one_shot/c8/t128"."""
    return name.split("/")[0]


def best_of(times: dict[str, float], of: str) -> float:
    return min(us for name, us in times.items() if family(name) == of)


# ---------------------------------------------------------------------------------------------------
# Ours
# ---------------------------------------------------------------------------------------------------


def measure_ours(bench: pathlib.Path, ranks: int, words: list[Any], out: pathlib.Path) -> dict[int, float]:
    """Microseconds of the best shape by bytes."""
    speed = ["--no-baselines", "--no-check", "--full", "--quiet", "--repetitions", 2, "--json", out]
    out.unlink(missing_ok=True)
    # 1: a result was wrong, as the report says; 3: none of these could be run.
    run([bench, "--ranks", ranks, *words, *speed], 300, (0, 1, 3))
    best: dict[int, float] = {}
    for row in json.loads(out.read_text())["results"] if out.exists() else []:
        inexact = row["op"] == "all_reduce" and row["status"] == "ok" and not row["exact"]
        if row["status"] == "wrong" or inexact:
            raise WrongError(f"{row['contender']} gave a wrong result at {row['bytes']} bytes")
        if row["status"] == "ok":
            best[row["bytes"]] = min(best.get(row["bytes"], float("inf")), row["median_us"])
    return best


def compare_flat(
    twin: pathlib.Path, bench: pathlib.Path, options: argparse.Namespace, out: pathlib.Path
) -> list[Times]:
    sizes = [size * KIB for size in SIZES[options.level]]
    all_times = {size: Times() for size in sizes}
    for _ in rounds("all-reduce", options.rounds):
        listed = ",".join(map(str, sizes))
        run([twin, "--ranks", options.ranks, "--sizes", listed, "--json", out], 600)
        measured = read_twin(out, "bytes", sizes)
        for size, times in all_times.items():
            # The first round says which algorithm it is.
            times.what = times.what or family(min(measured[size], key=lambda name: measured[size][name]))
            times.twin.append(best_of(measured[size], times.what))
        for name, (algorithm, protocol, threads) in FAMILIES.items():
            mine = [size for size in sizes if all_times[size].what == name]
            if not mine:
                continue
            way = ["--algorithm", algorithm, "--protocol", protocol, "--threads", threads]
            best = measure_ours(bench, options.ranks, ["--sizes", ",".join(map(str, mine)), *way], out)
            for size in mine:
                if size not in best:
                    raise TwinError(f"no generated kernel of {algorithm}/{protocol} was measured at {size} bytes")
                all_times[size].ours.append(best[size])
    return list(all_times.values())


def compare_rows(
    twin: pathlib.Path, bench: pathlib.Path, options: argparse.Namespace, out: pathlib.Path, fp8: bool
) -> list[Times]:
    all_times = {rows: Times() for rows in ROWS}
    op = ["--op", "all_reduce_rmsnorm" + ("_fp8" if fp8 else ""), "--hidden", 8192]
    for _ in rounds("rows in fp8" if fp8 else "rows", options.rounds):
        run([twin, "--ranks", options.ranks, "--hidden", 8192, "--fp8", int(fp8), "--json", out], 300)
        measured = read_twin(out, "rows", ROWS)
        for rows, times in all_times.items():
            times.what = times.what or family(min(measured[rows], key=lambda name: measured[rows][name]))
            times.twin.append(best_of(measured[rows], times.what))
        for algorithm in sorted({times.what for times in all_times.values()}):
            mine = [rows for rows in ROWS if all_times[rows].what == algorithm]
            best: dict[int, float] = {}
            for threads, cluster in ROW_SHAPES:
                way = ["--algorithm", algorithm, "--protocol", "lamport", "--threads", threads, "--cluster", cluster]
                got = measure_ours(bench, options.ranks, [*op, "--rows", ",".join(map(str, mine)), *way], out)
                best |= {size: min(us, best.get(size, us)) for size, us in got.items()}
            for rows in mine:
                if rows * 8192 * 2 not in best:
                    raise TwinError(f"no generated kernel of {algorithm}/lamport was measured at {rows} rows")
                all_times[rows].ours.append(best[rows * 8192 * 2])
        chosen = measure_ours(bench, options.ranks, [*op, "--rows", ",".join(map(str, ROWS))], out)
        for rows, times in all_times.items():
            if rows * 8192 * 2 not in chosen:
                raise TwinError(f"what is chosen was not measured at {rows} rows")
            times.chosen.append(chosen[rows * 8192 * 2])
    return list(all_times.values())


def measure_matmuls(ranks: int, all_rows: list[int], out: pathlib.Path) -> dict[tuple[str, int], float]:
    """Microseconds of ours in the best number of blocks, by operation and rows."""
    listed = ",".join(map(str, all_rows))
    out.unlink(missing_ok=True)
    run([*TORCHRUN, "--nproc-per-node", ranks, *MATMUL, "--rows", listed, "--json", out], 600)
    best: dict[tuple[str, int], float] = {}
    for key, times in json.loads(out.read_text()).items():
        op, rows = key.split()
        best[op, int(rows)] = min(times.values())
    return best


def compare_matmuls(twin: pathlib.Path, options: argparse.Namespace, out: pathlib.Path) -> list[tuple[str, Times]]:
    all_rows = MATMUL_ROWS[options.level]
    all_times: dict[tuple[str, int], Times] = {}
    for _ in rounds("matmuls", options.rounds):
        # It ends with 1 if a result is wrong, which its report says as well.
        run([twin, "--ranks", options.ranks, "--rows", ",".join(map(str, all_rows)), "--json", out], 600, (0, 1))
        measured = read_twin(out, "rows", all_rows)
        ours = measure_matmuls(options.ranks, all_rows, out)
        for (op, rows), us in ours.items():
            times = all_times.setdefault((op, rows), Times(what=op))
            times.ours.append(us)
            times.twin.append(best_of(measured[rows], op))
    return [(f"matmul {op} {rows}", times) for (op, rows), times in all_times.items()]


# ---------------------------------------------------------------------------------------------------
# Judging
# ---------------------------------------------------------------------------------------------------


def lower_end(samples: list[float]) -> float:
    """A value that the median is above of with 95 %: the order statistic whose tail of heads and tails is at most 5 %.
    Too few samples have none."""
    count, tail, rank = len(samples), 0, -1
    while (tail := tail + comb(count, rank + 1)) <= 0.05 * 2**count:
        rank += 1
    return sorted(samples)[rank] if rank >= 0 else float("-inf")


def judge(label: str, times: Times, limit: float, first: float | None) -> tuple[dict[str, Any], list[str]]:
    """A row of the table, and what is wrong with it."""
    ratios = [ours / twin for ours, twin in zip(times.ours, times.twin, strict=True)]
    row: dict[str, Any] = {
        "what": label,
        "algorithm": times.what,
        "generated_us": statistics.median(times.ours),
        "twin_us": statistics.median(times.twin),
        "ratio": statistics.median(ratios),
        "ratio_low": max(lower_end(ratios), 0),
        "ratios": ratios,
    }
    wrong = []
    if lower_end(ratios) > 1 + limit / 100:
        wrong.append(f"{label}: {row['ratio']:.3f} of the twin's time, and {lower_end(ratios):.3f} or more with 95 %")
    if first is not None:
        row["first_us"] = first
        if lower_end(times.twin) > first * (1 + limit / 100):
            wrong.append(f"{label}: the twin takes {row['twin_us']:.2f} µs, first hand-written kernels took {first}")
    if times.chosen:
        row["chosen_us"] = statistics.median(times.chosen)
    return row, wrong


def show(rows: list[dict[str, Any]]) -> None:
    print(f"{'':>24}  {'algorithm':16}  generated µs  twin µs  ratio  at least  first µs  chosen µs")
    for row in rows:
        first, chosen = (f"{row[key]:.2f}" if key in row else "" for key in ("first_us", "chosen_us"))
        print(
            f"{row['what']:>24}  {row['algorithm']:16}  {row['generated_us']:12.2f}  {row['twin_us']:7.2f}"
            f"  {row['ratio']:5.3f}  {row['ratio_low']:8.3f}  {first:>8}  {chosen:>9}",
            flush=True,
        )


#: Label, times, what first kernels took, and the percent that a generated one may be slower.
Labeled = list[tuple[str, Times, float | None, float]]


def comparisons(options: argparse.Namespace, twins: dict[str, pathlib.Path], folder: pathlib.Path) -> Iterator[Labeled]:
    """Each comparison as soon as it is measured: what it is of, its times, and those of first kernels."""
    bench, out = options.bin / "comms-bench", folder / "report.json"
    if "allreduce" in twins:
        sizes = SIZES[options.level]
        labels = [f"{size} KiB" if size < KIB else f"{size // KIB} MiB" for size in sizes]
        firsts = [FIRST.get(options.ranks, {}).get(size) for size in sizes]
        made = compare_flat(twins["allreduce"], bench, options, out)
        limits = [options.limit] * len(sizes)
        yield list(zip(labels, made, firsts, limits, strict=True))
    for fp8 in (False, True) if "rmsnorm" in twins else ():
        made = compare_rows(twins["rmsnorm"], bench, options, out, fp8)
        labels = [f"{rows} rows{', fp8' if fp8 else ''}" for rows in ROWS]
        yield [(label, times, None, options.limit) for label, times in zip(labels, made, strict=True)]
    if "matmul" in twins and importlib.util.find_spec("torch") is None:
        say("matmuls were NOT compared: they are torch's ops, and there is no torch")
    elif "matmul" in twins:
        of_matmuls = compare_matmuls(twins["matmul"], options, out)
        yield [(label, times, None, max(options.limit, MATMUL_LIMIT)) for label, times in of_matmuls]


def compare(options: argparse.Namespace, twins: dict[str, pathlib.Path], folder: pathlib.Path) -> bool:
    """Tells all that it finds at once, for the next comparison may not end; true: both things hold."""
    table: list[dict[str, Any]] = []
    holds = True
    for measured in comparisons(options, twins, folder):
        judged = [judge(label, times, limit, first) for label, times, first, limit in measured]
        show([row for row, _ in judged])
        table += [row for row, _ in judged]
        for mistake in [mistake for _, mistakes in judged for mistake in mistakes]:
            say(mistake)
            holds = False
        if options.json:
            options.json.write_text(json.dumps({"ranks": options.ranks, "rows": table}, indent=1) + "\n")
    return holds


def say(text: object) -> None:
    print(f"twins.py: {text}", file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/bin", help="folder of comms-bench")
    parser.add_argument("--twins", type=pathlib.Path, help="folder of twin-allreduce and others [that of --bin]")
    parser.add_argument("--only", choices=NAMES, nargs="+", default=NAMES, help="twins to compare with [all]")
    parser.add_argument("--ranks", type=int, help="2, 4 or 8 GPUs [the most that are there]")
    parser.add_argument("--level", choices=sorted(SIZES), default="quick", help="quick stops at 4 MiB")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--limit", type=float, default=3.0, help="percent that a generated kernel may be slower [3]")
    parser.add_argument("--json", type=pathlib.Path, help="write the table")
    options = parser.parse_args()
    gpus = count_gpus()
    possible = [ranks for ranks in (2, 4, 8) if ranks <= gpus]
    if not possible or options.ranks and options.ranks not in possible:
        say(f"error: here are {gpus} GPUs; the twins run on 2, 4 or 8. nvidia-smi -L lists what there is")
        return 2
    options.ranks = options.ranks or possible[-1]
    with tempfile.TemporaryDirectory(prefix="commsir-twins-") as name:
        folder = pathlib.Path(name)
        try:
            twins = find_twins(options.twins or options.bin, folder, options.only)
            if not twins:
                print(NO_TWINS.format(options.twins or options.bin), file=sys.stderr)
                return 0
            return 0 if compare(options, twins, folder) else 1
        except TwinError as error:
            say(f"error: {error}")
            return 2
        except WrongError as error:
            say(error)
            return 1


if __name__ == "__main__":
    sys.exit(main())
