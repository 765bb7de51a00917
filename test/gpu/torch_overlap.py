"""Times a collective and a matmul together, and each alone: how many multiprocessors does the collective leave free?

    torchrun --nproc-per-node 2 test/gpu/torch_overlap.py [--baseline nccl] [--turns 10]

Prints milliseconds on rank 0 from the first launch to the end of both: the median, minimum and maximum of the turns.
The cases take turns. COMMSIR_MAX_CTAS is the number of CTAs that a long collective uses (docs/Torch.md).
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

import commsir.torch
import torch
import torch.distributed

dist: Any = torch.distributed

#: Collectives, with MiB of the larger array.
CASES = (("all_reduce", 25), ("all_reduce", 64), ("all_reduce", 256), ("all_gather", 256), ("reduce_scatter", 256))


def caller(op: str, mib: int, group: Any) -> Callable[..., Any]:
    """Calls one on arrays of its own, in bf16."""
    size = dist.get_world_size()
    whole = torch.zeros(mib << 19, device="cuda", dtype=torch.bfloat16)
    part = torch.zeros(whole.numel() // size, device="cuda", dtype=torch.bfloat16)
    if op == "all_reduce":
        return partial(dist.all_reduce, whole, group=group)
    if op == "all_gather":
        return partial(dist.all_gather_into_tensor, whole, part, group=group)
    return partial(dist.reduce_scatter_tensor, part, whole, group=group)


def measure(run: Callable[[], Any]) -> float:
    """Milliseconds that the GPU takes for what `run` queues, from when all ranks are here."""
    dist.barrier()
    torch.cuda.synchronize()
    event: Any = torch.cuda.Event
    begin, end = event(enable_timing=True), event(enable_timing=True)
    begin.record()
    run()
    end.record()
    torch.cuda.synchronize()
    return float(begin.elapsed_time(end))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--baseline", default="nccl", help="the other backend [nccl]")
    parser.add_argument("--turns", type=int, default=10)
    options = parser.parse_args()
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    commsir.torch.register()
    dist.init_process_group("commsir")
    groups = {"commsir": None, options.baseline: dist.new_group(backend=options.baseline)}
    left, right = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    product = torch.empty_like(left)
    matmul = partial(torch.mm, left, right, out=product)

    def both(call: Callable[..., Any]) -> None:
        work = call(async_op=True)
        matmul()
        work.wait()

    runs: dict[str, Callable[[], Any]] = {"matmul": matmul}
    for op, mib in CASES:
        for name, group in groups.items():
            call = caller(op, mib, group)
            runs[f"{op} {mib} MiB, {name}"] = call
            runs[f"{op} {mib} MiB, {name}, and the matmul"] = partial(both, call)
    times: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(options.turns + 3):
        for name, run in runs.items():
            taken = measure(run)
            if turn >= 3:
                times[name].append(taken)
    if dist.get_rank() == 0:
        for name, taken_all in times.items():
            median = statistics.median(taken_all)
            print(f"{name:45} {median:7.3f} [{min(taken_all):.3f} {max(taken_all):.3f}]")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
