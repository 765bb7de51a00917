"""Collectives of CommsIR against those of others, in one run: what `python -m commsir.bench` does under torchrun.

On GPUs the others are NCCL, NCCL with registered windows, and the one-shot and two-shot all-reduce of torch's symmetric
memory; on the CPU it is Gloo. Contenders take turns, so that all see the same machine. Each is checked first, on
numbers whose sums are exact. A figure is the slowest rank's mean of a turn, and of the turns the median, on the CPU
with the least and the greatest: processes that share cores are seldom as quick twice. The others are also compared turn
by turn, since machines change their speed: `ratios` has how many times as long as ours they took.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import torch
import torch.distributed

from commsir.errors import printable
from commsir.torch.bench_calls import CALLS, OBJECTS, SIZELESS, CheckedCall, make, pattern, tensors
from commsir.torch.kernel_warmup import compiling_at_once

dist: Any = torch.distributed

__all__ = [
    "Contender",
    "bests",
    "contenders",
    "eager_us",
    "graph_us",
    "main",
    "measure",
    "median",
    "plot",
    "stream_us",
    "table",
    "warm_up",
]

OPS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast")
#: Those that others are compared to, and the ways of timing on GPUs.
OURS, WAYS = ("commsir op", "commsir backend"), ("host", "eager", "graph")
_BYTES = {torch.float32: 4, torch.bfloat16: 2}
WARM_ROUNDS = 5
#: More than a size takes until it has a kernel of its own.
WARM_CALLS = 6
#: Calls of a turn on the CPU, at most, and how many seconds of them are enough.
TURN_CALLS, TURN_SECONDS = 20, 0.2


@dataclass
class Contender:
    """One implementation of a collective to measure."""

    name: str
    made: CheckedCall
    #: Why it cannot run here; empty: it can.
    missing: str = ""


# ---------------------------------------------------------------------------------------------------------------------
# Time
# ---------------------------------------------------------------------------------------------------------------------


def _device() -> str:
    return "cuda" if dist.get_backend() == "nccl" else "cpu"


def _slowest(seconds: float) -> float:
    value = torch.tensor([seconds], device=_device(), dtype=torch.float64)
    dist.all_reduce(value, dist.ReduceOp.MAX)
    return float(value)


def _settle() -> None:
    if _device() == "cuda":
        torch.cuda.synchronize()


def eager_us(call: Callable[[], Any], calls: int = 50) -> float:
    """Returns the host time of one call in µs. On a GPU, the kernel has not run by then."""
    _settle()
    dist.barrier()
    _settle()
    begin = time.perf_counter()
    for _ in range(calls):
        call()
    spent = (time.perf_counter() - begin) / calls
    _settle()
    return _slowest(spent) * 1e6


def stream_us(call: Callable[[], Any], calls: int = 50) -> float:
    """Returns the time of one eager call in the current stream, in µs.

    A call before the first event synchronizes the ranks; otherwise the time would include waiting for late ranks.
    """
    event: Any = torch.cuda.Event
    first, last = event(enable_timing=True), event(enable_timing=True)
    dist.barrier()
    torch.cuda.synchronize()
    call()
    first.record()
    for _ in range(calls):
        call()
    last.record()
    torch.cuda.synchronize()
    return _slowest(first.elapsed_time(last) / calls * 1e-3) * 1e6


def graph_us(call: Callable[[], Any], calls: int = 50) -> Callable[[], float]:
    """Captures `calls` calls in a CUDA graph and returns the time of one in a replay, in µs."""
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(calls):
            call()

    def replay() -> float:
        return stream_us(graph.replay, 1) / calls

    return replay


# ---------------------------------------------------------------------------------------------------------------------
# Contenders
# ---------------------------------------------------------------------------------------------------------------------

_made: dict[str, Any] = {}


def _ours() -> Any:
    """A group of CommsIR's backend over all ranks; made once."""
    if "ours" not in _made:
        import commsir.torch

        commsir.torch.register()
        _made["ours"] = dist.new_group(backend="commsir")
    return _made["ours"]


def _expected_result(op: str, ins: int, device: str) -> torch.Tensor:
    """Returns the result of an op of OPS on this rank, if each rank passes its pattern of `ins` elements."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    inputs = [pattern(r, ins, device) for r in range(ranks)]
    if op == "all_gather":
        return torch.cat(inputs)
    if op == "broadcast":
        return inputs[0]
    if op == "all_to_all":
        return torch.cat([one.chunk(ranks)[rank] for one in inputs])
    total = torch.stack(inputs).sum(0)
    return total.chunk(ranks)[rank] if op == "reduce_scatter" else total


def _contender(name: str, op: str, call: Callable[[], Any], x: torch.Tensor, y: torch.Tensor) -> Contender:
    return Contender(name, tensors(call, [x], [y], lambda: _expected_result(op, x.numel(), x.device.type)))


def _missing(name: str, why: object) -> Contender:
    return Contender(name, CheckedCall(lambda: None, lambda: ""), missing=str(why))


def _registered(op: str, ins: int, outs: int, dtype: torch.dtype) -> Contender:
    """NCCL on memory of its own allocator, registered as windows."""
    name = "nccl, registered windows"
    nccl = dist.group.WORLD._get_backend(torch.device("cuda"))
    pool = torch.cuda.MemPool(nccl.mem_allocator)
    with torch.cuda.use_mem_pool(pool):
        x, y = torch.zeros(ins, device="cuda", dtype=dtype), torch.zeros(outs, device="cuda", dtype=dtype)
    nccl.register_mem_pool(pool)
    _made.setdefault("pools", []).append(pool)  # its memory stays registered to the end
    calls: dict[str, tuple[Callable[[], Any], torch.Tensor]] = {
        "all_reduce": (lambda: dist.all_reduce(x), x),
        "broadcast": (lambda: dist.broadcast(x, 0), x),
        "all_gather": (lambda: dist.all_gather_into_tensor(y, x), y),
        "all_to_all": (lambda: dist.all_to_all_single(y, x), y),
        "reduce_scatter": (lambda: dist.reduce_scatter_tensor(y, x), y),
    }
    call, result = calls[op]
    return _contender(name, op, call, x, result)


def _symmetric(elements: int, dtype: torch.dtype, group: str) -> list[Contender]:
    import torch.distributed._symmetric_memory

    symm_mem: Any = torch.distributed._symmetric_memory
    x = symm_mem.empty(elements, dtype=dtype, device="cuda")
    symm_mem.rendezvous(x, group)
    y = torch.empty_like(x)
    ops: Any = torch.ops.symm_mem
    one_shot: Callable[[], Any] = lambda: ops.one_shot_all_reduce_out(x, "sum", group, y)  # noqa: E731
    two_shot: Callable[[], Any] = lambda: ops.two_shot_all_reduce_(x, "sum", group)  # noqa: E731
    made = [_contender("symm_mem one-shot", "all_reduce", one_shot, x, y)]
    if elements * _BYTES[dtype] >= 8192:
        made.append(_contender("symm_mem two-shot", "all_reduce", two_shot, x, x))
    return made


def _op_contender(op: str, most: int, dtype: torch.dtype) -> Contender:
    """torch.ops.commsir."""
    import commsir.torch.ops  # noqa: F401  (registers torch.ops.commsir)

    device, ranks = _device(), dist.get_world_size()
    x = torch.zeros(most // ranks if op == "all_gather" else most, device=device, dtype=dtype)
    y = torch.zeros(most // ranks if op == "reduce_scatter" else most, device=device, dtype=dtype)
    given: Any = {"all_reduce": "sum", "reduce_scatter": "sum", "broadcast": 0}.get(op)
    ours, group = getattr(torch.ops.commsir, op).out, dist.group.WORLD.group_name
    # Written as users write it: arguments that are unpacked cost a call what the others' calls do not pay.
    call = (lambda: ours(x, group, out=y)) if given is None else (lambda: ours(x, given, group, out=y))
    return _contender("commsir op", op, call, x, y)


def contenders(op: str, size: int, dtype: torch.dtype) -> list[Contender]:
    """Returns all implementations of `op` at this size (the larger array, in bytes). Collective."""
    device, ranks = _device(), dist.get_world_size()
    most = max(size // _BYTES[dtype] // ranks, 1) * ranks
    made = [_op_contender(op, most, dtype)] if op in OPS else []
    for name, used in (("commsir backend", _ours()), ("nccl" if device == "cuda" else "gloo", None)):
        made.append(Contender(name, make(op, used, most, dtype, device)))
    if device == "cuda" and op in OPS:
        try:
            ins, outs = (most // ranks if op == cut else most for cut in ("all_gather", "reduce_scatter"))
            made.append(_registered(op, ins, outs, dtype))
        except Exception as error:
            made.append(_missing("nccl, registered windows", error))
        if op == "all_reduce":
            try:
                made += _symmetric(most, dtype, dist.group.WORLD.group_name)
            except Exception as error:
                made.append(_missing("symm_mem one-shot", error))
    return made


def check(contender: Contender) -> str:
    """Describes an error in the contender's result on any rank; empty: correct."""
    wrong = contender.made.wrong()
    if _slowest(float(bool(wrong))):
        return wrong or "is wrong on another rank"
    return ""


# ---------------------------------------------------------------------------------------------------------------------
# Runs
# ---------------------------------------------------------------------------------------------------------------------


def _say(*text: object) -> None:
    if dist.get_rank() == 0:
        print(*(printable(str(part)) for part in text), flush=True)


def _prepare(contender: Contender) -> dict[str, Callable[[], float]]:
    """Returns ways to time the contender, by name, or the exception that prevents it."""
    if contender.missing:
        raise RuntimeError(contender.missing)
    if wrong := check(contender):
        raise RuntimeError(f"wrong: {wrong}")
    call = contender.made.call
    with compiling_at_once():
        for _ in range(WARM_CALLS):
            call()
    _settle()
    if _device() == "cpu":
        calls = min(max(int(TURN_SECONDS / (eager_us(call, 1) * 1e-6)), 1), TURN_CALLS)
        return {"call": lambda: eager_us(call, calls)}
    return {"host": lambda: eager_us(call), "eager": lambda: stream_us(call), "graph": graph_us(call)}


def measure(op: str, size: int, dtype: torch.dtype, rounds: int = 9) -> list[dict[str, Any]]:
    """Returns one entry per contender: its median in µs for each way of timing, or the error."""
    entries, ways = [], {}
    for contender in contenders(op, size, dtype):
        entry: dict[str, Any] = {"op": op, "bytes": size, "contender": contender.name}
        entry["type"] = str(dtype).removeprefix("torch.")
        entries.append(entry)
        try:
            ways[contender.name] = _prepare(contender)
        except Exception as error:
            entry["status"], entry["message"] = "wrong" if "wrong: " in str(error) else "failed", str(error)
    samples: dict[str, dict[str, list[float]]] = {name: {way: [] for way in ways[name]} for name in ways}
    for turn in range(rounds if ways else 0):
        # Another begins each time: who comes after a certain one may gain or lose by it.
        names = list(ways)[turn % len(ways) :] + list(ways)[: turn % len(ways)]
        for name in names:
            for way, timer in ways[name].items():
                samples[name][way].append(timer())
    for entry in entries:
        if taken := samples.get(entry["contender"]):
            entry.update(status="ok", us={way: median(times) for way, times in taken.items()}, samples_us=taken)
    compare(entries)
    return entries


def interval(values: list[float], resamples: int = 1000) -> list[float]:
    """The median, and the bounds of its 95 % interval by the bootstrap: what `resamples` draws of as many values have
    (B. Efron, R. Tibshirani, An Introduction to the Bootstrap, 1993, chapter 13)."""
    drawn = random.Random(0)
    medians = sorted(median(drawn.choices(values, k=len(values))) for _ in range(resamples))
    return [median(values), medians[int(0.025 * resamples)], medians[int(0.975 * resamples)]]


def compare(entries: list[dict[str, Any]]) -> None:
    """How many times as long as ours the others took, turn by turn, by the way of timing: `ratios` has, for each of
    ours, the median and its interval."""
    taken = {e["contender"]: e["samples_us"] for e in entries if "samples_us" in e}
    for entry in entries:
        if entry["contender"] in OURS or entry["contender"] not in taken:
            continue
        entry["ratios"] = {
            own: {
                way: interval([theirs / ours for theirs, ours in zip(times, taken[own][way], strict=True)])
                for way, times in taken[entry["contender"]].items()
            }
            for own in OURS
            if own in taken
        }


def _cells(entry: dict[str, Any]) -> dict[str, str]:
    """By the heads of their columns."""
    cells = {}
    for way, us in entry["us"].items():
        head, samples = entry["contender"], entry.get("samples_us", {}).get(way, [])
        if way != "call":
            cells[f"{head} ({way})"] = f"{us:.2f}"
        else:
            cells[head] = f"{us:.0f} [{min(samples):.0f} {max(samples):.0f}]"
    if ratio := entry.get("ratios", {}).get("commsir backend", {}).get("call"):
        cells[f"{entry['contender']} / ours"] = f"{ratio[0]:.2f}"
    return cells


def bests(entries: list[dict[str, Any]]) -> str:
    """Returns, on GPUs and for each of our contenders, the fastest other one and its relative time with a 95 %
    interval.
    """
    rows = [["op", "bytes", "ours", *WAYS]]
    for op, size, own in dict.fromkeys((e["op"], e["bytes"], own) for e in entries for own in e.get("ratios", {})):
        others = [e for e in entries if (e["op"], e["bytes"]) == (op, size) and own in e.get("ratios", {})]
        row = [op, str(size), own]
        for way in WAYS:
            best = min(others, key=lambda entry: entry["us"].get(way, math.inf))
            ratio = best["ratios"][own].get(way)
            row.append(f"{best['contender']} {ratio[0]:.2f} [{ratio[1]:.2f} {ratio[2]:.2f}]" if ratio else "")
        rows.append(row)
    return _lines(rows)


def _lines(rows: list[list[str]]) -> str:
    """Formats a Markdown table. The first row has the column titles."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [
        "| " + " | ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in rows
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 1) + ":" for width in widths) + "|")
    return "\n".join(lines)


def warm_up(dtype: torch.dtype) -> None:
    """Unmeasured calls: at first a GPU's clocks are low and caches cold, which would penalize the first contender."""
    measure("all_reduce", 4096, dtype, WARM_ROUNDS)


def table(entries: list[dict[str, Any]]) -> str:
    """Microseconds, by op and size; a column for each contender and way of timing."""
    cells = [_cells(entry) if entry["status"] == "ok" else {} for entry in entries]
    columns = list(dict.fromkeys(head for one in cells for head in one))
    rows = [["op", "bytes", *columns]]
    for op, size in dict.fromkeys((e["op"], e["bytes"]) for e in entries):
        found: dict[str, str] = {}
        for entry, own in zip(entries, cells, strict=True):
            if (entry["op"], entry["bytes"]) == (op, size):
                found |= own
        rows.append([op, str(size), *(found.get(head, "") for head in columns)])
    return _lines(rows)


def plot(entries: list[dict[str, Any]], path: str) -> None:
    """A picture for each op: microseconds over bytes, of calls in graphs where there are such."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    ops = list(dict.fromkeys(entry["op"] for entry in entries))
    figure, axes = pyplot.subplots(1, len(ops), figsize=(6 * len(ops), 4), squeeze=False, layout="constrained")
    for op, axis in zip(ops, axes[0], strict=True):
        for name in dict.fromkeys(entry["contender"] for entry in entries):
            points = [e for e in entries if (e["op"], e["contender"], e["status"]) == (op, name, "ok")]
            if points:
                times = [next(iter(reversed(e["us"].values()))) for e in points]
                axis.plot([e["bytes"] for e in points], times, marker="o", label=name)
        axis.set(title=op, xlabel="bytes", ylabel="µs", xscale="log", yscale="log")
        axis.legend()
    figure.savefig(path)
    pyplot.close(figure)


def _size(text: str) -> int:
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    try:
        return int(text[:-1]) * units[text[-1].upper()] if text[-1:].upper() in units else int(text)
    except (ValueError, IndexError):
        raise argparse.ArgumentTypeError(f"'{text}' is not a size: write 4096, 64K or 4M") from None


def _count(text: str) -> int:
    if not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of rounds: write 1 or more")
    return int(text)


def _file(text: str) -> str:
    """An output file, opened by rank 0 only, after all measurements."""
    path = Path(text)
    folder = path.parent
    if os.environ.get("RANK", "0") != "0":
        return text
    if path.is_dir():
        raise argparse.ArgumentTypeError(f"'{text}' is a folder: name a file in it")
    if not folder.is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder '{folder}': make it, or name another file")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise argparse.ArgumentTypeError(f"'{text}' cannot be written: name another file")
    return text


def _picture(text: str) -> str:
    """A file of a kind that matplotlib draws."""
    path = _file(text)
    if os.environ.get("RANK", "0") != "0":
        return path
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
    except ImportError as error:
        raise argparse.ArgumentTypeError(f"a plot needs matplotlib ({error}): pip install matplotlib") from None
    kinds = FigureCanvasAgg.get_supported_filetypes()
    if (kind := Path(text).suffix.removeprefix(".").lower()) and kind not in kinds:
        raise argparse.ArgumentTypeError(f"'{text}' does not end in .png, .svg or .pdf")
    return path


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m commsir.bench", description=__doc__)
    parser.add_argument("--op", nargs="+", choices=["all", *CALLS], default=["all_reduce"])
    parser.add_argument(
        "--sizes",
        nargs="+",
        type=_size,
        help="bytes of the larger array, of an object or of a send: 1024 64K 4M and so on",
    )
    parser.add_argument("--type", choices=["f32", "bf16"], help="default: bf16 on GPUs, f32 on the CPU")
    parser.add_argument(
        "--rounds", type=_count, default=9, help="turns of each contender; more of them, narrower intervals"
    )
    parser.add_argument("--device", choices=["cpu", "cuda"], help="default: cuda where there is a GPU")
    parser.add_argument("--json", type=_file, help="file for all samples")
    parser.add_argument("--plot", type=_picture, help="picture of the medians: .png, .svg, .pdf")
    return parser.parse_args(arguments)


def _ops(named: list[str], cuda: bool) -> list[str]:
    if "all" not in named:
        return named
    return [op for op in CALLS if not cuda or op not in OBJECTS]


def _missing_gpu_reason(local: int, count: int) -> str:
    """Returns why this rank has no GPU on the host, or an empty string if it has one."""
    if local < count:
        return ""
    if not count:
        return "torch finds no GPU on this host: say --device cpu"
    return f"rank {local} has no GPU: start {count} rank{'s' if count > 1 else ''}, or say --device cpu"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the benchmark under torchrun. Returns 1 if a contender gave a wrong result."""
    options = _parse(arguments)
    cuda = options.device == "cuda" or (options.device is None and torch.cuda.is_available())
    if cuda:
        local = int(os.environ["LOCAL_RANK"])
        if lack := _missing_gpu_reason(local, torch.cuda.device_count()):
            sys.exit(f"commsir.bench: error: {lack}")
        torch.cuda.set_device(local)
        dist.init_process_group("nccl", device_id=torch.device("cuda", local))
    else:
        torch.set_num_threads(1)
        dist.init_process_group("gloo")
    dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[options.type or ("bf16" if cuda else "f32")]
    sizes = options.sizes or [1 << power for power in ((10, 13, 16, 18, 20, 22) if cuda else (10, 14, 18, 22))]
    entries = []
    warm_up(dtype)
    for op in _ops(options.op, cuda):
        for size in sizes[:1] if op in SIZELESS else sizes:
            added = measure(op, size, dtype, options.rounds)
            entries += added
            for entry in added:
                if entry["status"] != "ok":
                    _say(f"{op} of {size} bytes, {entry['contender']}: {entry['status']}: {entry['message']}")
            least = {entry["contender"]: min(entry["us"].values()) for entry in added if entry["status"] == "ok"}
            _say(f"{op} of {size} bytes: " + ", ".join(f"{name} {us:.2f} us" for name, us in least.items()))
    _say(table(entries))
    if cuda:
        _say(bests(entries))
    header = {
        "ranks": dist.get_world_size(),
        "device": torch.cuda.get_device_name() if cuda else "cpu",
        "torch": torch.__version__,
        "type": str(dtype).removeprefix("torch."),
        "rounds": options.rounds,
    }
    if dist.get_rank() == 0 and options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(
                {"format": "commsir-torch-bench", "version": 1, "header": header, "results": entries}, file, indent=1
            )
    if dist.get_rank() == 0 and options.plot:
        plot(entries, options.plot)
    dist.barrier()
    dist.destroy_process_group()
    return int(any(entry["status"] == "wrong" for entry in entries))
