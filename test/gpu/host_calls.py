"""Measures the caller's time for calls on CUDA tensors, and for the cheapest calls possible.

On GPUs it runs as torch_run.py --only host, under torchrun. Alone it needs no GPU:

    test/gpu/host_calls.py [--libraries build/lib] [--rounds 41] [--json FILE]

Its two ranks then run over the tests' driver and runtime (FakeCuda.cpp, FakeCudart.cpp), which take almost no time:
the figures are the host's part of a call. Single calls are timed one by one. A figure is the minimum, and the median,
over rounds in which the kinds of calls take turns, of the median of each round, on the slowest rank.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed

dist: Any = torch.distributed
Ways = dict[str, Callable[[], Any]]
#: Of a way: the least and the median of its rounds, in microseconds.
Figures = dict[str, tuple[float, float]]

ROUNDS, CALLS = 41, 100
FAKE, OURS = "dist.all_reduce, fake", "dist.all_reduce, commsir"
OP, EMPTY = "torch.ops, out", "empty op"
LAUNCH, NO_LAUNCH = "zero_, a launch", "zero_ of nothing"
PREPARED = "fused, prepared, out"
#: A sum of ranks and a residual: the sum, and it times a weight.
FUSED = """(%sum: tensor<512xf32>, %r: tensor<512xbf16>, %w: tensor<512xbf16>) {
  %rounded = arith.truncf %sum : tensor<512xf32> to tensor<512xbf16>
  %h = arith.addf %rounded, %r : tensor<512xbf16>
  %y = arith.mulf %h, %w : tensor<512xbf16>
  comms.yield %y, %h : tensor<512xbf16>, tensor<512xbf16>
}"""


def ways(name: str, ours: Any) -> Ways:
    """`name` is of a process group that torch.ops.commsir works in, `ours` a group of the backend."""
    import commsir.torch.ops as ops
    import torch.testing._internal.distributed.fake_pg  # noqa: F401  (registers the backend)

    x = torch.zeros(512, device="cuda", dtype=torch.bfloat16)
    y = torch.empty_like(x)
    empty = torch.empty(0, device="cuda")
    fake = dist.new_group(backend="fake")
    nothing: Any = torch.ops.commsir._nothing
    outputs = [(torch.bfloat16, 512)] * 2
    fused, made = ops.prepare("all_reduce", FUSED, outputs, group=name), [torch.empty_like(y) for _ in outputs]
    return {
        EMPTY: lambda: nothing(x, "sum", name),
        NO_LAUNCH: lambda: empty.zero_(),
        LAUNCH: lambda: y.zero_(),
        OP: lambda: torch.ops.commsir.all_reduce.out(x, "sum", name, out=y),
        "torch.ops": lambda: torch.ops.commsir.all_reduce(x, "sum", name),
        "commsir.torch.ops": lambda: ops.all_reduce(x, "sum", name),
        PREPARED: lambda: fused(x, [x, x], out=made),
        "fused, prepared": lambda: fused(x, [x, x]),
        "fused": lambda: ops.fused_collective("all_reduce", x, [x, x], FUSED, outputs, group=name),
        FAKE: lambda: dist.all_reduce(x, group=fake),
        OURS: lambda: dist.all_reduce(x, group=ours),
        "dist.all_reduce, fake, async": lambda: dist.all_reduce(x, group=fake, async_op=True).wait(),
        "dist.all_reduce, commsir, async": lambda: dist.all_reduce(x, group=ours, async_op=True).wait(),
    }


# ---------------------------------------------------------------------------------------------------------------------
# Time
# ---------------------------------------------------------------------------------------------------------------------


def _near(device: int) -> set[int]:
    """The processors that this process may use, of those where the GPU is, if the system tells."""
    allowed = os.sched_getaffinity(0)
    properties: Any = torch.cuda.get_device_properties(device)
    try:
        place = f"{properties.pci_domain_id:04x}:{properties.pci_bus_id:02x}:{properties.pci_device_id:02x}.0"
        text = pathlib.Path(f"/sys/bus/pci/devices/{place}/local_cpulist").read_text().strip()
    except (AttributeError, OSError):
        return allowed
    near: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        near.update(range(int(first), int(last or first) + 1))
    return allowed & near or allowed


def pin(rank: int, ranks: int) -> int:
    """Leaves this thread one processor, another for each rank of the host; its number."""
    near = sorted(_near(torch.cuda.current_device()))
    chosen = near[(2 * rank + 1) * len(near) // (2 * ranks) % len(near)]
    os.sched_setaffinity(0, {chosen})
    return chosen


def _turn(call: Callable[[], Any]) -> float:
    clock, taken = time.perf_counter_ns, []
    for _ in range(CALLS):
        begin = clock()
        call()
        taken.append(float(clock() - begin))
    return statistics.median(taken) / 1000


def measure(called: Ways, rounds: int, meet: Callable[[], Any]) -> Figures:
    """Each turn begins where all ranks are (`meet`) and the GPU has nothing to do: no call waits for room."""
    for call in called.values():
        for _ in range(20):
            call()
    samples: dict[str, list[float]] = {way: [] for way in called}
    gc.collect()
    gc.disable()
    try:
        for turn in range(rounds):
            # Not always behind the same one.
            names = list(called)[turn % len(called) :] + list(called)[: turn % len(called)]
            for way in names:
                torch.cuda.synchronize()
                meet()
                called[way]()
                samples[way].append(_turn(called[way]))
    finally:
        gc.enable()
    torch.cuda.synchronize()
    return {way: (min(taken), statistics.median(taken)) for way, taken in samples.items()}


def slowest(figures: list[Figures]) -> Figures:
    """Of all ranks."""
    return {way: (max(one[way][0] for one in figures), max(one[way][1] for one in figures)) for way in figures[0]}


def table(figures: Figures) -> list[str]:
    lines = [
        f"host, {way:32} least {least:6.2f} us  median {median:6.2f} us" for way, (least, median) in figures.items()
    ]
    for kind, which in (("least", 0), ("median", 1)):
        over = figures[OURS][which] - figures[FAKE][which]
        launch = figures[LAUNCH][which] - figures[NO_LAUNCH][which]
        op = figures[OP][which] - figures[EMPTY][which] - launch
        lines.append(
            f"host, {kind}: dist.all_reduce of commsir is {over:.2f} us over fake's; a launch by a caller in Python "
            f"takes {launch:.2f} us; torch.ops, out, is {op:.2f} us over that and an empty op; a prepared fused call "
            f"is {figures[PREPARED][which] - figures[OP][which]:.2f} us over torch.ops, out"
        )
    return lines


# ---------------------------------------------------------------------------------------------------------------------
# Without a GPU
# ---------------------------------------------------------------------------------------------------------------------


def _rank(folder: str, rank: int, ranks: int, rounds: int, file: str) -> None:
    import commsir.torch

    torch.cuda.set_device(rank)
    commsir.torch.register()
    store = f"file://{folder}/store"
    dist.init_process_group("cpu:gloo,cuda:commsir", init_method=store, rank=rank, world_size=ranks)
    world = dist.group.WORLD
    called = ways(world.group_name, world)
    # The others leave their processors to the one that measures.
    if rank == 0:
        pin(0, 1)
        figures = measure(called, rounds, lambda: None)
        print("\n".join(table(figures)), flush=True)
        if file:
            pathlib.Path(file).write_text(json.dumps(figures, indent=1))
    else:
        for call in called.values():
            call()
    dist.barrier()
    sys.stdout.flush()
    os._exit(0)


def _environment(libraries: pathlib.Path) -> dict[str, str]:
    fake = libraries / "fake-cuda"
    return {
        **os.environ,
        "COMMSIR_LIBRARY": str(libraries),
        "COMMSIR_TORCH_BACKEND": "cpp",
        "COMMSIR_NCCL_LIBRARY": "none",
        "COMMSIR_FAKE_GPUS": "2",
        "COMMSIR_FAKE_KERNEL": "",
        "COMMSIR_FAKE_QUICK": "1",
        "LD_LIBRARY_PATH": str(fake),
        "LD_PRELOAD": str(fake / "libfake-cudart.so"),
        "OMP_NUM_THREADS": "1",
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--libraries", type=pathlib.Path, default=pathlib.Path("build/lib"))
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--json", default="")
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rank is not None:
        _rank(options.folder, options.rank, 2, options.rounds, options.json)
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            __file__,
            "--rounds",
            str(options.rounds),
            "--json",
            options.json,
            "--folder",
            folder,
        ]
        environment = _environment(options.libraries.resolve())
        ranks = [subprocess.Popen([*command, "--rank", str(rank)], env=environment) for rank in range(2)]
        return int(any([rank.wait() for rank in ranks]))


if __name__ == "__main__":
    sys.exit(main())
