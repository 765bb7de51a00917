"""Collectives of CommsIR beside those of others, in one run: what `python -m commsir.bench` does under torchrun.

On GPUs the others are NCCL, NCCL with registered windows, and the one-shot and two-shot all-reduce of torch's symmetric
memory; on the CPU it is Gloo. Contenders take turns, so that all see the same machine. Each is checked first, on
numbers whose sums are exact. A figure is the slowest rank's mean of a turn, and of the turns the median.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed

dist: Any = torch.distributed

__all__ = [
    "Contender",
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
_BYTES = {torch.float32: 4, torch.bfloat16: 2}
WARM_ROUNDS = 5
#: Calls of a turn on the CPU, at most, and how many seconds of them are enough.
TURN_CALLS, TURN_SECONDS = 20, 0.2


@dataclass
class Contender:
    """One way to run a collective: `call` reads `source` and leaves what it gives in `result`."""

    name: str
    source: torch.Tensor
    call: Callable[[], Any]
    result: torch.Tensor
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
    """Microseconds of the caller for one call; on a GPU the kernel has not run by then."""
    _settle()
    dist.barrier()
    _settle()
    begin = time.perf_counter()
    for _ in range(calls):
        call()
    spent = (time.perf_counter() - begin) / calls
    _settle()
    return _slowest(spent) * 1e6


def caller_us(call: Callable[[], Any], calls: int = 400) -> float:
    """Microseconds of the caller for one call, the median of many that are timed one by one.

    Unlike the mean of `eager_us` it leaves out calls in which the host did something else: ranks wait for each other,
    so whatever stops one process for a moment would be in the mean of all.
    """
    _settle()
    dist.barrier()
    _settle()
    taken: list[float] = []
    for _ in range(calls):
        begin = time.perf_counter()
        call()
        taken.append(time.perf_counter() - begin)
    _settle()
    return _slowest(median(taken)) * 1e6


def stream_us(call: Callable[[], Any], calls: int = 50) -> float:
    """Microseconds of the current stream for one eager call.

    A call before the first event brings ranks together: else those that come first would wait for the others in what is
    timed.
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
    """A replay of `calls` captured calls: microseconds of one."""
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


def median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


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


def _by_group(op: str, group: Any, x: torch.Tensor, y: torch.Tensor) -> tuple[Callable[[], Any], torch.Tensor]:
    if op == "all_reduce":
        return lambda: dist.all_reduce(x, group=group), x
    if op == "broadcast":
        return lambda: dist.broadcast(x, 0, group=group), x
    if op == "all_gather":
        return lambda: dist.all_gather_into_tensor(y, x, group=group), y
    if op == "all_to_all":
        return lambda: dist.all_to_all_single(y, x, group=group), y
    return lambda: dist.reduce_scatter_tensor(y, x, group=group), y


def _registered(op: str, ins: int, outs: int, dtype: torch.dtype) -> Contender:
    """NCCL on memory of its own allocator, registered as windows."""
    name = "nccl, registered windows"
    nccl = dist.group.WORLD._get_backend(torch.device("cuda"))
    pool = torch.cuda.MemPool(nccl.mem_allocator)
    with torch.cuda.use_mem_pool(pool):
        x, y = torch.zeros(ins, device="cuda", dtype=dtype), torch.zeros(outs, device="cuda", dtype=dtype)
    nccl.register_mem_pool(pool)
    _made.setdefault("pools", []).append(pool)  # its memory stays registered to the end
    call, result = _by_group(op, None, x, y)
    return Contender(name, x, call, result)


def _symmetric(elements: int, dtype: torch.dtype, group: str) -> list[Contender]:
    import torch.distributed._symmetric_memory

    symm_mem: Any = torch.distributed._symmetric_memory
    x = symm_mem.empty(elements, dtype=dtype, device="cuda")
    symm_mem.rendezvous(x, group)
    y = torch.empty_like(x)
    ops: Any = torch.ops.symm_mem
    made = [Contender("symm_mem one-shot", x, lambda: ops.one_shot_all_reduce_out(x, "sum", group, y), y)]
    if elements * _BYTES[dtype] >= 8192:
        made.append(Contender("symm_mem two-shot", x, lambda: ops.two_shot_all_reduce_(x, "sum", group), x))
    return made


def contenders(op: str, size: int, dtype: torch.dtype) -> list[Contender]:
    """All that can run `op` where the larger array has `size` bytes. All ranks call this."""
    import commsir.torch.ops  # noqa: F401  (registers torch.ops.commsir)

    device, ranks = _device(), dist.get_world_size()
    most = max(size // _BYTES[dtype] // ranks, 1) * ranks
    ins = most // ranks if op == "all_gather" else most
    outs = most // ranks if op == "reduce_scatter" else most
    group = dist.group.WORLD.group_name

    def memory() -> tuple[torch.Tensor, torch.Tensor]:
        return torch.zeros(ins, device=device, dtype=dtype), torch.zeros(outs, device=device, dtype=dtype)

    x, y = memory()
    arguments = {"all_reduce": ("sum",), "reduce_scatter": ("sum",), "broadcast": (0,)}.get(op, ())
    ours = getattr(torch.ops.commsir, op).out
    made = [Contender("commsir op", x, lambda: ours(x, *arguments, group, out=y), y)]
    for name, used in (("commsir backend", _ours()), ("nccl" if device == "cuda" else "gloo", None)):
        source, target = memory()
        call, result = _by_group(op, used, source, target)
        made.append(Contender(name, source, call, result))
    if device == "cuda":
        try:
            made.append(_registered(op, ins, outs, dtype))
        except Exception as error:
            made.append(Contender("nccl, registered windows", x, lambda: None, y, missing=str(error)))
        if op == "all_reduce":
            try:
                made += _symmetric(most, dtype, group)
            except Exception as error:
                made.append(Contender("symm_mem one-shot", x, lambda: None, y, missing=str(error)))
    return made


def check(op: str, contender: Contender) -> str:
    """What is wrong with the contender's result; empty: nothing, on any rank."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    place = torch.arange(contender.source.numel(), device=contender.source.device) % 8
    inputs = [place + r for r in range(ranks)]
    contender.source.copy_(inputs[rank])
    contender.call()
    if op == "all_gather":
        wanted = torch.cat(inputs)
    elif op == "broadcast":
        wanted = inputs[0]
    elif op == "all_to_all":
        wanted = torch.cat([one.chunk(ranks)[rank] for one in inputs])
    else:
        wanted = torch.stack(inputs).sum(0)
        if op == "reduce_scatter":
            wanted = wanted.chunk(ranks)[rank]
    off = float((contender.result.double() - wanted.double()).abs().max())
    contender.source.zero_()
    worst = _slowest(off)
    return "" if worst == 0 else f"is off by up to {worst}"


# ---------------------------------------------------------------------------------------------------------------------
# Runs
# ---------------------------------------------------------------------------------------------------------------------


def _say(*text: object) -> None:
    if dist.get_rank() == 0:
        print(*text, flush=True)


def _prepare(op: str, contender: Contender) -> dict[str, Callable[[], float]]:
    """Ways to time the contender, by their names; or an exception that says why there are none."""
    if contender.missing:
        raise RuntimeError(contender.missing)
    if wrong := check(op, contender):
        raise RuntimeError(f"wrong: {wrong}")
    for _ in range(5):
        contender.call()
    _settle()
    call = contender.call
    if _device() == "cpu":
        calls = min(max(int(TURN_SECONDS / (eager_us(call, 1) * 1e-6)), 1), TURN_CALLS)
        return {"call": lambda: eager_us(call, calls)}
    return {"host": lambda: eager_us(call), "eager": lambda: stream_us(call), "graph": graph_us(call)}


def measure(op: str, size: int, dtype: torch.dtype, rounds: int = 9) -> list[dict[str, Any]]:
    """One entry for each contender: its median in microseconds by the way of timing, or what was wrong with it."""
    entries, ways = [], {}
    for contender in contenders(op, size, dtype):
        entry: dict[str, Any] = {"op": op, "bytes": size, "contender": contender.name}
        entry["type"] = str(dtype).removeprefix("torch.")
        entries.append(entry)
        try:
            ways[contender.name] = _prepare(op, contender)
        except Exception as error:
            entry["status"], entry["message"] = "wrong" if "wrong: " in str(error) else "failed", str(error)
    samples: dict[str, dict[str, list[float]]] = {name: {way: [] for way in ways[name]} for name in ways}
    for _ in range(rounds):
        for name, timers in ways.items():
            for way, timer in timers.items():
                samples[name][way].append(timer())
    for entry in entries:
        if taken := samples.get(entry["contender"]):
            entry.update(status="ok", us={way: median(times) for way, times in taken.items()}, samples_us=taken)
    return entries


def warm_up(dtype: torch.dtype) -> None:
    """What nobody counts: at first a GPU's clocks are low and caches cold, and what is measured first looks slow."""
    measure("all_reduce", 4096, dtype, WARM_ROUNDS)


def table(entries: list[dict[str, Any]]) -> str:
    """Microseconds, by op and size; a column for each contender and way of timing."""
    columns = list(dict.fromkeys((e["contender"], way) for e in entries if e["status"] == "ok" for way in e["us"]))
    heads = [name if way == "call" else f"{name} ({way})" for name, way in columns]
    rows = [["op", "bytes", *heads]]
    for op, size in dict.fromkeys((e["op"], e["bytes"]) for e in entries):
        found = {
            e["contender"]: e["us"] for e in entries if (e["op"], e["bytes"]) == (op, size) and e["status"] == "ok"
        }
        cells = [found.get(name, {}).get(way) for name, way in columns]
        rows.append([op, str(size), *("" if cell is None else f"{cell:.2f}" for cell in cells)])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [
        "| " + " | ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in rows
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 1) + ":" for width in widths) + "|")
    return "\n".join(lines)


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
        raise argparse.ArgumentTypeError(f"'{text}' is no size: write 4096, 64K or 4M") from None


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m commsir.bench", description=__doc__)
    parser.add_argument("--op", nargs="+", choices=OPS, default=["all_reduce"])
    parser.add_argument("--sizes", nargs="+", type=_size, help="bytes of the larger array: 1024 64K 4M …")
    parser.add_argument("--type", choices=["f32", "bf16"], help="default: bf16 on GPUs, f32 on the CPU")
    parser.add_argument("--rounds", type=int, default=9, help="turns of each contender")
    parser.add_argument("--device", choices=["cpu", "cuda"], help="default: cuda where there is a GPU")
    parser.add_argument("--json", help="file for all samples")
    parser.add_argument("--plot", help="picture of the medians: .png, .svg, .pdf")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Under torchrun. Returns 1 if a contender gave a wrong result."""
    options = _parse(arguments)
    cuda = options.device == "cuda" or (options.device is None and torch.cuda.is_available())
    if cuda:
        local = int(os.environ["LOCAL_RANK"])
        if local >= torch.cuda.device_count():
            count = torch.cuda.device_count()
            sys.exit(f"commsir.bench: error: rank {local} has no GPU: start {count} ranks, or say --device cpu")
        torch.cuda.set_device(local)
        dist.init_process_group("nccl", device_id=torch.device("cuda", local))
    else:
        torch.set_num_threads(1)
        dist.init_process_group("gloo")
    dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[options.type or ("bf16" if cuda else "f32")]
    sizes = options.sizes or [1 << power for power in ((10, 13, 16, 18, 20, 22) if cuda else (10, 14, 18, 22))]
    entries = []
    warm_up(dtype)
    for op in options.op:
        for size in sizes:
            added = measure(op, size, dtype, options.rounds)
            entries += added
            for entry in added:
                if entry["status"] != "ok":
                    _say(f"{op} of {size} bytes, {entry['contender']}: {entry['status']}: {entry['message']}")
            least = {entry["contender"]: min(entry["us"].values()) for entry in added if entry["status"] == "ok"}
            _say(f"{op} of {size} bytes: " + ", ".join(f"{name} {us:.2f} us" for name, us in least.items()))
    _say(table(entries))
    header = {
        "ranks": dist.get_world_size(),
        "device": torch.cuda.get_device_name() if cuda else "cpu",
        "torch": torch.__version__,
        "type": str(dtype).removeprefix("torch."),
        "rounds": options.rounds,
    }
    if dist.get_rank() == 0 and options.json:
        with open(options.json, "w") as file:
            json.dump(
                {"format": "commsir-torch-bench", "version": 1, "header": header, "results": entries}, file, indent=1
            )
    if dist.get_rank() == 0 and options.plot:
        plot(entries, options.plot)
    dist.barrier()
    dist.destroy_process_group()
    return int(any(entry["status"] == "wrong" for entry in entries))
